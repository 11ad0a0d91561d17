"""Commands that machines of the sandbox find first on their PATH, in the place of the real ones. guests/guests.py
writes each into a machine's folder; it runs `main(FOLDER, ARGUMENTS)` of a module in here."""

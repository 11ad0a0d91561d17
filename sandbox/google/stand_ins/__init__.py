"""Commands that machines of the sandbox find first on their PATH, in the place of the real ones.

Each is written into a machine's folder by guests/host.py, and runs `main(FOLDER, ARGUMENTS)` of a module in here.
"""

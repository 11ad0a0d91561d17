"""One module a backend, imported by registry.py when a target of its kind is used."""

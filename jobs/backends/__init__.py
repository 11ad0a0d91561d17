"""One package per backend. registry.py imports it when a target of its kind is used."""

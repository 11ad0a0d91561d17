"""Queues, environments and definitions that were made by hand, as an environment of this project and an import file."""

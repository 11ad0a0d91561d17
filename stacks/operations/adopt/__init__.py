"""Conversion of hand-made queues, environments and definitions into an environment and an import file."""

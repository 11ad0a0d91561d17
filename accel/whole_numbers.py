"""Bound of whole numbers."""

INT_MAX = 2**31 - 1
"""Limit of the services and of system calls, whose integers have 32 bits."""

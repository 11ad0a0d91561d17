"""An archive on this machine: file:///folder/archive."""

from typing import Any


def opened(source: str) -> Any:
    """A file of bytes. Raises OSError."""
    return open(source[7:], "rb")

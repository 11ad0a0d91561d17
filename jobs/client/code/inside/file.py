"""An archive on this machine: file:///folder/archive."""

from typing import Any


def opened(source: str) -> Any:
    """Open the archive for reading. Raise OSError."""
    return open(source[7:], "rb")

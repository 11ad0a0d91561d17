"""Destination of messages besides a result: the command line prints them, the Python API keeps them."""

from typing import Protocol


class Reporter(Protocol):
    """Options that every operation reads, and the destination of its messages."""

    @property
    def targets(self) -> str | None:
        """None: the default one."""
        ...

    @property
    def strict(self) -> bool: ...

    def say(self, message: str) -> None: ...

    def warn(self, message: str) -> None:
        """Report a likely mistake, in one line. Raises BadInput if `strict`."""
        ...

    def resubmission(self, key: str) -> str:
        """Return how to repeat the same submission, in words: the subject of a sentence."""
        ...

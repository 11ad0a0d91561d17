"""Where messages beside a result go: the command line prints them, the functions for Python keep them."""

from typing import Protocol


class Reporter(Protocol):
    """Options that every operation reads, and where its messages go."""

    @property
    def targets(self) -> str | None:
        """The source of the targets; None: the usual one."""
        ...

    @property
    def strict(self) -> bool:
        """Whether a warning ends the work."""
        ...

    def say(self, message: str) -> None:
        """Report what is done, in a line."""
        ...

    def warn(self, message: str) -> None:
        """Report what may not be meant, in a line. Raise BadInput where `strict`."""
        ...

    def resubmission(self, key: str) -> str:
        """Return the same submit once more, in words: the subject of a sentence."""
        ...

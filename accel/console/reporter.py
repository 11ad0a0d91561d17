"""Who hears what happens beside a result: the command line prints it, the functions for Python keep it."""

from typing import Protocol


class Voice(Protocol):
    """What was asked for whatever the work, and where words about it go."""

    @property
    def targets(self) -> str | None:
        """The source of the targets; None: the usual one."""
        ...

    @property
    def strict(self) -> bool:
        """Whether a warning ends the work."""
        ...

    def say(self, message: str) -> None:
        """What is done, in a line."""
        ...

    def warn(self, message: str) -> None:
        """What may not be meant, in a line. Raises BadInput where `strict`."""
        ...

    def again(self, key: str) -> str:
        """The same submit once more, in words: the subject of a sentence."""
        ...

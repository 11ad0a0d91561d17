"""The tasks of an array one by one: what a backend may do besides for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .base import JobRef, LogLine, Phase, Request


@runtime_checkable
class ResubmitTasks(Protocol):
    """A backend that can run some tasks of a sweep once more, and the others not."""

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        """As again, with these tasks of the job of `ref` alone. Raises BadInput for a job that is no sweep."""
        ...


@dataclass(frozen=True)
class TaskStatus:
    """A task of a job as its platform sees it now."""

    index: int
    phase: Phase
    native: str
    """The platform's own word for the state."""
    attempts: int = 0
    exit_code: int | None = None
    reason: str | None = None


@runtime_checkable
class Tasks(Protocol):
    """A backend that tells the state of each task of an array."""

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """By index, each task that there is. Reads only, by the hundred or more. Raises as status."""
        ...


@runtime_checkable
class ProgressLines(Protocol):
    """A backend that finds the lines by which tasks tell how they go (runtime/lines.py) without reading all others."""

    def progress_lines(self, ref: JobRef, tasks: Sequence[int]) -> Iterator[tuple[int, LogLine]]:
        """Of these tasks of an array, each with its own in their order. Raises CloudRefused where that is not allowed
        though each log may be read, CloudSilent."""
        ...

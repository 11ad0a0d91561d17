"""The single tasks of an array: optional interfaces of backends, and the variables of a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from accel.contract import variables
from accel.diagnostics.errors import BadInput

from .base import JobRef, LogLine, Phase, Request

if TYPE_CHECKING:
    from ..model.job import Job


@runtime_checkable
class ResubmitTasks(Protocol):
    """Backend that can repeat some tasks of a sweep without the others."""

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        """Return a request for these tasks alone, like `resubmit_request`. Raise BadInput if the job is no sweep."""
        ...


@dataclass(frozen=True)
class TaskStatus:
    """State of a task, as its platform reports it now."""

    index: int
    phase: Phase
    native: str
    attempts: int = 0
    exit_code: int | None = None
    reason: str | None = None


@runtime_checkable
class Tasks(Protocol):
    """Backend that reports the state of each task of an array."""

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """Return the existing tasks by index. Read only, a hundred or more a call. Raise the errors of `status`."""
        ...


@runtime_checkable
class ProgressLines(Protocol):
    """Backend that finds the progress lines of tasks (runtime/lines.py) without reading all other lines."""

    def progress_lines(self, ref: JobRef, tasks: Sequence[int]) -> Iterator[tuple[int, LogLine]]:
        """Yield each progress line with its task's index, in order within a task. Raise CloudRefused if that is not
        allowed though each log may be read, CloudSilent."""
        ...


def check_task(ref: JobRef, task: int | None, several: str | None, count: int) -> None:
    """Raise BadInput for a task or node that a job does not have. `several`: the word for them, None without any."""
    if task is not None and not (several and 0 <= task < count):
        word = several or "task"
        has = f"{word}s 0 to {count - 1}" if several else "no tasks"
        raise BadInput(f"{word}: {ref} has {has}, not {task}")


def environment(job: "Job", kind: str) -> dict[str, str]:
    """Return the variables for job name and task index. A platform numbers the tasks of an array only."""
    own = {variables.JOB_NAME: job.name, variables.TASK_COUNT: str(job.tasks)}
    if job.tasks > 1:
        return own | {variables.INDEX_FROM: variables.INDEX_VARIABLE[kind]}
    return own | {variables.TASK_INDEX: "0", variables.INDEX_FROM: variables.TASK_INDEX}

"""What is known of a job, read when it is first asked for. What may not be read makes no cause true."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ...base import JobRef, Status
from .. import logs
from ..labels import Scope
from ..lookup import BatchJob, Task
from ..status import decided, gpus, moved, seen_tasks, status_of

TAIL = 100

Result = TypeVar("Result")


class Facts:
    """One job, now."""

    def __init__(self, google: Google, scope: Scope, ref: JobRef, job: BatchJob) -> None:
        self.google, self.scope, self.ref, self.job = google, scope, ref, job
        self.unread: list[str] = []

    @cached_property
    def tasks(self) -> list[Task]:
        """Those that tell how the job goes."""
        return self._ask("batch.tasks.list", lambda: seen_tasks(self.google, self.scope, self.job)) or []

    @cached_property
    def status(self) -> Status:
        """With what the tasks say."""
        return status_of(self.ref, self.job, self.tasks)

    @cached_property
    def task(self) -> Task | None:
        """The one that decided how the job ended."""
        return decided(self.job, self.tasks)

    @property
    def age_s(self) -> float:
        """Since the job was made."""
        created = self.status.created
        return (datetime.now(UTC) - created).total_seconds() if created else 0.0

    @property
    def event_texts(self) -> list[str]:
        """Of the job's events, the newest first."""
        return [event.text for event in reversed(self.job.events)]

    @property
    def texts_since_start(self) -> list[str]:
        """Those after it began to run, the newest first."""
        begun = moved(self.job, "RUNNING", oldest=True)
        after = [event for event in self.job.events if begun and event.at and event.at > begun]
        return [event.text for event in reversed(after)]

    @cached_property
    def agent(self) -> list[str]:
        """The end of what Batch's agent says, the newest first; empty where logs go to a mount."""
        if self.job.logs_path:
            return []
        told = self._ask("logging.logEntries.list", lambda: logs.agent(self.google, self.scope, self.job, TAIL))
        return (told or [])[::-1]

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the decisive task's log; None: it could not be read, or is in a mount."""
        if self.job.logs_path:
            return None
        index = self.task.index if self.task is not None and self.job.several else None
        told = self._ask(
            "logging.logEntries.list", lambda: logs.printed(self.google, self.scope, self.job, index, TAIL)
        )
        return None if told is None else tuple(line for text in told for line in text.splitlines())

    @property
    def whose(self) -> tuple[str, ...]:
        """Which task, and which attempt, the words are of."""
        if self.task is None:
            return ()
        place = f"{self.job.several} {self.task.index} of {self.job.count}" if self.job.several else ""
        again = f"attempt {self.task.attempts}" if self.task.attempts > 1 else ""
        both = ", ".join(each for each in (place, again) if each)
        return (both,) if both else ()

    @property
    def gpus(self) -> int:
        """Of a task."""
        return round(gpus(self.job))

    def _ask(self, permission: str, call: Callable[[], Result]) -> Result | None:
        try:
            return call()
        except NotFound:
            return None
        except (CloudRefused, CloudSilent) as error:
            self.unread.append(f"{permission}: {error.message}")
            return None

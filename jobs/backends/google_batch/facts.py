"""What Google Batch and Cloud Logging know of a job, read when it is first needed."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from accel.clouds.google.api import Google

from ..base import Explanation, JobRef, Status
from ..diagnosis import outcome
from ..diagnosis.engine import LazyFacts
from . import logs
from .labels import Scope
from .lookup import BatchJob, Task
from .status import decided, gpus, moved, seen_tasks, status_of

_LOGS = "logging.logEntries.list"


class BatchFacts(LazyFacts):
    """One job, now."""

    PLATFORM = "google_batch"
    MISSING_IS_UNREAD = False
    NEXT_STEPS: ClassVar = {
        "container-gpu": "leave install_drivers and boot_image out, and `--gpus` out of docker_options: Batch sets it "
        "itself",
        "disk-full": "write to a bucket, or give disk_gib or a disk of its own (google_batch.disks)",
        "gpu-not-visible": "the image's CUDA must not be newer than the driver that Batch installs: leave "
        "driver_version and boot_image out, and build the image for an older CUDA if that is not enough",
        "not-offered": "`accel-jobs offers` shows the zones that have it; give those to the job (google_batch.zones) "
        "or to the target",
    }

    def __init__(self, google: Google, scope: Scope, ref: JobRef, job: BatchJob) -> None:
        super().__init__()
        self.google, self.scope, self.ref, self.job = google, scope, ref, job

    def texts(self, kind: str) -> Sequence[str]:
        """Return the job's events, those since it began to run, or lines of Batch's agent, newest first."""
        match kind:
            case "event":
                return [event.text for event in reversed(self.job.events)]
            case "event-since-start":
                start = moved(self.job, "RUNNING", oldest=True)
                after = [event for event in self.job.events if start and event.at and event.at > start]
                return [event.text for event in reversed(after)]
            case "agent":
                return self.agent
            case _:
                return super().texts(kind)

    def unknown(self) -> Explanation:
        """See Facts."""
        status = self.status
        state = f"the job is {status.phase} ({status.native}), {status.reason or 'without a reason'}"
        step = f"`gcloud batch jobs describe {self.ref.id} --location {self.scope.region}` shows all that Batch knows"
        return self.explanation("unknown", evidence=(state, *self.texts("event")[:4]), next_step=step)

    @cached_property
    def tasks(self) -> list[Task]:
        """Those that tell how the job goes."""
        return self.read("batch.tasks.list", lambda: seen_tasks(self.google, self.scope, self.job)) or []

    @cached_property
    def status(self) -> Status:
        """With what the tasks say."""
        return status_of(self.ref, self.job, self.tasks)

    @cached_property
    def task(self) -> Task | None:
        """The one that decided how the job ended."""
        return decided(self.job, self.tasks)

    @cached_property
    def agent(self) -> list[str]:
        """The end of the agent's log, the newest first; empty where logs go to a mount."""
        if self.job.logs_path:
            return []
        lines = self.read(_LOGS, lambda: logs.agent(self.google, self.scope, self.job, outcome.TAIL))
        return (lines or [])[::-1]

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the decisive task's log; None: it could not be read, or is in a mount."""
        if self.job.logs_path:
            return None
        index = self.task.index if self.task is not None and self.job.several else None
        entries = self.read(_LOGS, lambda: logs.printed(self.google, self.scope, self.job, index, outcome.TAIL))
        return None if entries is None else tuple(line for text in entries for line in text.splitlines())

    @property
    def place(self) -> tuple[str, ...]:
        """Which task, and which attempt, is explained."""
        if self.task is None:
            return ()
        place = f"{self.job.several} {self.task.index} of {self.job.count}" if self.job.several else ""
        attempt = f"attempt {self.task.attempts}" if self.task.attempts > 1 else ""
        both = ", ".join(each for each in (place, attempt) if each)
        return (both,) if both else ()

    @property
    def gpus(self) -> int:
        """Of a task."""
        return round(gpus(self.job))

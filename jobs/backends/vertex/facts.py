"""What Vertex AI and Cloud Logging know of a custom job, read when it is first needed."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from accel.clouds.google.api import Google
from accel.clouds.quota_cache import Limit

from ..base import Explanation
from ..diagnosis import outcome
from ..diagnosis.engine import LazyFacts
from ..google_logging import newest
from . import quota
from .labels import Scope
from .logs import SERVICE, query, since, text_of
from .lookup import Job, listed

TAIL_LINES = 100
SHOWN = 3
"""Lines of Vertex's own that are evidence."""
HOLDING = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING")
"""Jobs in these states have machines."""


class VertexFacts(LazyFacts):
    """One custom job, now."""

    PLATFORM = "vertex"
    NEXT_STEPS: ClassVar = {
        "gpu-not-visible": "the image's CUDA must not be newer than the driver of Vertex's machines, and needs a build "
        "for GPUs",
        "disk-full": "write to a bucket (/gcs/<bucket>), or give disk_gib",
        "shared-memory": "use fewer data loader workers",
    }

    def __init__(self, google: Google, scope: Scope, job: Job) -> None:
        super().__init__()
        self._google, self._scope = google, scope
        self.job = job

    def texts(self, kind: str) -> Sequence[str]:
        """Return the job's error: the only place where Vertex gives reasons."""
        return [self.job.error] if kind == "error" else super().texts(kind)

    def context(self, kind: str) -> Sequence[str]:
        """Return the end of the log of the replica that the error names."""
        return outcome.last(self.lines) if self.job.failed else ()

    def unknown(self) -> Explanation:
        """See Facts."""
        evidence = (f"the job is {self.job.state}", self.job.error, *self.service_log[-SHOWN:])
        return self.explanation("unknown", evidence=evidence)

    @property
    def ran_s(self) -> float:
        """How long it ran, or has been running."""
        start, end = self.job.at("startTime"), self.job.at("endTime") or self.now
        return (end - start).total_seconds() if start else 0.0

    @cached_property
    def lines(self) -> tuple[str, ...] | None:
        """The end of the log of the replica that failed, or of the first; None: it could not be read."""
        return self._tail(self.replica)

    @property
    def replica(self) -> str:
        """The replica whose log is read."""
        return self.job.failed or next(iter(self.job.replicas), "workerpool0-0")

    @cached_property
    def service_log(self) -> tuple[str, ...]:
        """The last that Vertex itself wrote of the job."""
        return self._tail(SERVICE) or ()

    def _tail(self, task: str) -> tuple[str, ...] | None:
        wanted = f'{query(self.job, task)} AND timestamp>="{since(self.job):%Y-%m-%dT%H:%M:%SZ}"'
        entries = self.read("its log", lambda: newest(self._google, self._scope.project, wanted, TAIL_LINES))
        return None if entries is None else tuple(line for entry in entries for line in text_of(entry).splitlines())

    @cached_property
    def needs(self) -> Mapping[str, float]:
        """How much of which quota of Vertex the job takes."""
        return quota.usage([self.job.spec], self._scope.region)

    @cached_property
    def usage(self) -> Mapping[str, float] | None:
        """How much the region's other jobs take; None: it could not be read."""
        states = " OR ".join(f'state="{state}"' for state in HOLDING)

        def read() -> Mapping[str, float]:
            others = [each.spec for each in listed(self._google, self._scope, states) if each.state in HOLDING]
            return quota.usage(others, self._scope.region)

        return self.read("the region's other jobs", read)

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        """Of the quotas that the job takes."""
        limits = quota.limits(self._google, self._scope.project, self.job.spec, self._scope.region)
        for name, limit in limits.items():
            if limit.value is None:
                self.miss(f"{name}: {limit.why}")
        return limits

    @property
    def machines(self) -> str:
        """The first pool's, in a word or two."""
        machine: dict[str, Any] = self.job.machine
        count, kind = machine.get("acceleratorCount"), machine.get("acceleratorType")
        return f"{machine.get('machineType')}{f' with {count} x {kind}' if kind else ''}"

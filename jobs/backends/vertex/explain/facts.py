"""What is known of a job, read when it is first asked for. What may not be read makes no cause true."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, TypeVar

from accel.clouds.google.api import Google
from accel.clouds.quota_cache import Limit
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound

from ...google_logging import newest
from .. import quota
from ..labels import Scope
from ..logs import SERVICE, query, since, text_of
from ..lookup import Job, listed

TAIL_LINES = 100
HOLDING = ("JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_CANCELLING")
"""Jobs in these states have machines."""

Value = TypeVar("Value")


class Facts:
    """One job, now."""

    def __init__(self, google: Google, scope: Scope, job: Job) -> None:
        self._google, self._scope = google, scope
        self.job = job
        self.unread: list[str] = []
        self.now = datetime.now(UTC)

    def since(self, field: str) -> float:
        """Seconds since a time of the job's; 0 for one that there is not."""
        at = self.job.at(field)
        return (self.now - at).total_seconds() if at else 0.0

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
        """Whose log is looked at."""
        return self.job.failed or next(iter(self.job.replicas), "workerpool0-0")

    @cached_property
    def service_log(self) -> tuple[str, ...]:
        """What Vertex itself said of the job last."""
        return self._tail(SERVICE) or ()

    def _tail(self, task: str) -> tuple[str, ...] | None:
        asked = f'{query(self.job, task)} AND timestamp>="{since(self.job):%Y-%m-%dT%H:%M:%SZ}"'
        found = self._ask("its log", lambda: newest(self._google, self._scope.project, asked, TAIL_LINES))
        return None if found is None else tuple(line for entry in found for line in text_of(entry).splitlines())

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

        return self._ask("the region's other jobs", read)

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        """Of the quotas that the job takes."""
        found = quota.limits(self._google, self._scope.project, self.job.spec, self._scope.region)
        self.unread.extend(f"{name}: {limit.why}" for name, limit in found.items() if limit.value is None)
        return found

    def _ask(self, what: str, call: Callable[[], Value]) -> Value | None:
        try:
            return call()
        except (CloudRefused, CloudSilent, NotFound) as error:
            self.unread.append(f"{what}: {error.message}")
            return None

    @property
    def machines(self) -> str:
        """The first pool's, in a word or two."""
        machine: dict[str, Any] = self.job.machine
        count, kind = machine.get("acceleratorCount"), machine.get("acceleratorType")
        return f"{machine.get('machineType')}{f' with {count} x {kind}' if kind else ''}"

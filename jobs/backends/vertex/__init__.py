"""Custom jobs of Vertex AI."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accel.clouds import timeouts
from accel.clouds.rate_limit import Rate
from accel.contract.google_jobs import VertexTarget

from ...model.job import Job
from ..base import Explanation, JobRef, LogLine, QuotaAnswer, Request, Status
from ..google_budget_gate import refuse
from ..google_regional import GoogleRegionalBackend
from ..lazy_modules import lazy_modules
from .labels import KIND, Scope
from .request import render

if TYPE_CHECKING:
    from . import logs as _logs
    from . import quota as _quota
    from . import status as _status
    from . import submit as _submit
else:
    _logs, _quota, _status, _submit = lazy_modules(__name__, "logs", "quota", "status", "submit")

__all__ = ["KIND", "Timing", "VertexBackend"]

THREADS = 4
"""With a submission a second, more would only wait."""
SUBMITS_PER_MINUTE = 60 - THREADS
"""Vertex accepts 60 a minute, from everybody in a project and region together. However late the calls of the threads
come, no minute has more. Source: https://docs.cloud.google.com/vertex-ai/docs/quotas"""


@dataclass(frozen=True)
class Timing(timeouts.Timing):
    """Times in seconds. A claim's lease must outlive a call (connect + read), the quiet period and another call."""

    lease_s: float = 120
    quiet_s: float = 15
    """Time after which a job that is not listed was not created. Vertex documents no delay of its lists."""
    submits: int = SUBMITS_PER_MINUTE
    """Most submissions of this process in `window_s`."""
    window_s: float = 60

    @property
    def call_s(self) -> float:
        """Longest duration of one call without retries."""
        return self.connect_s + self.read_s

    def rate(self, submits_per_s: int | None = None) -> Rate:
        return Rate(submits_per_s) if submits_per_s else Rate(self.submits, within_s=self.window_s)


class VertexBackend(GoogleRegionalBackend[VertexTarget, Scope, Timing]):
    """Backend whose references are `vertex:<project>.<region>/<number of the custom job>`."""

    KIND = KIND

    NO_TARGET = "a region alone does not say what its jobs stand on"

    def _open(self, scope: Scope, timing: Timing | None) -> None:
        self._times = timing or Timing()
        super()._open(scope, self._times)
        self._rate = self._times.rate()

    _scope_of = Scope.of_target
    _parse_scope = Scope.parse
    _render = staticmethod(render)

    def submit(self, request: Request) -> JobRef:
        refuse(self._google, self._target)
        return _submit.submit(request, self._google, self._target, self._times, self._turn)

    def threads(self, submits_per_s: int | None = None) -> int:
        self._rate = self._times.rate(submits_per_s)
        return THREADS

    def status(self, ref: JobRef) -> Status:
        return _status.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        return _status.statuses(self._google, self._scope, [self._checked(ref) for ref in refs])

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        return _status.list_jobs(self._google, self._scope, limit=limit, ended=ended, progress=progress)

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Ask Vertex to stop the job. It stores no reason."""
        _submit.cancel(self._google, self._scope, self._checked(ref).id)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        return _logs.logs(*self._at(ref), task=task, follow=follow, tail=tail)

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return _submit.resubmit_request(*self._at(ref), key)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Ignore `elsewhere`: a reference names its region."""
        from ..diagnosis.vertex import explain  # modules that nothing else needs

        return explain(*self._at(ref))

    def quota(self, job: Job) -> QuotaAnswer:
        _, target = self._needed("quota")
        body = self.render(job, job.name, "0" * 64).body
        return _quota.check(body["customJob"], target.project, target.region)

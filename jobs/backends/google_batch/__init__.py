"""Jobs on Google Batch, in one region of a project."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from accel.clouds.timeouts import Timing
from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.errors import BadInput

from ...model.job import Job
from ...model.keys import platform_name
from ..base import Attempt, Explanation, JobRef, LogLine, QuotaAnswer, Request, Status
from ..google_budget_gate import refuse
from ..google_regional import GoogleRegionalBackend
from ..lazy_modules import lazy_modules
from ..tasks import TaskStatus
from .labels import KIND, Scope
from .request import render

if TYPE_CHECKING:
    from . import logs as _logs
    from . import quota as _quota
    from . import status as _status
    from . import submit as _submit
else:
    _logs, _quota, _status, _submit = lazy_modules(__name__, "logs", "quota", "status", "submit")

__all__ = ["KIND", "GoogleBatchBackend"]

THREADS = 16
_ANY_KEY = "0" * 64
SUBMITS_PER_S = 95
"""A region takes 6,000 changes a minute, including cancels. Source: https://docs.cloud.google.com/batch/quotas"""


class GoogleBatchBackend(GoogleRegionalBackend[GoogleBatchTarget, Scope, Timing]):
    """Backend whose references are `google-batch:<project>.<region>/<job id>`."""

    KIND = KIND
    NO_TARGET = "a region alone does not say what jobs run on"
    THREADS, SUBMITS_PER_S = THREADS, SUBMITS_PER_S

    _scope_of = Scope.of_target
    _parse_scope = Scope.parse
    _render = staticmethod(render)

    def submit(self, request: Request) -> JobRef:
        refuse(self._google, self._target)
        return _submit.submit(request, self._google, self._turn)

    def status(self, ref: JobRef) -> Status:
        return _status.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        return _status.statuses(self._google, self._scope, [self._checked(ref) for ref in refs])

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """List tasks and nodes as part of their job."""
        return _status.list_jobs(self._google, self._scope, limit=limit, ended=ended, progress=progress)

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Stop the job's tasks; the job stays visible. Batch stores no reason."""
        _submit.cancel(*self._at(ref))

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        return _logs.logs(*self._at(ref), task=task, follow=follow, tail=tail)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        return _status.attempts(*self._at(ref))

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return _submit.resubmit_request(*self._at(ref), key)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return _submit.resubmit_request(*self._at(ref), key, tasks)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """Read Batch's list of tasks, a thousand a call."""
        return _status.tasks(*self._at(ref))

    def quota(self, job: Job) -> QuotaAnswer:
        try:
            request = self.render(job, platform_name(job.name, _ANY_KEY), _ANY_KEY)
        except BadInput:
            return QuotaAnswer()
        return _quota.quota(request, self._timing)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Ignore `elsewhere`: a reference names its region."""
        from ..diagnosis.google_batch import explain  # modules that nothing else needs

        return explain(*self._at(ref))

"""Jobs on Google Batch, in one region of a project."""

from collections.abc import Callable, Iterator, Sequence

from accel.clouds.timeouts import Timing
from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.errors import BadInput

from ...model.job import Job
from ...model.keys import platform_name
from ..base import Attempt, Explanation, JobRef, LogLine, QuotaAnswer, Request, Status
from ..google_budget_gate import refuse
from ..google_regional import GoogleRegionalBackend
from ..tasks import TaskStatus
from .labels import KIND, Scope
from .request import render

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

    @staticmethod
    def _scope_of(target: GoogleBatchTarget) -> Scope:
        return Scope(target.project, target.region)

    @staticmethod
    def _parse_scope(text: str) -> Scope:
        return Scope.parse(text)

    def render(self, job: Job, name: str, key: str) -> Request:
        target_name, target = self._needed("render")
        return render(job, name, key, target_name, target)

    def submit(self, request: Request) -> JobRef:
        refuse(self._google, self._target)
        return self._submission.submit(request, self._google, self._turn)

    def status(self, ref: JobRef) -> Status:
        return self._states.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        return self._states.statuses(self._google, self._scope, [self._checked(ref) for ref in refs])

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """List tasks and nodes as part of their job."""
        return self._states.list_jobs(self._google, self._scope, limit=limit, ended=ended, progress=progress)

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Stop the job's tasks; the job stays visible. Batch stores no reason."""
        self._submission.cancel(*self._at(ref))

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        return self._streams.logs(*self._at(ref), task=task, follow=follow, tail=tail)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        return self._states.attempts(*self._at(ref))

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return self._submission.resubmit_request(*self._at(ref), key)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return self._submission.resubmit_request(*self._at(ref), key, tasks)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """Read Batch's list of tasks, a thousand a call."""
        return self._states.tasks(*self._at(ref))

    def quota(self, job: Job) -> QuotaAnswer:
        try:
            request = self.render(job, platform_name(job.name, _ANY_KEY), _ANY_KEY)
        except BadInput:
            return QuotaAnswer()
        return self._quotas.quota(request, self._timing)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Ignore `elsewhere`: a reference names its region."""
        from ..diagnosis.google_batch import explain  # modules that nothing else needs

        return explain(*self._at(ref))

    # Modules that rendering does not need: `submit --dry-run` loads none of them.
    @property
    def _submission(self):
        from . import submit

        return submit

    @property
    def _states(self):
        from . import status

        return status

    @property
    def _streams(self):
        from . import logs

        return logs

    @property
    def _quotas(self):
        from . import quota

        return quota

"""Jobs on an AWS Batch queue."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from accel.clouds.aws.clients import CONNECTIONS, Clients, Timing
from accel.clouds.rate_limit import Rate
from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.collector import Diagnostics

from ...model.job import Job
from ..base import Attempt, Explanation, JobRef, LogLine, PlatformBackend, QuotaAnswer, Request, Status
from ..free_gpus import Free
from ..lazy_modules import lazy_modules
from ..tasks import TaskStatus
from .definition import choose
from .labels import KIND
from .request import render

if TYPE_CHECKING:
    from . import logs as _logs
    from . import quota as _quota
    from . import status as _status
    from . import submit as _submit
else:
    _logs, _quota, _status, _submit = lazy_modules(__name__, "logs", "quota", "status", "submit")

__all__ = ["KIND", "AwsBatchBackend", "Timing"]


class AwsBatchBackend(PlatformBackend[AwsBatchTarget, str, Timing]):
    """Backend for AWS Batch. References are `aws-batch:<region>/<Batch job id>`, for an array's task with `:<index>`,
    for a node with `#<index>`."""

    KIND = KIND
    NO_TARGET = "a region alone does not say which queue"

    def _open(self, scope: str, timing: Timing | None) -> None:
        super()._open(scope, timing)
        self._clients = Clients(scope, timing or Timing())

    @staticmethod
    def _scope_of(target: AwsBatchTarget) -> str:
        return target.region

    @staticmethod
    def _parse_scope(text: str) -> str:
        return text

    _render = staticmethod(render)

    def submit(self, request: Request) -> JobRef:
        return _submit.submit(request, self._clients, self._target)

    def status(self, ref: JobRef) -> Status:
        return _status.status(self._clients, self._checked(ref), self._queue_name)

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        return _status.statuses(self._clients, [self._checked(ref) for ref in refs], self._queue_name)

    def threads(self, submits_per_s: int | None = None) -> int:
        clients = self._clients
        clients.submits = Rate(submits_per_s or clients.timing.submits_per_s)
        for _ in (clients.batch, clients.batch_once, clients.dynamodb):
            pass  # created here: two threads at once would create two
        return CONNECTIONS

    def stop(self) -> None:
        self._clients.submits.close()

    def cancel(self, ref: JobRef, reason: str) -> None:
        _submit.cancel(self._clients, self._checked(ref), reason)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        group = self._target.log_group if self._target else None
        return _logs.logs(self._clients, self._checked(ref), group, task=task, follow=follow, tail=tail)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        target_name, target = self._needed("list")
        return _status.list_jobs(
            self._clients, target_name, target.queue_arn, limit=limit, ended=ended, progress=progress
        )

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return _submit.resubmit_request(self._clients, self._checked(ref), key, self._queue_name, self._target)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return _submit.resubmit_request(self._clients, self._checked(ref), key, self._queue_name, self._target, tasks)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        return _status.tasks(self._clients, self._checked(ref))

    def progress_lines(self, ref: JobRef, tasks: Sequence[int]) -> Iterator[tuple[int, LogLine]]:
        group = self._target.log_group if self._target else None
        return _logs.progress_lines(self._clients, self._checked(ref), group, tasks)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        return _status.attempts(self._clients, self._checked(ref))

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        from ..diagnosis.aws_batch import explain  # a dozen modules that nothing else needs

        return explain(self._clients, self._checked(ref), elsewhere)

    def free(self) -> Sequence[Free]:
        return _quota.free(self._clients, self._needed("free")[1])

    def quota(self, job: Job) -> QuotaAnswer:
        _, target = self._needed("quota")
        choice = choose(job, target, Diagnostics())
        return _quota.check(choice.size, target, job.nodes) if choice else QuotaAnswer()

    def _queue_name(self, queue_arn: str) -> str | None:
        return self._target_name if self._target and self._target.queue_arn == queue_arn else None

"""Jobs on an AWS Batch queue."""

from collections.abc import Callable, Iterator, Sequence

from accel.clouds.aws.clients import CONNECTIONS, Clients, Timing
from accel.clouds.rate_limit import Rate
from accel.contract.targets import AwsBatchTarget
from accel.diagnostics.collector import Diagnostics

from ...model.job import Job
from ..base import Attempt, Explanation, JobRef, LogLine, PlatformBackend, QuotaAnswer, Request, Status
from ..free_gpus import Free
from ..tasks import TaskStatus
from .definition import choose
from .labels import KIND
from .request import render

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

    def render(self, job: Job, name: str, key: str) -> Request:
        target_name, target = self._needed("render")
        return render(job, name, key, target_name, target)

    def submit(self, request: Request) -> JobRef:
        return self._submission.submit(request, self._clients, self._target)

    def status(self, ref: JobRef) -> Status:
        return self._states.status(self._clients, self._checked(ref), self._queue_name)

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        return self._states.statuses(self._clients, [self._checked(ref) for ref in refs], self._queue_name)

    def threads(self, submits_per_s: int | None = None) -> int:
        clients = self._clients
        clients.submits = Rate(submits_per_s or clients.timing.submits_per_s)
        for _ in (clients.batch, clients.batch_once, clients.dynamodb):
            pass  # created here: two threads at once would create two
        return CONNECTIONS

    def stop(self) -> None:
        self._clients.submits.close()

    def cancel(self, ref: JobRef, reason: str) -> None:
        self._submission.cancel(self._clients, self._checked(ref), reason)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        group = self._target.log_group if self._target else None
        return self._streams.logs(self._clients, self._checked(ref), group, task=task, follow=follow, tail=tail)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        target_name, target = self._needed("list")
        return self._states.list_jobs(
            self._clients, target_name, target.queue_arn, limit=limit, ended=ended, progress=progress
        )

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return self._submission.resubmit_request(self._clients, self._checked(ref), key, self._queue_name, self._target)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return self._submission.resubmit_request(
            self._clients, self._checked(ref), key, self._queue_name, self._target, tasks
        )

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        return self._states.tasks(self._clients, self._checked(ref))

    def progress_lines(self, ref: JobRef, tasks: Sequence[int]) -> Iterator[tuple[int, LogLine]]:
        group = self._target.log_group if self._target else None
        return self._streams.progress_lines(self._clients, self._checked(ref), group, tasks)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        return self._states.attempts(self._clients, self._checked(ref))

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        from ..diagnosis.aws_batch import explain  # a dozen modules that nothing else needs

        return explain(self._clients, self._checked(ref), elsewhere)

    def free(self) -> Sequence[Free]:
        return self._quotas.free(self._clients, self._needed("free")[1])

    def quota(self, job: Job) -> QuotaAnswer:
        _, target = self._needed("quota")
        choice = choose(job, target, Diagnostics())
        return self._quotas.check(choice.size, target, job.nodes) if choice else QuotaAnswer()

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

    def _queue_name(self, queue_arn: str) -> str | None:
        return self._target_name if self._target and self._target.queue_arn == queue_arn else None

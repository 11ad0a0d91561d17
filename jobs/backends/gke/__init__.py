"""Jobs in a namespace of a GKE cluster."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from accel.clouds.google.api import Google
from accel.clouds.kubernetes.client import Api, Timing
from accel.clouds.kubernetes.clusters import Clusters
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import BadInput

from ..base import (
    Attempt,
    Explanation,
    JobRef,
    LogLine,
    Places,
    PlatformBackend,
    RateLimitedBackend,
    Request,
    Status,
    Streams,
)
from ..free_gpus import Free
from ..google_budget_gate import refuse
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

__all__ = ["KIND", "GkeBackend"]

THREADS = 8
"""The API server's own limits would hold up more."""

SUBMITS_PER_S = 49
"""No page gives a limit of GKE's own; an API server delays clients that are too fast."""


class GkeBackend(RateLimitedBackend, PlatformBackend[GkeTarget, Scope, Timing]):
    """Backend for GKE. References are `gke:<project>.<location>.<cluster>.<namespace>/<name of the Job or JobSet>`."""

    KIND = KIND
    NO_TARGET = "a cluster alone does not say which pools"
    THREADS, SUBMITS_PER_S = THREADS, SUBMITS_PER_S

    def _open(self, scope: Scope, timing: Timing | None) -> None:
        super()._open(scope, timing)
        self._clusters = Clusters(scope, self._target, timing)

    @staticmethod
    def _scope_of(target: GkeTarget) -> Scope:
        return Scope(target.project, target.location, target.cluster, target.namespace)

    _parse_scope = Scope.parse
    _render = staticmethod(render)

    def submit(self, request: Request) -> JobRef:
        if self._target and self._target.stop:
            refuse(Google(self._clusters.timing), self._target)
        self._turn()
        return _submit.submit(request, self._clusters.api)

    def threads(self, submits_per_s: int | None = None) -> int:
        _ = self._clusters.api  # created here: two threads at once would create two
        return super().threads(submits_per_s)

    def status(self, ref: JobRef) -> Status:
        return _status.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        refs = [self._checked(ref) for ref in refs]
        return _status.statuses(self._clusters.api, self._scope, refs)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        return _status.list_jobs(self._clusters.api, self._scope, limit=limit, ended=ended, progress=progress)

    def free(self) -> Sequence[Free]:
        _, target = self._needed("free")
        return _quota.free(self._clusters.api, target)

    def cancel(self, ref: JobRef, reason: str) -> None:
        _submit.cancel(*self._at(ref), reason)

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
        return _status.tasks(*self._at(ref))

    def places(self, ref: JobRef) -> Places:
        from .shell import places

        return places(*self._at(ref))

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        from .shell import run

        if host:
            raise BadInput(f"--host: {ref} runs on nodes of a cluster, which may not be entered")
        return run(*self._at(ref), command, task, streams)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Ignore `elsewhere`: a reference names its cluster."""
        from ..diagnosis.gke import explain  # modules that nothing else needs

        return explain(*self._at(ref))

    def _at(self, ref: JobRef) -> tuple[Api, Scope, JobRef]:
        ref = self._checked(ref)
        return self._clusters.api, self._scope, ref

"""Jobs in a namespace of a GKE cluster."""

from collections.abc import Callable, Iterator, Sequence

from accel.clouds.google.api import Google
from accel.clouds.kubernetes.client import Api, Timing
from accel.clouds.kubernetes.clusters import Clusters
from accel.contract.gke import GkeTarget
from accel.diagnostics.errors import BadInput

from ...model.job import Job
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
from ..tasks import TaskStatus
from .labels import KIND, Scope
from .request import render

__all__ = ["KIND", "GkeBackend"]

THREADS = 8
"""Threads that submit at once. The API server's own limits would hold up more."""

SUBMITS_PER_S = 49
"""Submits per second. No page gives a limit of GKE's own; an API server delays clients that are too fast."""


class GkeBackend(RateLimitedBackend, PlatformBackend[GkeTarget, Scope, Timing]):
    """Backend with Logs, Listing, Many, Concurrent, Resubmit, ResubmitTasks, Tasks, Exec, FreeGpus and Explain.

    References are `gke:<project>.<location>.<cluster>.<namespace>/<name of the Job or JobSet>`.
    """

    KIND = KIND
    NO_TARGET = "a cluster alone does not say which pools"
    THREADS, SUBMITS_PER_S = THREADS, SUBMITS_PER_S

    def _open(self, scope: Scope, timing: Timing | None) -> None:
        super()._open(scope, timing)
        self._clusters = Clusters(scope, self._target, timing)

    @staticmethod
    def _scope_of(target: GkeTarget) -> Scope:
        return Scope(target.project, target.location, target.cluster, target.namespace)

    @staticmethod
    def _parse_scope(text: str) -> Scope:
        return Scope.parse(text)

    def render(self, job: Job, name: str, key: str) -> Request:
        target_name, target = self._needed("render")
        return render(job, name, key, target_name, target)

    def submit(self, request: Request) -> JobRef:
        """Submit the one job of request.key. See submit.py."""
        if self._target and self._target.stop:
            refuse(Google(self._clusters.timing), self._target)
        self._turn()
        return self._submission.submit(request, self._clusters.api)

    def threads(self, submits_per_s: int | None = None) -> int:
        """Set up what the threads of one process share: connections and a rate."""
        _ = self._clusters.api  # created here: two threads at once would create two
        return super().threads(submits_per_s)

    def status(self, ref: JobRef) -> Status:
        """Read the Job or JobSet and its pods. Raise NotFound."""
        return self._states.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        """Read many jobs with a few lists. Omit those that the cluster does not know."""
        refs = [self._checked(ref) for ref in refs]
        return self._states.statuses(self._clusters.api, self._scope, refs)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """Yield the namespace's jobs, newest first. Tasks and nodes are part of their job."""
        return self._states.list_jobs(self._clusters.api, self._scope, limit=limit, ended=ended, progress=progress)

    def free(self) -> Sequence[Free]:
        _, target = self._needed("free")
        return self._quotas.free(self._clusters.api, target)

    def cancel(self, ref: JobRef, reason: str) -> None:
        """End the job's pods and return its quota; the job stays visible. See submit.py."""
        self._submission.cancel(*self._at(ref), reason)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """Yield every pod's lines; tasks or nodes side by side, unless `task` names one."""
        return self._streams.logs(*self._at(ref), task=task, follow=follow, tail=tail)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        """Read the attempts from the job's pods, as long as the cluster keeps them."""
        return self._states.attempts(*self._at(ref))

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return self._submission.resubmit_request(*self._at(ref), key)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        return self._submission.resubmit_request(*self._at(ref), key, tasks)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """Read the Job and its pods, several hundred a call."""
        return self._states.tasks(*self._at(ref))

    def places(self, ref: JobRef) -> Places:
        from .shell import places

        return places(*self._at(ref))

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        """Run a command in a running pod of the job. See shell.py."""
        from .shell import run

        if host:
            raise BadInput(f"--host: {ref} runs on nodes of a cluster, which may not be entered")
        return run(*self._at(ref), command, task, streams)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Return why the job waits or failed. A reference names its cluster, so `elsewhere` is not used."""
        from ..diagnosis.gke import explain  # modules that nothing else needs

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

    def _at(self, ref: JobRef) -> tuple[Api, Scope, JobRef]:
        """Return API client, scope and reference for a job of this scope."""
        ref = self._checked(ref)
        return self._clusters.api, self._scope, ref

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
"""That submit at once; more would be held up by the API server's own limits."""

SUBMITS_PER_S = 49
"""No page gives a limit of GKE's own; an API server makes those wait that come too fast."""


class GkeBackend(RateLimitedBackend, PlatformBackend[GkeTarget, Scope, Timing]):
    """A Backend with Logs, Listing, Many, Concurrent, Resubmit, ResubmitTasks, Tasks, Exec, FreeGpus and Explain.

    A reference is `gke:<project>.<location>.<cluster>.<namespace>/<name of the Job or JobSet>`.
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
        """The objects for a job. See request.py."""
        target_name, target = self._needed("render")
        return render(job, name, key, target_name, target)

    def submit(self, request: Request) -> JobRef:
        """The one job of request.key. See submit.py."""
        if self._target and self._target.stop:
            refuse(Google(self._clusters.timing), self._target)
        self._turn()
        return self._submission.submit(request, self._clusters.api)

    def threads(self, submits_per_s: int | None = None) -> int:
        """Make what threads of one process share: connections and a rate."""
        _ = self._clusters.api  # made here: two threads at once would make two
        return super().threads(submits_per_s)

    def status(self, ref: JobRef) -> Status:
        """From the Job or JobSet and its pods. Raises NotFound."""
        return self._states.status(*self._at(ref))

    def statuses(self, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
        """Many with a few lists; without those that the cluster does not know."""
        refs = [self._checked(ref) for ref in refs]
        return self._states.statuses(self._clusters.api, self._scope, refs)

    def list(
        self, *, limit: int, ended: bool, progress: Callable[[int], None] = lambda count: None
    ) -> Iterator[Status]:
        """The namespace's jobs, newest first; tasks and nodes are part of their job."""
        return self._states.list_jobs(self._clusters.api, self._scope, limit=limit, ended=ended, progress=progress)

    def free(self) -> Sequence[Free]:
        """From the cluster's nodes and pods, and Kueue's quota. See quota.py."""
        _, target = self._needed("free")
        return self._quotas.free(self._clusters.api, target)

    def cancel(self, ref: JobRef, reason: str) -> None:
        """Ends the job's pods and gives its quota back; the job stays to be seen. See submit.py."""
        self._submission.cancel(*self._at(ref), reason)

    def logs(
        self, ref: JobRef, *, task: int | None = None, follow: bool = False, tail: int | None = None
    ) -> Iterator[LogLine]:
        """Every pod's lines; tasks or nodes side by side, unless `task` names one."""
        return self._streams.logs(*self._at(ref), task=task, follow=follow, tail=tail)

    def attempts(self, ref: JobRef) -> Sequence[Attempt]:
        """From its pods, as long as the cluster keeps them."""
        return self._states.attempts(*self._at(ref))

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        """What was sent, under another name."""
        return self._submission.resubmit_request(*self._at(ref), key)

    def resubmit_tasks_request(self, ref: JobRef, key: str, tasks: Sequence[int]) -> Request:
        """As again, with fewer indexes."""
        return self._submission.resubmit_request(*self._at(ref), key, tasks)

    def tasks(self, ref: JobRef) -> Sequence[TaskStatus]:
        """From the Job and its pods, some hundreds a call."""
        return self._states.tasks(*self._at(ref))

    def places(self, ref: JobRef) -> Places:
        """The tasks or nodes whose pods run now."""
        from .shell import places

        return places(*self._at(ref))

    def run(
        self, ref: JobRef, command: Sequence[str], streams: Streams, *, task: int | None = None, host: bool = False
    ) -> int:
        """A command in a pod of the job that runs. See shell.py."""
        from .shell import run

        if host:
            raise BadInput(f"--host: {ref} runs on nodes of a cluster, which may not be entered")
        return run(*self._at(ref), command, task, streams)

    def explain(self, ref: JobRef, *, elsewhere: Callable[[], Sequence[str]] = tuple) -> Explanation:
        """Why the job waits or failed; a reference says which cluster, so nothing is looked for elsewhere."""
        from ..diagnosis.gke import explain  # modules that nothing else needs

        return explain(*self._at(ref))

    # Modules that a rendered request does not need, so that `submit --dry-run` loads none of them.
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
        """Where to ask for a job of this scope."""
        ref = self._checked(ref)
        return self._clusters.api, self._scope, ref

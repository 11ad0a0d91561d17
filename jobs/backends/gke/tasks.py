"""The tasks of an Indexed Job, each as the cluster has it."""

from collections.abc import Mapping
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part

from ...runtime.sweep import spans
from ..base import JobRef, Phase
from ..tasks import TaskStatus
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob
from .status import TAKEN, status_of

_PODS = {"Running": Phase.RUNNING, "Succeeded": Phase.SUCCEEDED, "Pending": Phase.STARTING}


def tasks(api: Api, scope: Scope, ref: JobRef) -> list[TaskStatus]:
    """By index; of a job that is no array, itself. Raises NotFound.

    The Job says which indexes have succeeded and failed, its pods the rest; of pods that are gone nothing is known.
    """
    whole = lookup.look(api, scope, ref)
    job = status_of(ref, whole)
    if whole.several != "task" and whole.job_spec.get("completionMode") != "Indexed":
        return [TaskStatus(0, job.phase, job.native, job.attempts or 0, job.exit_code, job.reason)]
    pods: dict[int, list[dict[str, Any]]] = {}
    listed = api.items(scope.core("pods"), labelSelector=f"{labels.OBJECT}={ref.id}")
    for pod in sorted(listed, key=lambda pod: str(part(pod, "metadata").get("creationTimestamp"))):
        pods.setdefault(lookup.index(pod), []).append(pod)
    told = part(whole.body, "status")
    done, failed = (set(spans(str(told.get(name) or ""))) for name in ("completedIndexes", "failedIndexes"))
    seen: list[TaskStatus] = []
    for index in range(whole.count):
        own = pods.get(index, [])
        phase, native, reason = _phase(whole, own, index in done, index in failed)
        if not phase.ended and job.phase.ended:
            phase, native, reason = Phase.FAILED, job.native, job.reason
        code = part(lookup.state(own[-1]), "terminated").get("exitCode") if own and phase.ended else None
        seen.append(TaskStatus(index, phase, native, len(own), None if code is None else int(code), reason))
    return seen


def _phase(job: GkeJob, pods: list[dict[str, Any]], done: bool, failed: bool) -> tuple[Phase, str, str | None]:
    if done or failed:
        reason = _reason(pods[-1]) if pods and failed else None
        return (Phase.SUCCEEDED, "Succeeded", None) if done else (Phase.FAILED, "Failed", reason)
    if not pods:
        return Phase.QUEUED, "Suspended" if job.suspended else "Pending", None
    native = str(part(pods[-1], "status").get("phase") or "Pending")
    # A pod that failed, whose index has not: the Job makes another one.
    return _PODS.get(native, Phase.QUEUED), native, None


def _reason(pod: Mapping[str, Any]) -> str | None:
    ended = part(lookup.state(pod), "terminated")
    if lookup.is_lost(pod):
        return TAKEN
    return str(part(pod, "status").get("reason") or ended.get("reason") or "") or None

"""Status and listing of jobs, their tasks, and their attempts.

Attempts come from the job's pods, and from events about pods that are gone: a pod goes with its node, and all pods of a
JobSet that restarts go with their Job. Events, of the Job controller, the scheduler and the kubelet, are kept for an
hour: https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/ (--event-ttl). Source: PodStatus
of https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.diagnostics.errors import CloudRefused, NotFound
from accel.json_values import object_at, objects_at

from ...model.owners import owner_of
from ...runtime.sweep import spans
from ..base import Attempt, JobRef, Phase, Status
from ..tasks import TaskStatus
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob, at
from .machines import CHIPS, GPUS

TAKEN = "its machine was taken away"
FEW = 20
"""Most jobs that are read one by one, not with a list of all."""
_ENDS = {"Complete": Phase.SUCCEEDED, "Completed": Phase.SUCCEEDED, "Failed": Phase.FAILED}
"""Conditions of a Job and of a JobSet."""
_LIVE = "status.phase!=Succeeded,status.phase!=Failed"


def status(api: Api, scope: Scope, ref: JobRef) -> Status:
    return status_of(ref, lookup.look(api, scope, ref))


def statuses(api: Api, scope: Scope, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
    if len(refs) <= FEW:
        known: dict[JobRef, Status] = {}
        for ref in refs:
            try:
                known[ref] = status(api, scope, ref)
            except NotFound:
                continue
        return known
    wanted = {ref.id: ref for ref in refs}
    seen = [each for each in _all(api, scope) if each.name in wanted]
    return {wanted[each.name]: status_of(wanted[each.name], each, whole=False) for each in seen}


def list_jobs(api: Api, scope: Scope, *, limit: int, ended: bool, progress: Callable[[int], None]) -> Iterator[Status]:
    """Yield the newest first. Tasks and nodes are part of their job."""
    seen = [status_of(scope.ref(each.name), each, whole=False) for each in _all(api, scope, progress)]
    seen.sort(key=lambda each: each.created or datetime.min.replace(tzinfo=UTC), reverse=True)
    yield from [each for each in seen if ended or not each.phase.ended][:limit]


def _all(api: Api, scope: Scope, progress: Callable[[int], None] = lambda count: None) -> list[GkeJob]:
    """Return every job of ours with its live pods. Cost: a few lists, however many jobs there are."""
    ours = f"{labels.OWNER}={labels.JOBS}"
    bodies: list[dict[str, Any]] = []
    for path, kind in ((scope.jobs, "Job"), (scope.jobsets, "JobSet")):
        for each in _listed(api, path, labelSelector=ours):
            bodies.append({**each, "kind": kind})  # items of a list have no kind
            progress(len(bodies))
    pods: dict[str, list[dict[str, Any]]] = {}
    if any(object_at(body, "spec").get("suspend") is not True and not _ended(body) for body in bodies):
        for pod in _listed(api, scope.core("pods"), labelSelector=ours, fieldSelector=_LIVE):
            pods.setdefault(str(object_at(pod, "metadata", "labels").get(labels.OBJECT)), []).append(pod)
    workloads: dict[str, dict[str, Any]] = {}
    if any(
        object_at(body, "spec").get("suspend") and object_at(body, "metadata", "labels").get(labels.QUEUE)
        for body in bodies
    ):
        for each in _listed(api, scope.workloads):
            workloads[str(object_at(each, "metadata", "labels").get("kueue.x-k8s.io/job-uid"))] = each
    return [
        GkeJob(
            body,
            pods.get(str(object_at(body, "metadata").get("name")), []),
            workloads.get(str(object_at(body, "metadata").get("uid"))),
        )
        for body in bodies
    ]


def _listed(api: Api, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """Yield a collection; nothing if the cluster has no such kind, or if only the Jobs may be read."""
    try:
        yield from api.items(path, **query)
    except NotFound:
        return
    except CloudRefused:
        if path.endswith("/jobs"):
            raise


def _ended(body: dict[str, Any]) -> tuple[Phase, dict[str, Any]] | None:
    for kind, phase in _ENDS.items():
        told = lookup.condition(body, kind)
        if told:
            return phase, told
    return None


def status_of(ref: JobRef, job: GkeJob, *, whole: bool = True) -> Status:
    """Convert the objects. `whole`: they include the ended pods, some of which are counted nowhere else."""
    phase, native, reason, stopped = _phase(job)
    counted = job.several != "task" and (whole or not _ignores_lost(job))
    lost = [pod for pod in job.pods if lookup.is_lost(pod)]
    told = object_at(job.body, "status")
    return Status(
        ref=ref,
        name=str(job.annotations.get(labels.NAME) or job.name),
        phase=phase,
        native=native,
        reason=reason,
        exit_code=_exit_code(job) if phase.ended else None,
        attempts=_attempts(job, len(lost)) if counted else None,
        lost=len(lost) if whole else None,
        lost_gpu_hours=_gpu_hours(job, lost),
        taken=_taken(job) if phase is Phase.FAILED else None,
        tasks=_tasks(job) if job.several == "task" else {},
        created=lookup.at(object_at(job.body, "metadata").get("creationTimestamp")),
        started=lookup.at(told.get("startTime")) or _first_start(job),
        stopped=lookup.at(told.get("completionTime") or stopped),
        target=job.annotations.get(labels.TARGET),
        gpus=_gpus(job) * (job.count if job.several == "node" else 1),
        owner=owner_of(object_at(job.body, "metadata", "labels")),
    )


def _phase(job: GkeJob) -> tuple[Phase, str, str | None, str | None]:
    """Return phase, the cluster's word for it, the reason, and the end time."""
    cancelled = job.annotations.get(labels.CANCELLED)
    ended = _ended(job.body)
    if ended:
        phase, told = ended
        when = str(told.get("lastTransitionTime") or "")
        if phase is Phase.SUCCEEDED:
            return phase, str(told["type"]), None, when
        if cancelled is not None:
            return phase, "Cancelled", f"cancelled: {cancelled}", when
        return phase, "Failed", _failure(job, told), when
    live = [pod for pod in job.pods if object_at(pod, "status").get("phase") not in ("Succeeded", "Failed")]
    if job.suspended and not live:
        if cancelled is not None:
            return Phase.FAILED, "Cancelled", f"cancelled: {cancelled}", None
        return Phase.QUEUED, "Suspended", _waits(job), None
    stopping = None if cancelled is None else f"stopping: {cancelled}"
    if any(object_at(pod, "status").get("phase") == "Running" for pod in live):
        return Phase.RUNNING, "Running", stopping, None
    if job.several == "task" and object_at(job.body, "status").get("succeeded"):
        return Phase.RUNNING, "Running", stopping, None
    if not live and any(object_at(pod, "status").get("phase") == "Succeeded" for pod in job.pods):
        return Phase.RUNNING, "Running", stopping, None  # its pods are done, but the Job does not report it yet
    return Phase.STARTING, "Pending", stopping or next(filter(None, map(pending, live)), None), None


def _waits(job: GkeJob) -> str:
    if job.given_up:
        return f"given up: {job.given_up}"
    for each in objects_at(object_at(job.workload, "status"), "conditions"):
        if each.get("type") == "QuotaReserved" and each.get("status") == "False" and each.get("message"):
            return str(each["message"])
    checks = objects_at(object_at(job.workload, "status"), "admissionChecks")
    waiting = next((each for each in checks if each.get("state") != "Ready" and each.get("message")), None)
    if waiting:
        return f"{waiting.get('name')}: {waiting['message']}"
    return f"waits in queue {job.queue}" if job.queue else "suspended"


def pending(pod: dict[str, Any]) -> str | None:
    """Return why a pod does not run yet."""
    for each in objects_at(object_at(pod, "status"), "conditions"):
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "") or None
    waiting = object_at(lookup.state(pod), "waiting")
    told = [str(waiting[name]) for name in ("reason", "message") if waiting.get(name)]
    return ": ".join(told) or None


def _failure(job: GkeJob, told: dict[str, Any]) -> str:
    words = [str(told.get("reason") or "Failed"), str(told.get("message") or "")]
    pod = _last_failed(job)
    if pod is not None:
        ended = object_at(lookup.state(pod), "terminated")
        # A pod that ran out of time, or was evicted, reports that itself.
        words.append(str(object_at(pod, "status").get("reason") or ended.get("reason") or ""))
    return ": ".join(dict.fromkeys(word for word in words if word))


def _last_failed(job: GkeJob) -> dict[str, Any] | None:
    failed = [pod for pod in job.pods if object_at(pod, "status").get("phase") == "Failed"]
    return max(failed, key=_finished, default=None)


def _finished(pod: dict[str, Any]) -> str:
    ended = object_at(lookup.state(pod), "terminated").get("finishedAt")
    return str(ended or object_at(pod, "metadata").get("creationTimestamp") or "")


def _exit_code(job: GkeJob) -> int | None:
    """Return that of the pod that failed last, or, of a job that succeeded, of the last of all."""
    pod = _last_failed(job) if _ended(job.body) and lookup.condition(job.body, "Failed") else None
    if pod is None:
        done = [each for each in job.pods if object_at(each, "status").get("phase") == "Succeeded"]
        pod = max(done, key=_finished, default=None)
    code = object_at(lookup.state(pod or {}), "terminated").get("exitCode")
    return int(code) if code is not None else None


def _attempts(job: GkeJob, lost: int) -> int:
    """Count a task's pods, or the starts of nodes that restart together; a lost pod counts only while it exists."""
    told = object_at(job.body, "status")
    if job.jobset:
        return int(told.get("restarts") or 0) + bool(job.pods or told.get("terminalState"))
    count = sum(int(told.get(name) or 0) for name in ("active", "succeeded", "failed"))
    ignored = lost if _ignores_lost(job) else 0
    return max(count + ignored, len(job.pods)) if job.several is None else min(count, 1)


def _ignores_lost(job: GkeJob) -> bool:
    rules = objects_at(object_at(job.job_spec, "podFailurePolicy"), "rules")
    return any(rule.get("action") == "Ignore" for rule in rules)


def _tasks(job: GkeJob) -> dict[str, int]:
    told = object_at(job.body, "status")
    succeeded, active = int(told.get("succeeded") or 0), int(told.get("active") or 0)
    failed = _indexes(str(told.get("failedIndexes") or ""))
    running = min(int(told.get("ready") or 0), active)
    counts = {
        "Pending": max(job.count - succeeded - failed - running, 0),
        "Running": running,
        "Succeeded": succeeded,
        "Failed": failed,
    }
    return {name: count for name, count in counts.items() if count}


def _indexes(text: str) -> int:
    """Count the indexes of a list like `1,3-5`."""
    spans = [each.split("-") for each in text.split(",") if each]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def _gpu_hours(job: GkeJob, lost: Sequence[dict[str, Any]]) -> float | None:
    gpus, spans = _gpus(job), list[float]()
    for pod in lost:
        start, end = lookup.at(object_at(pod, "status").get("startTime")), lookup.at(_finished(pod))
        if start and end:
            spans.append(max((end - start).total_seconds(), 0.0))
    return round(gpus * sum(spans) / 3600, 3) if gpus and spans else None


def _gpus(job: GkeJob) -> int:
    limits = object_at(job.container, "resources", "limits")
    return int(limits.get(GPUS) or limits.get(CHIPS) or 0)


def _taken(job: GkeJob) -> str | None:
    pod = _last_failed(job)
    return TAKEN if pod is not None and lookup.is_lost(pod) and labels.CANCELLED not in job.annotations else None


def _first_start(job: GkeJob) -> datetime | None:
    starts = [at for pod in job.pods if (at := lookup.at(object_at(pod, "status").get("startTime")))]
    return min(starts, default=None)


PLACES_MAX = 100
RESTARTS = "jobset.sigs.k8s.io/restart-attempt"
"""Label of a JobSet's pods: the number of restarts before they were created."""
EVENTS_SEEN = 200
PODS_MAX = 100
"""Most pods whose events are read, a call each."""
_MADE = "Created pod: "
_INDEX = re.compile(r"-(\d+)-[a-z0-9]{5}$")
_DECIDED = "PodFailurePolicy"
_LOST = "has condition DisruptionTarget"
_CODE = re.compile(r"failed with exit code (\d+)")
_RESTARTED = "the job started again on all nodes"
_DELETED = "its pod was deleted"
_VANISHED = "its pod is gone with its node"


def attempts(api: Api, scope: Scope, ref: JobRef) -> list[Attempt]:
    job = lookup.look(api, scope, ref)
    made = lookup.at(object_at(job.body, "metadata").get("creationTimestamp"))
    places: dict[int, list[Attempt]] = {}
    for place, attempt in [
        *deleted_attempts(api, scope, job),
        *((lookup.index(pod), _of(pod, job)) for pod in job.pods),
    ]:
        places.setdefault(place, []).append(attempt)
    restarts = max((_restarts(pod) for pod in job.pods), default=0)
    return [
        replace(each, number=number, created=made if number == 1 else each.created)
        for place in sorted(places)[:PLACES_MAX]
        for tries in [until_the_next(places[place])]
        for number, each in enumerate(tries, max(1, restarts + 2 - len(tries)))
    ]


def _restarts(pod: Mapping[str, Any]) -> int:
    told = str(object_at(pod, "metadata", "labels").get(RESTARTS) or "")
    return int(told) if told.isdigit() else 0


def _of(pod: Mapping[str, Any], job: GkeJob) -> Attempt:
    state = lookup.state(pod)
    ended = object_at(state, "terminated")
    lost = lookup.is_lost(pod)
    code = ended.get("exitCode")
    words = [object_at(pod, "status").get("reason"), ended.get("reason"), _disruption(pod) if lost else None]
    failed = object_at(pod, "status").get("phase") == "Failed"
    stopped = lookup.at(ended.get("finishedAt"))
    return Attempt(
        0,
        lookup.index(pod) if job.several else None,
        lookup.at(object_at(pod, "metadata").get("creationTimestamp")),
        placed=_moved(pod, "PodScheduled"),
        started=lookup.at(ended.get("startedAt") or object_at(state, "running").get("startedAt")),
        stopped=stopped or (_moved(pod, "DisruptionTarget") if failed else None),
        exit_code=None if code is None else int(code),
        reason=": ".join(dict.fromkeys(str(word) for word in words if word)) or None,
        lost=lost,
    )


def _moved(pod: Mapping[str, Any], kind: str) -> datetime | None:
    told = lookup.condition(pod, kind)
    return lookup.at(told.get("lastTransitionTime")) if told else None


def _disruption(pod: Mapping[str, Any]) -> str:
    conditions = objects_at(object_at(pod, "status"), "conditions")
    told = next((each for each in conditions if each.get("type") == "DisruptionTarget"), dict[str, Any]())
    return ": ".join(str(told[name]) for name in ("reason", "message") if told.get(name))


def deleted_attempts(api: Api, scope: Scope, job: GkeJob) -> list[tuple[int, Attempt]]:
    """Return index and attempt of deleted pods, without numbers, oldest first; nothing if events may not be read."""
    owner = f"{job.name}-{labels.REPLICATED}-0" if job.jobset else job.name
    here = {str(object_at(pod, "metadata").get("name")) for pod in job.pods}
    begun = at(object_at(job.body, "metadata").get("creationTimestamp")) or datetime.min.replace(tzinfo=UTC)
    try:
        # An older Job may have had the same name.
        told = [each for each in _events(api, scope, "Job", owner) if (moment := _at(each)) and moment >= begun]
        names = [_message(each)[len(_MADE) :] for each in told if _message(each).startswith(_MADE)]
        lost = [name for name in dict.fromkeys(names) if name not in here][-PODS_MAX:]
        return [(_index(job, name), _attempt(job, name, told, _events(api, scope, "Pod", name))) for name in lost]
    except CloudRefused:
        return []


def _attempt(job: GkeJob, name: str, of_job: Iterable[Mapping[str, Any]], of_pod: list[dict[str, Any]]) -> Attempt:
    """Derive an attempt from the events that name the pod."""
    named = [each for each in of_job if name in _message(each)]
    ends = [each for each in named if not _message(each).startswith(_MADE)]
    decided = next((each for each in ends if each.get("reason") == _DECIDED), None)
    # For a JobSet, that policy decides on lost pods only (see retries.py).
    taken = decided if decided and (job.jobset or _LOST in _message(decided)) else None
    code = _CODE.search(_message(decided)) if decided else None
    # A pod that failed by itself stays, unless all pods of a JobSet are deleted with it.
    lost = taken is not None or (not ends and not job.jobset)
    killed = [each for each in of_pod if each.get("reason") == "Killing"]
    again = bool(object_at(job.body, "status").get("restarts"))
    ended = _message(ends[0]) if ends and not job.jobset else _RESTARTED if again else _DELETED
    return Attempt(
        0,
        _index(job, name) if job.several else None,
        created=_first(each for each in named if _message(each).startswith(_MADE)),
        placed=_first(each for each in of_pod if each.get("reason") == "Scheduled"),
        started=_first(each for each in of_pod if each.get("reason") == "Started"),
        stopped=_first(ends or killed),
        exit_code=int(code[1]) if code else None,
        reason=_message(decided) if decided else _VANISHED if lost else ended,
        lost=lost,
    )


def until_the_next(attempts: list[Attempt]) -> list[Attempt]:
    """Fill in missing end times: such an attempt at one place ended before the next one was created."""
    nexts = [*attempts[1:], None]
    return [
        replace(each, stopped=later.created) if later and each.stopped is None else each
        for each, later in zip(attempts, nexts, strict=True)
    ]


def _events(api: Api, scope: Scope, kind: str, name: str) -> list[dict[str, Any]]:
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    return sorted(api.first(scope.core("events"), EVENTS_SEEN, fieldSelector=selector), key=lambda each: str(_at(each)))


def _at(event: Mapping[str, Any]) -> datetime | None:
    told = (
        event.get("firstTimestamp") or event.get("eventTime") or object_at(event, "metadata").get("creationTimestamp")
    )
    return at(told)


def _first(events: Iterable[Mapping[str, Any]]) -> datetime | None:
    return min((moment for each in events if (moment := _at(each))), default=None)


def _message(event: Mapping[str, Any]) -> str:
    return str(event.get("message") or "")


def _index(job: GkeJob, name: str) -> int:
    found = _INDEX.search(name) if job.several else None
    return int(found[1]) if found else 0


_PODS = {"Running": Phase.RUNNING, "Succeeded": Phase.SUCCEEDED, "Pending": Phase.STARTING}


def tasks(api: Api, scope: Scope, ref: JobRef) -> list[TaskStatus]:
    """Read succeeded and failed indexes from the Job, the rest from its pods, several hundred a call; of deleted pods
    nothing is known. A job that is no array is its only task. Raise NotFound."""
    whole = lookup.look(api, scope, ref)
    job = status_of(ref, whole)
    if whole.several != "task" and whole.job_spec.get("completionMode") != "Indexed":
        return [TaskStatus(0, job.phase, job.native, job.attempts or 0, job.exit_code, job.reason)]
    pods: dict[int, list[dict[str, Any]]] = {}
    listed = api.items(scope.core("pods"), labelSelector=f"{labels.OBJECT}={ref.id}")
    for pod in sorted(listed, key=lambda pod: str(object_at(pod, "metadata").get("creationTimestamp"))):
        pods.setdefault(lookup.index(pod), []).append(pod)
    told = object_at(whole.body, "status")
    done, failed = (set(spans(str(told.get(name) or ""))) for name in ("completedIndexes", "failedIndexes"))
    seen: list[TaskStatus] = []
    for index in range(whole.count):
        own = pods.get(index, [])
        phase, native, reason = _task_phase(whole, own, index in done, index in failed)
        if not phase.ended and job.phase.ended:
            phase, native, reason = Phase.FAILED, job.native, job.reason
        code = object_at(lookup.state(own[-1]), "terminated").get("exitCode") if own and phase.ended else None
        seen.append(TaskStatus(index, phase, native, len(own), None if code is None else int(code), reason))
    return seen


def _task_phase(job: GkeJob, pods: list[dict[str, Any]], done: bool, failed: bool) -> tuple[Phase, str, str | None]:
    if done or failed:
        reason = _task_reason(pods[-1]) if pods and failed else None
        return (Phase.SUCCEEDED, "Succeeded", None) if done else (Phase.FAILED, "Failed", reason)
    if not pods:
        return Phase.QUEUED, "Suspended" if job.suspended else "Pending", None
    native = str(object_at(pods[-1], "status").get("phase") or "Pending")
    # The pod failed, and the index did not: the Job creates another pod.
    return _PODS.get(native, Phase.QUEUED), native, None


def _task_reason(pod: Mapping[str, Any]) -> str | None:
    ended = object_at(lookup.state(pod), "terminated")
    if lookup.is_lost(pod):
        return TAKEN
    return str(object_at(pod, "status").get("reason") or ended.get("reason") or "") or None

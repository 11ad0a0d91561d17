"""The attempts of a job, from its pods, and from what events still tell of pods that are gone.

A pod goes with its node, and all pods of a JobSet that starts again go with their Job. Events are kept for an hour:
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/ (--event-ttl). Their reasons are those
of the Job controller, the scheduler and the kubelet.

Source: PodStatus of https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part, parts
from accel.diagnostics.errors import CloudRefused

from ..base import Attempt, JobRef
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob, at

PLACES_MAX = 100
RESTARTS = "jobset.sigs.k8s.io/restart-attempt"
"""Label of a JobSet's pods: how often it had started again when they were made."""
EVENTS_SEEN = 200
PODS_MAX = 100
"""Each is a call."""
_MADE = "Created pod: "
_INDEX = re.compile(r"-(\d+)-[a-z0-9]{5}$")
_DECIDED = "PodFailurePolicy"
_LOST = "has condition DisruptionTarget"
_CODE = re.compile(r"failed with exit code (\d+)")
_RESTARTED = "the job started again on all nodes"
_DELETED = "its pod was deleted"
_VANISHED = "its pod is gone with its node"


def attempts(api: Api, scope: Scope, ref: JobRef) -> list[Attempt]:
    """By task or node, the oldest first. Raises NotFound."""
    job = lookup.look(api, scope, ref)
    made = lookup.at(part(job.body, "metadata").get("creationTimestamp"))
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
    told = str(part(pod, "metadata", "labels").get(RESTARTS) or "")
    return int(told) if told.isdigit() else 0


def _of(pod: Mapping[str, Any], job: GkeJob) -> Attempt:
    state = lookup.state(pod)
    ended = part(state, "terminated")
    lost = lookup.is_lost(pod)
    code = ended.get("exitCode")
    words = [part(pod, "status").get("reason"), ended.get("reason"), _disruption(pod) if lost else None]
    failed = part(pod, "status").get("phase") == "Failed"
    stopped = lookup.at(ended.get("finishedAt"))
    return Attempt(
        0,
        lookup.index(pod) if job.several else None,
        lookup.at(part(pod, "metadata").get("creationTimestamp")),
        placed=_moved(pod, "PodScheduled"),
        started=lookup.at(ended.get("startedAt") or part(state, "running").get("startedAt")),
        stopped=stopped or (_moved(pod, "DisruptionTarget") if failed else None),
        exit_code=None if code is None else int(code),
        reason=": ".join(dict.fromkeys(str(word) for word in words if word)) or None,
        lost=lost,
    )


def _moved(pod: Mapping[str, Any], kind: str) -> datetime | None:
    """Since when a condition holds."""
    told = lookup.condition(pod, kind)
    return lookup.at(told.get("lastTransitionTime")) if told else None


def _disruption(pod: Mapping[str, Any]) -> str:
    conditions = parts(part(pod, "status"), "conditions")
    told = next((each for each in conditions if each.get("type") == "DisruptionTarget"), dict[str, Any]())
    return ": ".join(str(told[name]) for name in ("reason", "message") if told.get(name))


def deleted_attempts(api: Api, scope: Scope, job: GkeJob) -> list[tuple[int, Attempt]]:
    """Index and attempt, not numbered yet, the oldest first; none where events may not be read."""
    owner = f"{job.name}-{labels.REPLICATED}-0" if job.jobset else job.name
    here = {str(part(pod, "metadata").get("name")) for pod in job.pods}
    begun = at(part(job.body, "metadata").get("creationTimestamp")) or datetime.min.replace(tzinfo=UTC)
    try:
        # An older Job may have had the same name.
        told = [each for each in _events(api, scope, "Job", owner) if (moment := _at(each)) and moment >= begun]
        names = [_message(each)[len(_MADE) :] for each in told if _message(each).startswith(_MADE)]
        lost = [name for name in dict.fromkeys(names) if name not in here][-PODS_MAX:]
        return [(_index(job, name), _attempt(job, name, told, _events(api, scope, "Pod", name))) for name in lost]
    except CloudRefused:
        return []


def _attempt(job: GkeJob, name: str, of_job: Iterable[Mapping[str, Any]], of_pod: list[dict[str, Any]]) -> Attempt:
    """What the events that name the pod say."""
    named = [each for each in of_job if name in _message(each)]
    ends = [each for each in named if not _message(each).startswith(_MADE)]
    decided = next((each for each in ends if each.get("reason") == _DECIDED), None)
    # Of a JobSet only what was lost is decided by that policy (see retries.py).
    taken = decided if decided and (job.jobset or _LOST in _message(decided)) else None
    code = _CODE.search(_message(decided)) if decided else None
    # A pod that failed by itself stays, unless all of a JobSet's are deleted with it.
    lost = taken is not None or (not ends and not job.jobset)
    killed = [each for each in of_pod if each.get("reason") == "Killing"]
    again = bool(part(job.body, "status").get("restarts"))
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
    """Of one place, in their order: one of which nobody tells when it ended had done so before the next was made."""
    nexts = [*attempts[1:], None]
    return [
        replace(each, stopped=later.created) if later and each.stopped is None else each
        for each, later in zip(attempts, nexts, strict=True)
    ]


def _events(api: Api, scope: Scope, kind: str, name: str) -> list[dict[str, Any]]:
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    return sorted(api.first(scope.core("events"), EVENTS_SEEN, fieldSelector=selector), key=lambda each: str(_at(each)))


def _at(event: Mapping[str, Any]) -> datetime | None:
    told = event.get("firstTimestamp") or event.get("eventTime") or part(event, "metadata").get("creationTimestamp")
    return at(told)


def _first(events: Iterable[Mapping[str, Any]]) -> datetime | None:
    return min((moment for each in events if (moment := _at(each))), default=None)


def _message(event: Mapping[str, Any]) -> str:
    return str(event.get("message") or "")


def _index(job: GkeJob, name: str) -> int:
    found = _INDEX.search(name) if job.several else None
    return int(found[1]) if found else 0

"""Attempts whose pods are gone, from what the cluster's events still tell of them.

A pod goes with its node, and all pods of a JobSet that starts again go with their Job. Events are kept for an hour:
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/ (--event-ttl). Their reasons are those
of the Job controller, the scheduler and the kubelet.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part
from accel.diagnostics.errors import CloudRefused

from ..base import Attempt
from . import labels
from .labels import Scope
from .lookup import GkeJob, at

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

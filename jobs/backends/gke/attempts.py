"""The attempts of a job, from its pods, and from what events still tell of pods that are gone.

Source: PodStatus of https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part, parts

from ..base import Attempt, JobRef
from . import lookup
from .deleted_pods import deleted_attempts, until_the_next
from .labels import Scope

PLACES_MAX = 100
RESTARTS = "jobset.sigs.k8s.io/restart-attempt"
"""Label of a JobSet's pods: how often it had started again when they were made."""


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


def _of(pod: Mapping[str, Any], job: lookup.GkeJob) -> Attempt:
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

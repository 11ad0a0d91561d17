"""Makes the objects of a request, so that one key makes one job.

A Job's name is made from the key, and Kubernetes takes a name once: a create that was not answered is made again, and
finds what the first one made. The key is remembered for as long as the object is there: until `keep_s` after its end.
"""

import json
from dataclasses import replace
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import AlreadyExists, part
from accel.clouds.timeouts import pause
from accel.diagnostics.errors import (
    BadInput,
    CloudRefused,
    CloudSilent,
    JobsError,
    NoCredentials,
    NotFound,
    Throttled,
    Unreached,
)

from ..base import JobRef, Request
from . import labels
from .labels import Scope

AGAIN = "run the same command with the same --key again: it makes no second job"


def submit(request: Request, api: Api) -> JobRef:
    """The job of request.key, made now or before.

    Raises BadInput where the key is another job's, NoCredentials, CloudRefused and NotFound where nothing was made,
    CloudSilent where that is not known: submit the same key again.
    """
    scope = Scope.parse(request.body["scope"])
    objects: list[dict[str, Any]] = request.body["objects"]
    *others, job = objects
    kept = json.dumps(objects, sort_keys=True, separators=(",", ":"))
    annotations = job["metadata"]["annotations"] | {labels.REQUEST: kept}
    job = {**job, "metadata": {**job["metadata"], "annotations": annotations}}
    for each in others:
        _made(api, path_of(scope, each), each)
    try:
        found, there = _made(api, path_of(scope, job), job)
        _check(found, annotations, request.name)
    except (BadInput, CloudRefused, NoCredentials, NotFound) as error:
        # Of a key that is another job's, the Service is that job's.
        if not isinstance(error, BadInput):
            _take_back(api, scope, others)
        raise
    for each in others:
        _own(api, path_of(scope, each), each, found)
    return replace(scope.ref(request.name), there=there)


def path_of(scope: Scope, made: dict[str, Any]) -> str:
    """Where objects of its kind are."""
    return {"Job": scope.jobs, "JobSet": scope.jobsets, "Service": scope.core("services")}[made["kind"]]


def _made(api: Api, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The object, and whether it was there before. Creates may be made again: the second one is refused."""
    name, in_doubt = body["metadata"]["name"], False
    for attempt in range(api.timing.attempts):
        try:
            return api.create(path, body, fieldValidation="Strict"), False
        except (AlreadyExists, CloudSilent) as error:
            silent = error if isinstance(error, CloudSilent) else None
        not_made = isinstance(silent, Throttled | Unreached)
        there = silent is None and not in_doubt
        in_doubt = in_doubt or not not_made
        found = None if not_made else _there(api, path, name)
        if found is not None:
            return found, there
        if silent is not None and attempt + 1 == api.timing.attempts:
            unknown = f"; whether {name} was made is not known" if in_doubt else ""
            raise CloudSilent(f"{silent.message}{unknown}", AGAIN) from silent
        pause(api.timing, attempt)
    raise CloudSilent(f"{name}: its name is taken by what is being deleted, or cannot be seen just now", AGAIN)


def _there(api: Api, path: str, name: str) -> dict[str, Any] | None:
    """What has the name; None where it is gone again, or going, or cannot be seen just now."""
    try:
        found = api.get(f"{path}/{name}")
    except (NotFound, CloudSilent):
        return None
    return None if part(found, "metadata").get("deletionTimestamp") else found


def _check(found: dict[str, Any], annotations: dict[str, str], name: str) -> None:
    has = part(found, "metadata", "annotations")
    if (has.get(labels.KEY), has.get(labels.SPEC)) != (annotations[labels.KEY], annotations[labels.SPEC]):
        raise BadInput(
            f"key: it was used for another request: {name}",
            "submit the job as it was then, or use another --key",
        )


def _own(api: Api, path: str, made: dict[str, Any], owner: dict[str, Any]) -> None:
    """What a job needs goes with it."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    try:
        api.patch(f"{path}/{made['metadata']['name']}", {"metadata": {"ownerReferences": [reference]}})
    except CloudSilent as error:
        raise CloudSilent(error.message, AGAIN) from error


def _take_back(api: Api, scope: Scope, others: list[dict[str, Any]]) -> None:
    for each in others:
        try:
            api.delete(f"{path_of(scope, each)}/{each['metadata']['name']}")
        except JobsError:
            return  # the refusal of the job itself counts for more

"""Calls that change jobs: idempotent submission, resubmission, and cancellation.

A Job's name is derived from the key, and Kubernetes accepts a name once. A create without an answer is repeated, and
finds what the first one created. The key is remembered for as long as the object exists: until `keep_s` after its end.

Cancellation ends every pod, returns the queue's quota, and leaves the job visible:

running    the Job's deadline is set to a second: it ends as Failed, its pods get SIGTERM and their grace period
suspended  a deadline does not run; Kueue is told to leave the job alone (its Workload is made inactive, as
           `kueuectl stop workload` does), and without a queue it is suspended already

Both get an annotation first. With it, a job that never started counts as ended, and a job that is just being started
has the deadline on it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import AlreadyExists
from accel.clouds.timeouts import pause
from accel.contract.gke import ASKING_AGAIN
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
from accel.json_values import object_at, objects_at

from ...model import sweep_tasks
from ...model.keys import platform_name
from ..base import JobRef, Request
from ..same_key import AGAIN, other_request
from . import labels, lookup
from .labels import Scope
from .lookup import GkeJob, body, main
from .request import MIN_PARALLELISM, request
from .status import status


def submit(request: Request, api: Api) -> JobRef:
    """Raise BadInput if the key belongs to another job, NoCredentials, CloudRefused and NotFound if nothing was
    created, CloudSilent if that is unknown: submit the same key again."""
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
        # If the key belongs to another job, so does the Service.
        if not isinstance(error, BadInput):
            _take_back(api, scope, others)
        raise
    for each in others:
        _own(api, path_of(scope, each), each, found)
    return replace(scope.ref(request.name), there=there)


def path_of(scope: Scope, made: dict[str, Any]) -> str:
    return {"Job": scope.jobs, "JobSet": scope.jobsets, "Service": scope.core("services")}[made["kind"]]


def _made(api: Api, path: str, body: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the object, and whether it existed before. Creates may be repeated: the second one is refused."""
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
    try:
        found = api.get(f"{path}/{name}")
    except (NotFound, CloudSilent):
        return None
    return None if object_at(found, "metadata").get("deletionTimestamp") else found


def _check(found: dict[str, Any], annotations: dict[str, str], name: str) -> None:
    has = object_at(found, "metadata", "annotations")
    if (has.get(labels.KEY), has.get(labels.SPEC)) != (annotations[labels.KEY], annotations[labels.SPEC]):
        raise other_request(name)


def _own(api: Api, path: str, made: dict[str, Any], owner: dict[str, Any]) -> None:
    """Make the job own an object, which is then deleted with it."""
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


def resubmit_request(api: Api, scope: Scope, ref: JobRef, key: str, tasks: Sequence[int] | None = None) -> Request:
    """Raise NotFound if the job has been deleted, BadInput if it does not record its request."""
    job = GkeJob(body(api, scope, ref.id))
    kept = job.annotations.get(labels.REQUEST)
    if not isinstance(kept, str):
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    name = labels.object_name(platform_name(str(job.annotations.get(labels.NAME, ref.id)), key))
    # The old name is in host names, selectors and variables too. Its last twelve digits make it unmistakable.
    objects: list[dict[str, Any]] = json.loads(kept.replace(ref.id, name))
    annotations: dict[str, Any] = objects[-1]["metadata"]["annotations"]
    annotations[labels.KEY] = key
    annotations.pop(labels.SPEC, None)
    if tasks is not None:
        _narrow(objects[-1], tasks, ref)
    return request(str(annotations.get(labels.TARGET, "")), key, str(scope), objects, [])


def _narrow(made: dict[str, Any], tasks: Sequence[int], ref: JobRef) -> None:
    spec: dict[str, Any] = made["spec"]
    container: dict[str, Any] = main(objects_at(object_at(spec, "template", "spec"), "containers"))
    env: list[dict[str, Any]] = container.get("env", [])
    told = {each["name"]: str(each["value"]) for each in env if "value" in each}
    changed = sweep_tasks.narrow_environment(told, tasks, ref)
    rest = [each for each in env if each["name"] not in changed]
    container["env"] = sorted(
        [*rest, *({"name": name, "value": changed[name]} for name in changed)], key=lambda each: str(each["name"])
    )
    if spec.get("completionMode") == "Indexed":
        spec |= {"completions": len(tasks), "parallelism": min(int(spec["parallelism"]), len(tasks))}
        if spec["parallelism"] == 1:  # Kueue accepts a least number only below the most
            made["metadata"]["annotations"].pop(MIN_PARALLELISM, None)


DEADLINE_S = 1


def cancel(api: Api, scope: Scope, ref: JobRef, reason: str) -> None:
    if status(api, scope, ref).phase.ended:
        return
    body = lookup.body(api, scope, ref.id)
    annotation = {"metadata": {"annotations": {labels.CANCELLED: reason or "cancelled"}}}
    job = GkeJob(body)
    if job.jobset:
        body = api.patch(f"{scope.jobsets}/{ref.id}", annotation)
        if not _end_children(api, scope, ref.id) and job.queue is None:
            body = api.patch(f"{scope.jobsets}/{ref.id}", {"spec": {"suspend": True}})
    else:
        deadline = {"spec": {"activeDeadlineSeconds": DEADLINE_S}}
        body = api.patch(f"{scope.jobs}/{ref.id}", {**annotation, **deadline})
    if GkeJob(body).queue and GkeJob(body).suspended:
        _deactivate(api, scope, body)


def _end_children(api: Api, scope: Scope, name: str) -> int:
    """End the running Jobs of a JobSet by a deadline, which its failure policy treats as final. Return their number."""
    ended = 0
    for child in api.items(scope.jobs, labelSelector=f"jobset.sigs.k8s.io/jobset-name={name}"):
        if object_at(child, "spec").get("suspend") is not True:
            path = f"{scope.jobs}/{object_at(child, 'metadata').get('name')}"
            try:
                api.patch(path, {"spec": {"activeDeadlineSeconds": DEADLINE_S}})
                ended += 1
            except NotFound:
                continue  # it was replaced in between; another cancellation ends the new one
    return ended


def _deactivate(api: Api, scope: Scope, body: dict[str, Any]) -> None:
    workload = lookup.workload(api, scope, str(object_at(body, "metadata").get("uid")))
    if workload is None:
        return
    again = ASKING_AGAIN in object_at(workload, "metadata", "labels")
    if again or object_at(workload, "spec").get("active") is not False:
        name = object_at(workload, "metadata").get("name")
        # With the label, the client that requests its nodes anew would reactivate it.
        unmarked = {"metadata": {"labels": {ASKING_AGAIN: None}}} if again else {}
        api.patch(f"{scope.workloads}/{name}", {"spec": {"active": False}, **unmarked})

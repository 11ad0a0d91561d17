"""Refusals of Google Batch for a job, and the values with which it completes one."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from accel.catalog.places import regions

from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError
from ..world import Call, Json, by_id
from .machines import locations

MOST_TASKS, MOST_PARALLEL = 100_000, 5_000
"""https://docs.cloud.google.com/batch/quotas"""
_MOST_BYTES = 1024 * 1024
_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_DEFAULT = {"cpuMilli": "2000", "memoryMib": "2000"}  # the discovery document's


def invalid(field: str, why: str) -> ApiError:
    """Return the error for an invalid field. Form: https://github.com/broadinstitute/cromwell/issues/7708. What follows
    `invalid.` is the sandbox's, except for locations."""
    return ApiError(400, f"{field} field is invalid. {why}")


def check_request(call: Call) -> str:
    """Return the job's id, generated where the request has none. Raises ApiError."""
    if call.location not in regions("gcp"):
        raise ApiError(403, f"Permission denied on 'locations/{call.location}' (or it may not exist).")
    if len(json.dumps(call.body, separators=(",", ":"))) > _MOST_BYTES:
        raise ApiError(400, f"Request payload size exceeds the limit: {_MOST_BYTES} bytes.")
    if given := call.query.get("requestId"):
        try:
            known = uuid.UUID(given).int != 0
        except ValueError:
            known = False
        if not known:
            raise invalid("request_id", f"{given!r} is not a valid UUID.")
    name = call.query.get("jobId") or f"j-{uuid.uuid4()}"
    if not _ID.fullmatch(name):
        raise invalid("job_id", f"{name!r} does not match {_ID.pattern}.")
    return name


def complete_job(call: Call, key: str, name: str) -> Json:
    """Return the body as the service shows it: numbers of 64 bits as strings, defaults, names. Raises ApiError."""
    job: Json = _shown(call, {"$ref": "Job"}, call.body)
    for field, why in _faults(job):
        raise invalid(field, why)
    group, policy = job["taskGroups"][0], job.setdefault("allocationPolicy", {})
    places = locations(policy, call.location, invalid)
    _account(call, policy.get("serviceAccount", {}).get("email", ""))
    _template(call, policy)
    policy["location"] = {"allowedLocations": places}
    policy["labels"] = {"batch-job-id": name, **policy.get("labels", {})}
    policy.setdefault("serviceAccount", {"email": f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"})
    group["name"] = f"{numbered_name(key)}/taskGroups/group0"
    group["taskCount"] = str(_tasks(group))
    group.setdefault("parallelism", str(min(_tasks(group), MOST_PARALLEL)))
    spec = group["taskSpec"]
    spec["computeResource"] = {**_DEFAULT, **spec.get("computeResource", {})}
    return {**job, "name": key}


def numbered_name(key: str) -> str:
    """Return a name with the project's number, as in the names of task groups and tasks:
    https://github.com/nextflow-io/nextflow/issues/5422"""
    return key.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1)


def _shown(call: Call, schema: Json, value: Any) -> Any:
    while "$ref" in schema:
        schema = call.document.schema(schema["$ref"])
    if isinstance(value, dict):
        members, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {name: _shown(call, members.get(name, other), item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(call, schema.get("items", {}), item) for item in value]
    return str(value) if schema.get("format") == "int64" else value


def _tasks(group: Json) -> int:
    return len(group.get("taskEnvironments", [])) or int(group.get("taskCount", 1))


def _between(least: int, most: int) -> Callable[[Any], str]:
    return lambda value: "" if least <= int(value) <= most else f"{value} is not between {least} and {most}."


_NUMBERS: tuple[tuple[str, Callable[[Any], str]], ...] = (
    ("priority", _between(0, 99)),
    ("task_groups[0].task_count", _between(1, MOST_TASKS)),
    ("task_groups[0].parallelism", _between(1, MOST_PARALLEL)),
    ("task_groups[0].task_count_per_node", _between(1, MOST_TASKS)),
    ("task_groups[0].task_spec.max_retry_count", _between(0, 10)),
    ("task_groups[0].task_spec.compute_resource.cpu_milli", _between(1, 2**31)),
    ("task_groups[0].task_spec.compute_resource.memory_mib", _between(1, 2**31)),
)
"""Ranges of numbers. Sources: the discovery document, and https://docs.cloud.google.com/batch/quotas"""
_ONE = (
    ("allocation_policy.instances", "Only instances[0] is supported."),
    ("task_groups[0].task_spec.lifecycle_policies", "Only one lifecycle policy is supported."),
)
_RESERVED = ("labels", "allocation_policy.labels")


def _at(job: Json, path: str) -> Any:
    found: Any = job
    for part in path.split("."):
        name, _, index = part.rstrip("]").partition("[")
        name = re.sub(r"_(\w)", lambda each: each[1].upper(), name)
        found = found.get(name) if isinstance(found, dict) else None
        found = found[int(index)] if index and found else found
    return found


def _faults(job: Json) -> Iterator[tuple[str, str]]:
    groups = job.get("taskGroups", [])
    if len(groups) != 1:
        yield "job.task_groups", f"{len(groups)} task groups are specified; only one is supported."
        return
    for path, wrong in _NUMBERS:
        if (value := _at(job, path)) is not None and (why := wrong(value)):
            yield f"job.{path}", why
    for path, why in _ONE:
        if len(_at(job, path) or []) > 1:
            yield f"job.{path}", why
    for path in _RESERVED:
        for name in _at(job, path) or {}:
            if name.startswith(("goog-", "google-")):
                yield f"job.{path}", f"Label {name!r} has a reserved prefix."
    yield from _runnables(groups[0].get("taskSpec", {}))
    if groups[0].get("schedulingPolicy") == "IN_ORDER" and int(groups[0].setdefault("parallelism", "1")) != 1:
        yield "job.task_groups[0].parallelism", "It must be 1 if the scheduling policy is IN_ORDER."
    logs = job.get("logsPolicy", {})
    if logs.get("destination") == "PATH" and not logs.get("logsPath"):
        yield "job.logs_policy.logs_path", "It must be set if the destination is PATH."


def _runnables(spec: Json) -> Iterator[tuple[str, str]]:
    at = "job.task_groups[0].task_spec.runnables"
    if not spec.get("runnables"):
        yield at, "At least one runnable is required."
    for index, each in enumerate(spec.get("runnables", [])):
        kinds = [name for name in ("container", "script", "barrier") if name in each]
        if len(kinds) != 1:
            yield f"{at}[{index}]", "It must have one of container, script and barrier."
        if "container" in each and not each["container"].get("imageUri"):
            yield f"{at}[{index}].container.image_uri", "It is required."
        if "script" in each and len({"text", "path"} & {name for name, text in each["script"].items() if text}) != 1:
            yield f"{at}[{index}].script", "It must have one of path and text."


def _account(call: Call, email: str) -> None:
    """Check that a service account exists. Wording: https://docs.cloud.google.com/batch/docs/troubleshooting"""
    own = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if own and f"iam/projects/{PROJECT}/serviceAccounts/{email}" not in call.world.items:
        raise ApiError(403, f"caller does not have access to act as the specified service account: {email}")


def _template(call: Call, policy: Json) -> None:
    """Refuse an unknown instance template, given by its name, a part of its link, or the whole link."""
    for each in policy.get("instances", []):
        given = each.get("instanceTemplate", "")
        path = by_id(given.partition("/compute/v1/")[2] or given)
        key = path if "/" in path else f"projects/{PROJECT}/global/instanceTemplates/{path}"
        if given and f"compute/{key}" not in call.world.items:
            raise invalid("job.allocation_policy.instances[0].instance_template", f"{given!r} was not found.")

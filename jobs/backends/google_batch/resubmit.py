"""A job once more, from what Batch says of it."""

import json
from collections.abc import Sequence
from typing import Any

from accel.clouds.google.api import Google
from accel.clouds.google.rest import entries, mapping

from ...model import sweep_tasks
from ...model.keys import NAMED_DIGITS, platform_name
from ..base import JobRef, Request
from . import labels as marks
from .labels import Scope
from .lookup import look

OUTPUT = ("name", "uid", "status", "createTime", "updateTime")
"""What Batch says and is not told."""
PREDEFINED = ("goog-", "google-", "batch-job-id", "batch-job-uid", "batch-node")
"""What labels of Batch's own begin with. Source:
https://docs.cloud.google.com/batch/docs/organize-resources-using-labels"""


def again(google: Google, scope: Scope, ref: JobRef, key: str, tasks: Sequence[int] | None = None) -> Request:
    """The request for the same job under a new key; for some of its `tasks` alone, of a sweep. Raises NotFound where
    Batch has forgotten the job."""
    found = look(google, scope, ref.id)
    name = str(found.labels.get(marks.NAME) or ref.id[: marks.ID_MAX - NAMED_DIGITS - 1])
    target = str(found.labels.get(marks.TARGET, ""))
    new = marks.job_id(platform_name(name, key))
    job = {field: value for field, value in found.body.items() if field not in OUTPUT}
    if marks.MAKER in found.labels:
        # The old id is in variables and folders too; its last twelve digits make it no other word.
        job = json.loads(json.dumps(job).replace(ref.id, new))
    job["labels"] = _own(job.get("labels"))
    if "labels" in (allocation := mapping(job.get("allocationPolicy")) or {}):
        job["allocationPolicy"] = {**allocation, "labels": _own(allocation["labels"])}
    groups = (mapping(each) or {} for each in entries(job.get("taskGroups")))
    job["taskGroups"] = [{field: each[field] for field in each if field != "name"} for each in groups]
    if tasks is not None:
        _narrow(job["taskGroups"][0], tasks, ref)
    return Request(
        marks.KIND, target, new, key, {"parent": scope.parent, "job": marks.labelled(job, name, key, target)}
    )


def _own(labels: Any) -> dict[str, Any]:
    return {name: text for name, text in (mapping(labels) or {}).items() if not name.startswith(PREDEFINED)}


def _narrow(group: dict[str, Any], tasks: Sequence[int], ref: JobRef) -> None:
    spec: dict[str, Any] = mapping(group.get("taskSpec")) or {}
    environment: dict[str, Any] = mapping(spec.get("environment")) or {}
    told = sweep_tasks.narrowed(mapping(environment.get("variables")) or {}, tasks, ref)
    group["taskSpec"] = {**spec, "environment": {**environment, "variables": dict(sorted(told.items()))}}
    most = {name: min(int(group[name]), len(tasks)) for name in ("parallelism", "taskCountPerNode") if group.get(name)}
    # Batch gives integers of 64 bits as text: https://protobuf.dev/programming-guides/json/
    group |= {"taskCount": len(tasks), **most}

"""A job once more, from what was sent."""

import json
from collections.abc import Sequence
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.responses import part, parts
from accel.diagnostics.errors import BadInput

from ...model import sweep_tasks
from ...model.keys import platform_name
from ..base import JobRef, Request
from . import labels
from .labels import Scope
from .lookup import GkeJob, body, main
from .request import MIN_PARALLELISM, request


def again(api: Api, scope: Scope, ref: JobRef, key: str, tasks: Sequence[int] | None = None) -> Request:
    """The request for the same job under a new key; for some of its `tasks` alone, of a sweep.

    Raises NotFound where the job has been deleted, BadInput where it does not say what was sent.
    """
    job = GkeJob(body(api, scope, ref.id))
    kept = job.annotations.get(labels.REQUEST)
    if not isinstance(kept, str):
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    name = labels.object_name(platform_name(str(job.annotations.get(labels.NAME, ref.id)), key))
    # The old name is in host names, selectors and variables too; its last twelve digits make it no other word.
    objects: list[dict[str, Any]] = json.loads(kept.replace(ref.id, name))
    annotations: dict[str, Any] = objects[-1]["metadata"]["annotations"]
    annotations[labels.KEY] = key
    annotations.pop(labels.SPEC, None)
    if tasks is not None:
        _narrow(objects[-1], tasks, ref)
    return request(str(annotations.get(labels.TARGET, "")), key, str(scope), objects, [])


def _narrow(made: dict[str, Any], tasks: Sequence[int], ref: JobRef) -> None:
    spec: dict[str, Any] = made["spec"]
    container: dict[str, Any] = main(parts(part(spec, "template", "spec"), "containers"))
    env: list[dict[str, Any]] = container.get("env", [])
    told = {each["name"]: str(each["value"]) for each in env if "value" in each}
    changed = sweep_tasks.narrowed(told, tasks, ref)
    rest = [each for each in env if each["name"] not in changed]
    container["env"] = sorted(
        [*rest, *({"name": name, "value": changed[name]} for name in changed)], key=lambda each: str(each["name"])
    )
    if spec.get("completionMode") == "Indexed":
        spec |= {"completions": len(tasks), "parallelism": min(int(spec["parallelism"]), len(tasks))}
        if spec["parallelism"] == 1:  # Kueue takes a least number below the most only
            made["metadata"]["annotations"].pop(MIN_PARALLELISM, None)

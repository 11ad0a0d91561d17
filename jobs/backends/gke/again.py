"""A job once more, from what was sent."""

import json
from typing import Any

from ...backend import JobRef, Request
from ...errors import BadInput
from ...keys import platform_name
from ...kubernetes import Api
from . import marks
from .found import Found, body
from .marks import Scope
from .render import request


def again(api: Api, scope: Scope, ref: JobRef, key: str) -> Request:
    """The request for the same job under a new key.

    Raises NotFound where the job has been deleted, BadInput where it does not say what was sent.
    """
    job = Found(body(api, scope, ref.id))
    kept = job.annotations.get(marks.REQUEST)
    if not isinstance(kept, str):
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    name = marks.object_name(platform_name(str(job.annotations.get(marks.NAME, ref.id)), key))
    # The old name is in host names, selectors and variables too; its last twelve digits make it no other word.
    objects: list[dict[str, Any]] = json.loads(kept.replace(ref.id, name))
    annotations: dict[str, Any] = objects[-1]["metadata"]["annotations"]
    annotations[marks.KEY] = key
    annotations.pop(marks.SPEC, None)
    return request(str(annotations.get(marks.TARGET, "")), key, str(scope), objects, [])

"""A job once more, from what was sent."""

import json
from typing import Any

from accel.clouds.google.api import Google
from accel.diagnostics.errors import BadInput

from ...backend import JobRef, Request
from ...keys import platform_name
from . import marks
from .found import look
from .marks import Scope

SENT = ("jobSpec", "encryptionSpec")


def again(google: Google, scope: Scope, ref: JobRef, key: str) -> Request:
    """The request for the same job under a new key.

    Raises NotFound where the job has been deleted, BadInput where it was not made here.
    """
    job = look(google, scope, ref.id)
    if job.labels.get(marks.MAKER) != marks.JOBS:
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    target, given = str(job.labels.get(marks.TARGET, "")), str(job.labels.get(marks.NAME, ""))
    name = platform_name(job.name.rpartition("-")[0], key)
    # The old name is in folders too; its last twelve digits make it no other word.
    sent: dict[str, Any] = {each: job.body[each] for each in SENT if each in job.body}
    sent = json.loads(json.dumps(sent).replace(job.name, name))
    own = {label: text for label, text in job.labels.items() if not label.startswith("accel-")}
    labelled = marks.labelled({"displayName": name, **sent, "labels": own}, given, key, target)
    return Request(marks.KIND, target, name, key, {"parent": scope.parent, "customJob": labelled})

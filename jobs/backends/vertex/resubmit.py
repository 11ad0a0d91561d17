"""A job once more, from what was sent."""

import json
from typing import Any

from accel.clouds.google.api import Google
from accel.diagnostics.errors import BadInput

from ...model.keys import platform_name
from ..base import JobRef, Request
from . import labels
from .labels import Scope
from .lookup import look

SENT = ("jobSpec", "encryptionSpec")


def again(google: Google, scope: Scope, ref: JobRef, key: str) -> Request:
    """The request for the same job under a new key.

    Raises NotFound where the job has been deleted, BadInput where it was not made here.
    """
    job = look(google, scope, ref.id)
    if job.labels.get(labels.MAKER) != labels.JOBS:
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    target, given = str(job.labels.get(labels.TARGET, "")), str(job.labels.get(labels.NAME, ""))
    name = platform_name(job.name.rpartition("-")[0], key)
    # The old name is in folders too; its last twelve digits make it no other word.
    sent: dict[str, Any] = {each: job.body[each] for each in SENT if each in job.body}
    sent = json.loads(json.dumps(sent).replace(job.name, name))
    own = {label: text for label, text in job.labels.items() if not label.startswith("accel-")}
    labelled = labels.labelled({"displayName": name, **sent, "labels": own}, given, key, target)
    return Request(labels.KIND, target, name, key, {"parent": scope.parent, "customJob": labelled})

"""The budget gate of a stack on Google Cloud: an object in the stack's bucket, whose address is in the target."""

import json
import time
from collections.abc import Mapping
from typing import Any

from accel.clouds.google.api import Google, object_path
from accel.contract import stop
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound, OverLimit

LOOKED_S = 5
"""Seconds between two reads, for a command that submits thousands of jobs."""
_looked: dict[str, float] = {}


def refuse(google: Google, target: Any) -> None:
    """Raise OverLimit if the target's stack is stopped, CloudRefused if the caller may not read that. The target may be
    None: that of a resubmitted job can be unknown."""
    where: str | None = getattr(target, "stop", None)
    if where is None or time.monotonic() - _looked.get(where, -LOOKED_S) < LOOKED_S:
        return
    found = _read(google, where)
    if why := found.get(stop.STOPPED):
        raise OverLimit(
            f"the stack accepts no new jobs: {why}",
            "`stacks budget status` shows what was stopped, `stacks budget resume` undoes the stop",
        )
    _looked[where] = time.monotonic()


def _read(google: Google, where: str) -> Mapping[str, Any]:
    bucket, _, name = where.removeprefix("gs://").partition("/")
    try:
        data, _ = google.read("storage", object_path(bucket, name))
        return json.loads(data)
    except NotFound:
        return {}  # nobody has ever stopped it
    except CloudRefused as refused:
        hint = "gcp.budget_stop.readers of the stack names who may submit"
        raise CloudRefused(f"whether the stack is stopped: {refused.message}", hint) from refused
    except ValueError as error:
        raise CloudSilent(f"{where}: is no JSON: {error}") from error

"""Keeps an update from undoing the stop of a budget: autoscaling that the function has switched off, an update of the
pool would switch on again, and a TPU request that it has deleted, a refresh and an update would make again.

An update without changes touches nothing and passes. A state names its hooks, so every run registers them.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any
from urllib.parse import quote

import pulumi

from accel.contract import stop

from . import queue_hooks

ROOT = "https://storage.googleapis.com/storage/v1/"
OVERRIDE = "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE"
"""As gcloud reads it: https://cloud.google.com/sdk/gcloud/reference/topic/endpoint-override"""


class Stopped(Exception):
    """The stack is stopped, and the change would undo it."""


class StopHooks:
    """The hooks, and where they look: `where` is set once the section has something that stops it."""

    def __init__(self) -> None:
        self.where: pulumi.Output[str] | None = None
        prefix = "accel:gcp:BudgetStop"
        self.binding = pulumi.ResourceHookBinding(
            before_create=[pulumi.ResourceHook(f"{prefix}:create", self._before)],
            before_update=[pulumi.ResourceHook(f"{prefix}:update", self._before)],
        )

    async def _before(self, args: pulumi.ResourceHookArgs) -> None:
        where = await self.where.future() if self.where else None
        if why := where and reason(where):
            raise Stopped(
                f"{args.name}: the stack is stopped ({why}), and this change would undo it; "
                "`stacks budget resume` takes the stop back, then deploy again"
            )


def reason(where: str) -> str | None:
    """Why the stack is stopped, from gs://<bucket>/<object>; None where it is not. Raises RunError where that cannot be
    read."""
    requests: Any = import_module("requests")
    bucket, _, name = where.removeprefix("gs://").partition("/")
    root = (os.environ.get(OVERRIDE) or ROOT).rstrip("/")
    headers = {"Authorization": f"Bearer {queue_hooks.token()}"}
    url = f"{root}/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    try:
        answer = requests.get(url, params={"alt": "media"}, headers=headers, timeout=30)
    except requests.RequestException as error:
        raise pulumi.RunError(f"{where}: {error}") from error
    if answer.status_code == 404:
        return None
    if not answer.ok:
        raise pulumi.RunError(f"{where}: HTTP {answer.status_code}: {answer.text[:500]}")
    return json.loads(answer.content).get(stop.STOPPED)

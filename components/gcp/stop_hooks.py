"""Hooks that keep an update from undoing the stop of a budget, and that make its function wait for Eventarc. After the
function has acted, an update of the pool would switch autoscaling on again, and a refresh and an update would recreate
a TPU request that it has deleted. An update without changes touches nothing and passes. A state names its hooks, so
every run registers them. In a project that has not used Eventarc before, Google refuses the function until the service
agent has its permissions, which takes minutes and begins with the first try:
https://github.com/pulumi/pulumi-gcp/issues/1290"""

from __future__ import annotations

import json
import time
from importlib import import_module
from typing import Any

import pulumi

from accel.clouds.google.rest import path_segment, root_of
from accel.contract import stop

from . import queue_hooks

AGENT = "Eventarc Service Agent"
"""Part of the error with which Google refuses the function. Source:
https://github.com/terraform-google-modules/terraform-docs-samples/issues/486"""
TRIES, LONGEST_PAUSE_S = 25, 30
"""About eleven minutes, with pauses that double."""


class StoppedStackError(Exception):
    """The stack is stopped, and the change would undo it."""


class StopHooks:
    """The hooks, and the object that they read: `where` is set once the section has something that stops it."""

    def __init__(self) -> None:
        self.where: pulumi.Output[str] | None = None
        prefix = "accel:gcp:BudgetStop"
        self.binding = pulumi.ResourceHookBinding(
            before_create=[pulumi.ResourceHook(f"{prefix}:create", self._before)],
            before_update=[pulumi.ResourceHook(f"{prefix}:update", self._before)],
        )
        self.function = pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(f"{prefix}:agent", wait_for_agent)])

    async def _before(self, args: pulumi.ResourceHookArgs) -> None:
        where = await self.where.future() if self.where else None
        if why := where and reason(where):
            raise StoppedStackError(
                f"{args.name}: the stack is stopped ({why}), and this change would undo the stop; "
                "run `stacks budget resume`, then deploy again"
            )


def wait_for_agent(args: pulumi.ErrorHookArgs) -> bool:
    """Pause, and return whether to retry the failed operation."""
    if AGENT not in args.errors[0] or len(args.errors) > TRIES:
        return False
    pulumi.log.info(
        f"{args.name}: Google sets up the service agent of Eventarc, which takes minutes in a project that has not "
        "used it before; the function is tried again"
    )
    time.sleep(min(2 ** (len(args.errors) - 1), LONGEST_PAUSE_S))
    return True


def reason(where: str) -> str | None:
    """Return why the stack is stopped; None where it is not. Raise RunError if gs://<bucket>/<object> is unreadable."""
    requests: Any = import_module("requests")
    bucket, _, name = where.removeprefix("gs://").partition("/")
    headers = {"Authorization": f"Bearer {queue_hooks.token()}"}
    url = f"{root_of('storage')}/b/{path_segment(bucket)}/o/{path_segment(name)}"
    try:
        answer = requests.get(url, params={"alt": "media"}, headers=headers, timeout=30)
    except requests.RequestException as error:
        raise pulumi.RunError(f"{where}: {error}") from error
    if answer.status_code == 404:
        return None
    if not answer.ok:
        raise pulumi.RunError(f"{where}: HTTP {answer.status_code}: {answer.text[:500]}")
    return json.loads(answer.content).get(stop.STOPPED)

"""Hooks that keep an update from undoing the stop of a budget, and that make its function wait for Eventarc. After the
function has acted, an update of the pool would switch autoscaling on again, and a refresh and an update would recreate
a TPU request that it has deleted. An update without changes touches nothing and passes. A state names its hooks, so
every run registers them. In a project that has not used Eventarc before, Google refuses the function until the service
agent has its permissions, which takes minutes and begins with the first try:
https://github.com/pulumi/pulumi-gcp/issues/1290"""

from __future__ import annotations

import time

import pulumi

from accel.clouds.google.api import object_path
from accel.clouds.google.rest import get
from accel.contract import stop
from accel.diagnostics.errors import JobsError, NotFound

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
    bucket, _, name = where.removeprefix("gs://").partition("/")
    try:
        state = get(queue_hooks.caller_session(), "storage", object_path(bucket, name), {"alt": "media"})
    except NotFound:
        return None
    except JobsError as error:
        raise pulumi.RunError(f"{where}: {error}") from error
    return state.get(stop.STOPPED)

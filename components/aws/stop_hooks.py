"""Hooks that keep an update from undoing the stop of a budget: it would enable again what the function has disabled. An
update without changes touches nothing and passes. As in environment_hooks, every run registers the hooks."""

from collections.abc import Mapping
from typing import Any

import pulumi

from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from accel.clouds.aws.responses import structure
from accel.contract import stop
from accel.diagnostics.errors import JobsError

from ..base import join

TAG = "accel:budget-stop"
"""Tag on what a budget stops: <region>/<claim table>, where the stop is recorded."""
READS = ("dynamodb:GetItem",)
"""Permissions on the claim table that a deployment needs."""
CONNECT_S, READ_S, ATTEMPTS = 5, 20, 4


class StoppedStackError(Exception):
    """The stack is stopped, and the change would undo it."""


def tag_of(region: str, table: pulumi.Input[str]) -> dict[str, pulumi.Input[str]]:
    return {TAG: join(region, "/", table)}


def stop_hooks() -> pulumi.ResourceHookBinding:
    """Register the hooks and return them for the resources that a budget stops."""

    def before(args: pulumi.ResourceHookArgs) -> None:
        # The old inputs too: a change that removes the budget would leave behind what it has stopped.
        for inputs in (args.new_inputs, args.old_inputs):
            tags: Mapping[str, str] = (inputs or {}).get("tags") or {}
            region, _, table = tags.get(TAG, "").partition("/")
            if why := table and reason(region, table):
                raise StoppedStackError(
                    f"{args.name}: the stack is stopped ({why}), and this change would undo the stop; "
                    "run `stacks budget resume`, then deploy again"
                )

    prefix = "accel:aws:BudgetStop"
    return pulumi.ResourceHookBinding(
        before_create=[pulumi.ResourceHook(f"{prefix}:create", before)],
        before_update=[pulumi.ResourceHook(f"{prefix}:update", before)],
    )


def reason(region: str, table: str) -> str | None:
    """Return why the stack is stopped; None if it is not, or the table is gone. Raise RunError if it is unreadable."""
    key = {stop.TABLE_KEY: {"S": stop.KEY}}
    try:
        with asking(f"claim table {table}, which tells whether the stack is stopped: GetItem"):
            dynamodb = client("dynamodb", region, connect_s=CONNECT_S, read_s=READ_S, attempts=ATTEMPTS)
            try:
                answer: dict[str, Any] = dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True)
            except dynamodb.exceptions.ResourceNotFoundException:
                return None
    except JobsError as error:
        raise pulumi.RunError(str(error)) from error
    item = structure(answer, "Item")
    return item[stop.STOPPED]["S"] if stop.STOPPED in item else None


def join_hooks(first: pulumi.ResourceHookBinding, second: pulumi.ResourceHookBinding) -> pulumi.ResourceHookBinding:
    """Combine both bindings; the first one's hooks run before the second one's."""
    kinds = ("before_create", "after_create", "before_update", "after_update", "before_delete", "after_delete")
    both = {kind: [*(getattr(first, kind) or ()), *(getattr(second, kind) or ())] for kind in (*kinds, "on_error")}
    return pulumi.ResourceHookBinding(**{kind: hooks for kind, hooks in both.items() if hooks})

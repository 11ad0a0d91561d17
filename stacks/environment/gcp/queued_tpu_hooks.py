"""Hooks of declared TPUs: the update that declares them requests them, and the one that deletes them waits until they
are gone. `accel-jobs tend`, or the scheduled function, does the rest. A state names the hooks of its resources, so
every run registers them."""

import time
from collections.abc import Mapping
from typing import Any

import pulumi

from accel.diagnostics.errors import JobsError, NotFound

PATIENCE_S = 20 * 60
"""The provider's own timeout for a queued resource."""
ASKED_S, POLL_S = 10 * 60, 2.0
"""Maximum time for which an update waits for the nodes of a former declaration to go, and the pause between polls."""


def queued_tpu_hooks() -> pulumi.ResourceHookBinding:
    def request(args: pulumi.ResourceHookArgs) -> None:
        bucket, key = _declared(args.new_outputs or args.new_inputs or {})
        ask(bucket, key, pulumi.log.info)

    def before_delete(args: pulumi.ResourceHookArgs) -> None:
        if pulumi.runtime.is_dry_run():
            pulumi.log.warn(f"{args.name}: its TPUs are deleted")
            return
        bucket, key = _declared(args.old_outputs or args.old_inputs or {})
        retire(bucket, key)

    def after_delete(args: pulumi.ResourceHookArgs) -> None:
        bucket, key = _declared(args.old_outputs or args.old_inputs or {})
        _queues(bucket).forget(key)

    in_preview_too = pulumi.ResourceHookOptions(on_dry_run=True)
    made = pulumi.ResourceHook("accel:gcp:QueuedTpu:asked", request)
    return pulumi.ResourceHookBinding(
        after_create=[made],
        after_update=[made],
        before_delete=[pulumi.ResourceHook("accel:gcp:QueuedTpu:retired", before_delete, in_preview_too)],
        after_delete=[pulumi.ResourceHook("accel:gcp:QueuedTpu:forgotten", after_delete)],
    )


def ask(bucket: str, key: str, say: Any) -> None:
    """Request TPUs once those of a former declaration are gone. Report a refusal: the reconciler asks again."""
    end = time.monotonic() + ASKED_S
    try:
        queues = _queues(bucket)
        while True:
            records, failures = queues.reconcile(say, only=key)
            waits = [record for record in records if record.cancelled and not record.ended]
            refused = [f"{key}: {each.attempts[-2].reason}" for each in records if len(each.attempts) > 1]
            if failures or not waits or time.monotonic() >= end:
                break
            time.sleep(POLL_S)
    except JobsError as error:
        failures, refused = [error.message], list[str]()
    for each in failures + refused:
        pulumi.log.warn(f"{each}; `accel-jobs tend` asks again, and so does gcp.vms.reconcile")


def retire(bucket: str, key: str) -> None:
    """Delete the TPUs of a declaration and wait until they are gone. Raise RunError."""
    try:
        _queues(bucket).retire(key, pulumi.log.info, PATIENCE_S)
    except NotFound:  # the bucket itself
        return
    except JobsError as error:
        raise pulumi.RunError(f"{key}: its TPUs could not be deleted: {error.message}") from error


def _queues(bucket: str) -> Any:
    # Imported here, so that only a stack that declares TPUs loads the client.
    from jobs.client.declared_tpus import queues_of

    return queues_of(bucket)


def _declared(values: Mapping[str, Any]) -> tuple[str, str]:
    return str(values["bucket"]), str(values["name"]).rpartition("/")[2].removesuffix(".json")

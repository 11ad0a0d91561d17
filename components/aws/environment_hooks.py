"""Hooks around the replacement and deletion of compute environments. A state names the hooks of its resources, and the
engine refuses to run without them: a program registers them in every run, whether or not it still has an environment,
and `pulumi destroy` needs `--run-program`. The hooks read what they need of an environment from its state. Source:
https://www.pulumi.com/docs/iac/concepts/resources/options/hooks/"""

import time
from collections.abc import Mapping
from typing import Any

import pulumi

from .draining import Draining, DrainSpec, batch_of

TAG = "accel:drain"
"""Tag on an environment with its `drain` settings at the last deployment."""
IN_USE = "found existing JobQueue relationship"
"""AWS's refusal, which lasts a while after the last queue has dropped the environment
(https://github.com/pulumi/pulumi-aws/issues/6233)."""
SCALING = ("minVcpus", "maxVcpus", "desiredVcpus")
"""Properties whose change touches no instance. Source:
https://docs.aws.amazon.com/batch/latest/userguide/updating-compute-environments.html"""
RETRIES = 20
LONGEST_RETRY_S = 15


def tag_of(spec: DrainSpec) -> dict[str, str]:
    return {TAG: f"{spec.jobs} {spec.timeout_min}"}


def environment_hooks(drains: Mapping[str, DrainSpec]) -> pulumi.ResourceHookBinding:
    """Register the hooks. `drains`: specs by the names of the program's environments; the tag decides for others."""

    def before_delete(args: pulumi.ResourceHookArgs) -> None:
        inputs = args.old_inputs or {}
        spec = drains.get(args.name) or drain_of(inputs)
        if pulumi.runtime.is_dry_run():
            pulumi.log.info(
                f"{args.name}: once no queue names {args.id}, "
                + (
                    "its jobs are terminated"
                    if spec.jobs == "terminate"
                    else f"its jobs may end ({spec.timeout_min} min)"
                )
                + ", and it is deleted"
            )
            return
        Draining(batch_of(inputs["region"]), args.id, spec, pulumi.log.info).run()

    def before_update(args: pulumi.ResourceHookArgs) -> None:
        if pulumi.runtime.is_dry_run() and (said := in_place(args.old_inputs or {}, args.new_inputs or {})):
            pulumi.log.info(f"{args.name}: {said}")

    def on_error(args: pulumi.ErrorHookArgs) -> bool:
        if args.failed_operation != "delete" or IN_USE not in args.errors[0] or len(args.errors) > RETRIES:
            return False
        time.sleep(min(2 ** (len(args.errors) - 1), LONGEST_RETRY_S))
        return True

    prefix, in_preview_too = "accel:aws:ComputeEnvironment", pulumi.ResourceHookOptions(on_dry_run=True)
    return pulumi.ResourceHookBinding(
        before_update=[pulumi.ResourceHook(f"{prefix}:update", before_update, in_preview_too)],
        before_delete=[pulumi.ResourceHook(f"{prefix}:drain", before_delete, in_preview_too)],
        on_error=[pulumi.ErrorHook(f"{prefix}:retry", on_error)],
    )


def in_place(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Describe what an update does to running jobs; return None where it replaces no instance."""
    before: dict[str, Any] = old.get("computeResources") or {}
    after: dict[str, Any] = new.get("computeResources") or {}
    changed = [name for name in sorted({*before, *after} - {*SCALING}) if before.get(name) != after.get(name)]
    if not changed:
        return None
    policy: dict[str, Any] = new.get("updatePolicy") or {}
    jobs = (
        "are terminated"
        if policy.get("terminateJobsOnUpdate")
        else f"may go on for {policy.get('jobExecutionTimeoutMinutes', 30):g} min"
    )
    return f"AWS replaces its instances in place ({', '.join(changed)} changes); running jobs {jobs}"


def drain_of(inputs: Mapping[str, Any]) -> DrainSpec:
    tags: dict[str, str] = inputs.get("tags") or {}
    jobs, _, minutes = tags.get(TAG, "").partition(" ")
    return DrainSpec.model_validate({"jobs": jobs, "timeout_min": minutes}) if minutes else DrainSpec()

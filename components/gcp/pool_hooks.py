"""Hooks around the deletion of node pools: a preview warns which jobs lose their nodes. A state names the hooks of its
resources, and the engine refuses to run without them, so a program that has used them registers them in every run.
Source: https://www.pulumi.com/docs/iac/concepts/resources/options/hooks/"""

from typing import Any

import pulumi


def pool_hooks() -> pulumi.ResourceHookBinding:
    """Register the hooks and return them for PoolArgs."""

    def before_delete(args: pulumi.ResourceHookArgs) -> None:
        if pulumi.runtime.is_dry_run():
            inputs: dict[str, Any] = dict(args.old_inputs or {})
            node: dict[str, Any] = inputs.get("nodeConfig") or {}
            pulumi.log.warn(
                f"{args.name}: the node pool {inputs.get('name') or args.id} ({node.get('machineType', 'unknown')}) is "
                "deleted, and the pods on its nodes are evicted; drain its queue first"
            )

    in_preview_too = pulumi.ResourceHookOptions(on_dry_run=True)
    return pulumi.ResourceHookBinding(
        before_delete=[pulumi.ResourceHook("accel:gcp:NodePool:evicts", before_delete, in_preview_too)]
    )

"""The node pool resource of any kind, and the arguments that are wired into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from accel.contract.gke import POOL_LABEL
from accel.rules.gke import nodes

from ..base import Component
from ..sdk import gcp
from .pool_spec import BlueGreenSpec, PoolSpec, SurgeSpec

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
"""One scope for all: the roles of the nodes' service account decide what they may do. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/access-scopes"""


@dataclass(frozen=True, kw_only=True)
class PoolArgs:
    """The cluster that nodes join, and the service account that they run as. `zones` apply where the spec has none;
    without both, GKE takes the cluster's. `hooks` are those of `pool_hooks()`."""

    cluster: pulumi.Input[str]
    location: pulumi.Input[str]
    service_account: pulumi.Input[str]
    zones: Sequence[str] | None = None
    resource_labels: dict[str, str] = field(default_factory=dict[str, str])
    hooks: pulumi.ResourceHookBinding | None = None


def node_pool(
    component: Component,
    name: str,
    spec: PoolSpec,
    args: PoolArgs,
    *,
    autoscaling: gcp.container.NodePoolAutoscalingArgs,
    node: dict[str, Any],
    placement: gcp.container.NodePoolPlacementPolicyArgs | None = None,
    queued: bool = False,
) -> gcp.container.NodePool:
    """Create the pool itself. `node`: arguments of the node config beside the common ones."""
    flex = spec.capacity == "flex-start"
    return gcp.container.NodePool(
        name,
        cluster=args.cluster,
        location=args.location,
        node_locations=spec.zones or args.zones,
        initial_node_count=spec.initial_nodes,
        autoscaling=autoscaling,
        management=gcp.container.NodePoolManagementArgs(
            auto_repair=not flex if spec.auto_repair is None else spec.auto_repair, auto_upgrade=spec.auto_upgrade
        ),
        max_pods_per_node=spec.max_pods_per_node,
        network_config=gcp.container.NodePoolNetworkConfigArgs(enable_private_nodes=spec.private_nodes),
        placement_policy=placement,
        queued_provisioning=gcp.container.NodePoolQueuedProvisioningArgs(enabled=True) if queued else None,
        # GKE has its own upgrade method for flex-start nodes, and takes no settings for it.
        upgrade_settings=None if flex else _upgrade(spec.upgrade or SurgeSpec()),
        node_config=gcp.container.NodePoolNodeConfigArgs(**{**_node_config(name, spec, args), **node}),
        opts=component.child(
            # The autoscaler changes the number of nodes. A number set here would be drift after the first scale-up, and
            # a changed initial_node_count makes the provider delete the pool with its running jobs
            # (https://www.pulumi.com/registry/packages/gcp/api-docs/container/nodepool/, initialNodeCount).
            ignore_changes=["initialNodeCount", "nodeCount"],
            hooks=args.hooks,
        ),
    )


def _node_config(key: str, spec: PoolSpec, args: PoolArgs) -> dict[str, Any]:
    container = gcp.container
    ssds = spec.local_ssds
    return {
        "machine_type": spec.machine_type,
        "image_type": spec.image_type,
        "disk_size_gb": spec.disk.size_gib,
        "disk_type": spec.disk.type or nodes.disk_type(spec.machine_type),
        "service_account": args.service_account,
        "oauth_scopes": SCOPES,
        "labels": {**spec.node_labels, POOL_LABEL: key},
        "resource_labels": args.resource_labels or None,
        "taints": [
            container.NodePoolNodeConfigTaintArgs(key=taint.key, value=taint.value, effect=taint.effect)
            for taint in spec.taints
        ]
        or None,
        "spot": True if spec.capacity == "spot" else None,
        "flex_start": True if spec.capacity == "flex-start" else None,
        "max_run_duration": f"{spec.max_run_duration_s}s" if spec.max_run_duration_s else None,
        "reservation_affinity": _reservation(spec),
        "ephemeral_storage_local_ssd_config": container.NodePoolNodeConfigEphemeralStorageLocalSsdConfigArgs(
            local_ssd_count=ssds.count
        )
        if ssds and ssds.use == "ephemeral"
        else None,
        "local_nvme_ssd_block_config": container.NodePoolNodeConfigLocalNvmeSsdBlockConfigArgs(
            local_ssd_count=ssds.count
        )
        if ssds and ssds.use == "block"
        else None,
        "secondary_boot_disks": [
            container.NodePoolNodeConfigSecondaryBootDiskArgs(disk_image=image, mode="CONTAINER_IMAGE_CACHE")
            for image in spec.preloaded_images
        ]
        or None,
        "gcfs_config": container.NodePoolNodeConfigGcfsConfigArgs(enabled=spec.image_streaming),
        "gvnic": container.NodePoolNodeConfigGvnicArgs(enabled=True),
        "shielded_instance_config": container.NodePoolNodeConfigShieldedInstanceConfigArgs(
            enable_secure_boot=spec.secure_boot, enable_integrity_monitoring=True
        ),
        # Pods get the identity of their own service account, and do not see that of the node.
        "workload_metadata_config": container.NodePoolNodeConfigWorkloadMetadataConfigArgs(mode="GKE_METADATA"),
        "metadata": {"disable-legacy-endpoints": "true"},
    }


def _reservation(spec: PoolSpec) -> gcp.container.NodePoolNodeConfigReservationAffinityArgs | None:
    if spec.reservation:
        return gcp.container.NodePoolNodeConfigReservationAffinityArgs(
            consume_reservation_type="SPECIFIC_RESERVATION",
            key="compute.googleapis.com/reservation-name",
            values=[spec.reservation.path],
        )
    if spec.capacity == "flex-start":  # GKE refuses flex-start without this
        return gcp.container.NodePoolNodeConfigReservationAffinityArgs(consume_reservation_type="NO_RESERVATION")
    return None


def _upgrade(upgrade: SurgeSpec | BlueGreenSpec) -> gcp.container.NodePoolUpgradeSettingsArgs:
    if isinstance(upgrade, SurgeSpec):
        return gcp.container.NodePoolUpgradeSettingsArgs(
            strategy="SURGE", max_surge=upgrade.max_surge, max_unavailable=upgrade.max_unavailable
        )
    percent = upgrade.batch_percent
    rollout = gcp.container.NodePoolUpgradeSettingsBlueGreenSettingsStandardRolloutPolicyArgs(
        batch_node_count=upgrade.batch_nodes,
        batch_percentage=percent / 100 if percent is not None else None,
        batch_soak_duration=f"{upgrade.batch_soak_s}s",
    )
    return gcp.container.NodePoolUpgradeSettingsArgs(
        strategy="BLUE_GREEN",
        blue_green_settings=gcp.container.NodePoolUpgradeSettingsBlueGreenSettingsArgs(
            standard_rollout_policy=rollout, node_pool_soak_duration=f"{upgrade.pool_soak_s}s"
        ),
    )


def autoscaling(spec: PoolSpec, max_nodes: int, policy: str) -> gcp.container.NodePoolAutoscalingArgs:
    if spec.limits == "per-zone":
        return gcp.container.NodePoolAutoscalingArgs(
            min_node_count=spec.min_nodes, max_node_count=max_nodes, location_policy=spec.location_policy or policy
        )
    return gcp.container.NodePoolAutoscalingArgs(
        total_min_node_count=spec.min_nodes,
        total_max_node_count=max_nodes,
        location_policy=spec.location_policy or policy,
    )


def compact(wanted: bool, policy: str | None) -> gcp.container.NodePoolPlacementPolicyArgs | None:
    return gcp.container.NodePoolPlacementPolicyArgs(type="COMPACT", policy_name=policy) if wanted or policy else None

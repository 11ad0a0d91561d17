"""A GKE node pool of GPU machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.catalog import accelerator as accelerator_named
from accel.catalog.gke import offered_gpus
from accel.catalog.gke_machines import node_machine
from accel.diagnostics.findings import Finding
from accel.rules.gcp import gpus, machines
from accel.rules.gke import capacity, drivers, drivers_daemonset, nodes
from accel.rules.gke import sharing as gke_sharing

from ..base import Component, Spec
from ..sdk import gcp
from .pool_base import PoolArgs, autoscaling, compact, node_pool
from .pool_spec import PoolSpec

Driver = Literal["default", "latest", "daemonset", "operator"]


class SharingSpec(Spec):
    """The sharing of one GPU, or one partition, between several containers."""

    strategy: Literal["time-sharing", "mps"]
    clients: int = Field(description="Maximum number of containers on each GPU or partition, 2 to 48")


class GpuPoolSpec(PoolSpec):
    """GPU machines. With GPUs built in, `accelerator` and `accelerator_count` may be omitted."""

    kind: Literal["gpu"] = "gpu"
    max_nodes: int
    accelerator: str | None = Field(
        default=None, description="Accelerator type to attach to an N1 machine, such as nvidia-tesla-t4"
    )
    accelerator_count: int | None = Field(default=None, description="Number of accelerators of each N1 machine")
    driver: Driver = Field(
        default="default",
        description="Installer of the GPU driver: GKE (default, latest), the stack's DaemonSet, or NVIDIA's operator",
    )
    sharing: SharingSpec | None = None
    mig_partition: str | None = Field(
        default=None, description="MIG profile into which every GPU is partitioned, such as 1g.10gb"
    )
    queued_provisioning: bool = Field(
        default=False, description="Create nodes through ProvisioningRequests only, all at once"
    )
    compact_placement: bool = False

    @property
    def accelerator_type(self) -> str:
        """Return the type in Google's spelling, which is also the node label."""
        name = node_machine(self.machine_type).accelerator or self.accelerator or ""
        return accelerator_named(name).gcp_type

    @property
    def attached(self) -> bool:
        """Return whether its GPUs are attached to an N1 machine; a machine with built-in GPUs may name them again."""
        return not node_machine(self.machine_type).accelerator

    @property
    def gpu_count(self) -> float:
        """Return the number per node; a share of one GPU is a fraction."""
        return node_machine(self.machine_type).accelerator_count or self.accelerator_count or 1

    @property
    def whole_gpus(self) -> int:
        """Return the number per node as the API counts: a share of a GPU is one."""
        return math.ceil(self.gpu_count)

    @property
    def offered_gpus(self) -> int:
        clients = self.sharing.clients if self.sharing else 1
        return offered_gpus(accelerator_named(self.accelerator_type).name, self.whole_gpus, self.mig_partition, clients)

    @property
    def node_labels(self) -> dict[str, str]:
        """Return the author's labels, and the one that keeps GKE's device plugin away from the operator's."""
        own = {drivers.NO_PLUGIN_LABEL: "true"} if self.driver == "operator" else {}
        return {**self.labels, **own}

    def most_nodes(self, zone_count: int) -> int:
        return self.max_nodes * zone_count if self.limits == "per-zone" else self.max_nodes

    def check(self) -> list[Finding]:
        found = self._machine_findings()
        found += self.pool_findings(max_nodes=self.max_nodes) + self.flex_findings()
        found += drivers.driver(
            self.driver,
            self.image_type,
            labels=tuple(self.labels),
            partition=self.mig_partition,
            sharing=self.sharing.strategy if self.sharing else None,
            secure_boot=self.secure_boot,
        )
        if self.queued_provisioning:
            found += capacity.queued_provisioning(self.capacity)
        if self.compact_placement:
            most = self.most_nodes(self.zone_count or 1)
            found += nodes.compact(
                self.machine_type,
                most,
                self.zone_count,
                upgrade=self.strategy,
                queued=self.queued_provisioning,
                flex_start=self.capacity == "flex-start",
            )
        # The following rules ask the catalogue for the GPU, and have no findings about an unknown one.
        return found if any(each.severity == "reject" for each in found) else found + self._gpu_findings()

    def _machine_findings(self) -> list[Finding]:
        found = gpus.accelerator_name(self.accelerator) if self.accelerator else []
        found += [] if found else nodes.machine(self.machine_type, "gpu", self.accelerator is not None)
        if any(each.severity == "reject" for each in found):
            return found
        zone = self.zones[0] if self.zones else None
        found += machines.machine(self.machine_type, self.accelerator, self.accelerator_count, zone)
        found += gpus.small_a3(self.machine_type, self.capacity, "capacity")
        return found + gpus.scarce(self.machine_type, self.capacity, "capacity")

    def _gpu_findings(self) -> list[Finding]:
        name = accelerator_named(self.accelerator_type).name
        found: list[Finding] = []
        units: float = self.gpu_count
        if self.mig_partition:
            found += gke_sharing.partition(self.mig_partition, name, self.gpu_count)
            found += drivers_daemonset.partition(self.mig_partition, name) if self.driver == "daemonset" else []
            if not any(each.severity == "reject" for each in found):
                units = offered_gpus(name, self.whole_gpus, self.mig_partition)
        if self.sharing:
            found += gke_sharing.sharing(
                self.sharing.strategy, self.sharing.clients, units=units, partition=self.mig_partition
            )
        machine = f"n1+{name}x{self.whole_gpus}" if self.attached else self.machine_type
        return found + nodes.zone_offers(machine, self.zones)


@dataclass(frozen=True, kw_only=True)
class GpuPoolArgs(PoolArgs):
    """The spec and the arguments of PoolArgs."""

    spec: GpuPoolSpec


class GpuPool(Component):
    """Nodes with GPUs, as many as pods need. It starts without any, so that it can be created while they are out of
    stock. The driver mode is always set explicitly, and exactly one party installs the driver. Google replaces the
    whole pool, and evicts the jobs on its nodes, when driver, sharing, mig_partition, accelerator or its count, Spot,
    flex-start, reservation, placement, local SSDs or queued provisioning change
    (https://github.com/hashicorp/terraform-provider-google/issues/23248). A change of machine type, disk or image
    upgrades the nodes, which evicts their pods too. The name is generated, so that the new pool exists before the old
    one is deleted; `pool_hooks()` warn in a preview."""

    TYPE = "accel:gcp:GpuPool"

    name: pulumi.Output[str]

    def __init__(self, name: str, args: GpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        pool = node_pool(
            self,
            name,
            spec,
            args,
            autoscaling=autoscaling(spec, spec.max_nodes, "ANY"),
            placement=compact(spec.compact_placement, spec.placement_policy),
            queued=spec.queued_provisioning,
            node={"guest_accelerators": [_accelerator(spec)]},
        )
        self.name = pool.name
        self.finish()


def _accelerator(spec: GpuPoolSpec) -> gcp.container.NodePoolNodeConfigGuestAcceleratorArgs:
    sharing = spec.sharing
    return gcp.container.NodePoolNodeConfigGuestAcceleratorArgs(
        type=spec.accelerator_type,
        count=spec.whole_gpus,
        gpu_partition_size=spec.mig_partition,
        # If omitted, GKE fills it in, and the provider then sees a change that replaces the pool
        # (https://github.com/hashicorp/terraform-provider-google/issues/19536).
        gpu_driver_installation_config=gcp.container.NodePoolNodeConfigGuestAcceleratorGpuDriverInstallationConfigArgs(
            gpu_driver_version=drivers.VERSIONS[spec.driver]
        ),
        gpu_sharing_config=gcp.container.NodePoolNodeConfigGuestAcceleratorGpuSharingConfigArgs(
            gpu_sharing_strategy=sharing.strategy.upper().replace("-", "_"), max_shared_clients_per_gpu=sharing.clients
        )
        if sharing
        else None,
    )

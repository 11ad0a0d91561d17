"""A GKE node pool of CPU machines."""

from dataclasses import dataclass
from typing import Literal

import pulumi

from accel.diagnostics.findings import Finding
from accel.rules.gke import nodes

from ..base import Component
from .pool_base import PoolArgs, autoscaling, compact, node_pool
from .pool_spec import PoolSpec


class CpuPoolSpec(PoolSpec):
    """CPU machines for system pods, queue controllers and data loading."""

    kind: Literal["cpu"] = "cpu"
    machine_type: str = "e2-standard-4"
    max_nodes: int
    compact_placement: bool = False

    def most_nodes(self, zone_count: int) -> int:
        return self.max_nodes * zone_count if self.limits == "per-zone" else self.max_nodes

    def check(self) -> list[Finding]:
        found = nodes.machine(self.machine_type, "cpu") + self.pool_findings(max_nodes=self.max_nodes)
        found += nodes.zone_offers(self.machine_type, self.zones) + self.flex_findings()
        if self.compact_placement:
            most = self.most_nodes(self.zone_count or 1)
            flex = self.capacity == "flex-start"
            found += nodes.compact(self.machine_type, most, self.zone_count, upgrade=self.strategy, flex_start=flex)
        return found


@dataclass(frozen=True, kw_only=True)
class CpuPoolArgs(PoolArgs):
    """The spec and the arguments of PoolArgs."""

    spec: CpuPoolSpec


class CpuPool(Component):
    """Nodes without accelerators, as many as pods need. Google replaces the pool, and evicts the pods of its nodes,
    when its zones' region, its disks' encryption, local SSDs, reservation, placement or Spot change. The name is
    generated, so that the new pool exists before the old one is deleted."""

    TYPE = "accel:gcp:CpuPool"

    name: pulumi.Output[str]

    def __init__(self, name: str, args: CpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        policy = "BALANCED" if spec.capacity in ("on-demand", "reservation") else "ANY"
        pool = node_pool(
            self,
            name,
            spec,
            args,
            autoscaling=autoscaling(spec, spec.max_nodes, policy),
            placement=compact(spec.compact_placement, spec.placement_policy),
            node={},
        )
        self.name = pool.name
        self.finish()

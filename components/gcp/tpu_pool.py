"""A GKE node pool of TPU hosts: one slice of several hosts, or slices of one host each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.catalog.tpu import Slice, tpu_pool
from accel.diagnostics.findings import Finding
from accel.rules.gcp import tpu
from accel.rules.gke import nodes, tpus

from ..base import Component
from ..sdk import gcp
from .pool_base import PoolArgs, autoscaling, node_pool
from .pool_spec import PoolSpec


class TpuPoolSpec(PoolSpec):
    """TPU hosts. A topology of several hosts is one slice: the pool then has all its nodes or none."""

    kind: Literal["tpu"] = "tpu"
    topology: str = Field(description="Chips of a slice along each side, such as 2x4 or 2x2x4")
    max_nodes: int | None = Field(default=None, description="Maximum number of nodes. Default: the hosts of one slice")

    @property
    def slice(self) -> Slice:
        return tpu_pool(self.machine_type, self.topology)

    @property
    def most(self) -> int:
        if self.max_nodes is not None:
            return self.max_nodes
        found = tpu.resolve_pool(self.machine_type, self.topology)[0]
        return found.hosts if found else 1

    def most_nodes(self, zone_count: int) -> int:
        return self.most * zone_count if self.limits == "per-zone" and not self.slice.multi_host else self.most

    def check(self) -> list[Finding]:
        found = tpu.pool(self.machine_type, self.topology, self.max_nodes)
        if found:
            return found
        found += self.pool_findings(max_nodes=self.most) + self.flex_findings(self.slice.hosts)
        found += nodes.zone_offers(self.machine_type, self.zones)
        return found + tpus.slice_pool(
            self.machine_type,
            self.topology,
            min_nodes=self.min_nodes,
            initial_nodes=self.initial_nodes,
            zone_count=self.zone_count,
            policy=self.placement_policy,
        )


@dataclass(frozen=True, kw_only=True)
class TpuPoolArgs(PoolArgs):
    """The spec and the arguments of PoolArgs. A slice of several hosts needs one zone, in the spec or here."""

    spec: TpuPoolSpec


class TpuPool(Component):
    """TPU hosts, as many as pods need; a slice of several hosts is added and removed as a whole. Google replaces the
    pool, and ends the jobs on it, when topology, Spot, flex-start, reservation or placement change. The name is
    generated, so that the new pool exists before the old one is deleted."""

    TYPE = "accel:gcp:TpuPool"

    name: pulumi.Output[str]

    def __init__(self, name: str, args: TpuPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        several = spec.slice.multi_host
        pool = node_pool(
            self,
            name,
            spec,
            args,
            autoscaling=_slice(spec) if several else autoscaling(spec, spec.most, "ANY"),
            placement=_placement(spec) if several else None,
            node={},
        )
        self.name = pool.name
        self.finish()


def _slice(spec: TpuPoolSpec) -> gcp.container.NodePoolAutoscalingArgs:
    # GKE scales such a pool between none and all, by the limits of its one zone.
    return gcp.container.NodePoolAutoscalingArgs(
        min_node_count=spec.min_nodes, max_node_count=spec.most, location_policy=spec.location_policy or "ANY"
    )


def _placement(spec: TpuPoolSpec) -> gcp.container.NodePoolPlacementPolicyArgs:
    return gcp.container.NodePoolPlacementPolicyArgs(
        type="COMPACT", tpu_topology=spec.slice.topology, policy_name=spec.placement_policy
    )

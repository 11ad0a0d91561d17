"""Placement policies: how close together or how far apart Compute Engine places machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity

from ..base import Component, Spec
from ..sdk import gcp


class PlacementSpec(Spec):
    """A policy of a region, for machines in any one of its zones."""

    region: str
    description: str | None = None


class CompactSpec(PlacementSpec):
    """Close placement, for VMs that name the policy when they are created."""

    kind: Literal["compact"]
    max_distance: int | None = Field(
        default=None,
        ge=1,
        le=3,
        description="Maximum distance: 3 for adjacent clusters, 2 for adjacent racks, 1 for nearer; in preview. "
        "Default: as near as possible",
    )
    vm_count: int | None = Field(
        default=None, ge=1, description="Exact number of VMs; Google advises against setting it"
    )
    gpu_topology: str | None = Field(default=None, description="Topology of an A4X slice, such as 1x72")

    @property
    def policy(self) -> dict[str, Any]:
        return {
            "collocation": "COLLOCATED",
            "max_distance": self.max_distance,
            "vm_count": self.vm_count,
            "gpu_topology": self.gpu_topology,
        }


class SpreadSpec(PlacementSpec):
    """Separate hardware, so that one failure does not affect all machines."""

    kind: Literal["spread"]
    domains: int = Field(ge=1, le=8, description="Number of availability domains: separate groups of hardware")

    @property
    def policy(self) -> dict[str, Any]:
        return {"availability_domain_count": self.domains}


class WorkloadSpec(PlacementSpec):
    """A policy for the VMs of a managed instance group: A3 with eight GPUs and later."""

    kind: Literal["workload"]
    distance: Literal["CLUSTER", "BLOCK", "SUBBLOCK"] | None = Field(
        default=None, description="Maximum distance between the VMs"
    )
    topology: str | None = Field(
        default=None, description="Topology of a partition, such as 1x72, in place of distance"
    )

    @property
    def policy(self) -> dict[str, Any]:
        return {
            "type": "HIGH_THROUGHPUT",
            "max_topology_distance": self.distance,
            "accelerator_topology": self.topology,
        }

    def check(self) -> list[Finding]:
        return capacity.workload(self.distance, self.topology)


AnyPlacement = Annotated[CompactSpec | SpreadSpec | WorkloadSpec, Field(discriminator="kind")]


@dataclass(frozen=True, kw_only=True)
class PlacementArgs:
    """The spec and its owner."""

    spec: AnyPlacement
    project: str


class Placement(Component):
    """A resource policy. Every change recreates it, together with the machines that name it."""

    TYPE = "accel:gcp:Placement"

    name: pulumi.Output[str]
    path: pulumi.Output[str]
    """projects/<p>/regions/<r>/resourcePolicies/<name>."""
    kind: pulumi.Output[str]

    def __init__(self, name: str, args: PlacementArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        member = "workload_policy" if spec.kind == "workload" else "group_placement_policy"
        made = gcp.compute.ResourcePolicy(
            name,
            project=args.project,
            region=spec.region,
            description=spec.description,
            **_policy(member, spec),
            opts=self.child(),
        )
        self.name = made.name
        self.path = made.id
        self.kind = pulumi.Output.from_input(spec.kind)
        self.finish()


def _policy(member: str, spec: AnyPlacement) -> dict[str, Any]:
    return {member: {key: value for key, value in spec.policy.items() if value is not None}}

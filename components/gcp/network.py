"""A VPC for GKE: one subnet per region, with ranges of its own for nodes, pods and services, and a way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import network as rules

from ..base import Component, Spec
from ..sdk import gcp

PODS_RANGE = "pods"
SERVICES_RANGE = "services"


class SubnetSpec(Spec):
    """The three ranges of one region. Those of pods and services cannot be changed while a cluster uses them."""

    nodes: str = Field(description="Primary range, for nodes: /8 to /29; a /S holds 2^(32-S) - 4 nodes")
    pods: str = Field(description="Secondary range for pods; each node takes a block of it, a /24 for 110 pods")
    services: str = Field(description="Secondary range for services: /28 or larger")
    max_pods_per_node: int = Field(
        default=rules.PODS_PER_NODE_DEFAULT, description="Maximum pods per node of clusters in the subnet, 8 to 256"
    )

    def check(self) -> list[Finding]:
        wrong = rules.pods_per_node(self.max_pods_per_node)
        return wrong or rules.subnet(self.nodes, self.pods, self.services, self.max_pods_per_node)


class FlowLogsSpec(Spec):
    """VPC flow logs of every subnet; they are billed by volume."""

    interval: Literal["5s", "30s", "1m", "5m", "10m", "15m"] = "10m"
    sampling: float = Field(default=0.1, gt=0, le=1, description="Share of flows that is logged")


class NatSpec(Spec):
    """Cloud NAT. All pods of a node share its ports; each port is one connection to one address at a time."""

    min_ports_per_node: int = Field(
        default=64, description="Minimum number of ports per node: a power of two, 32 or more"
    )
    max_ports_per_node: int = Field(
        default=4096, description="Maximum number of ports per node: a power of two, 65536 at most"
    )

    def check(self) -> list[Finding]:
        return rules.nat_ports(self.min_ports_per_node, self.max_ports_per_node)


class GcpNetworkSpec(Spec):
    """A network that this stack creates."""

    subnets: dict[str, SubnetSpec] = Field(min_length=1, description="Subnets by region")
    nat: NatSpec | None = Field(default=NatSpec(), description="Cloud NAT. null: only Google's APIs can be reached")
    mtu: int = Field(default=1460, ge=1300, le=8896, description="MTU in bytes; 8896 is best between GPU nodes")
    flow_logs: FlowLogsSpec | None = Field(default=FlowLogsSpec(), description="VPC flow logs. null: no flow logs")

    def check(self) -> list[Finding]:
        found = [finding for region in self.subnets for finding in rules.region(region, f"subnets.{region}")]
        return found + rules.ranges(self.ranges())

    def ranges(self) -> dict[str, str]:
        kinds = ("nodes", "pods", "services")
        return {
            f"subnets.{region}.{kind}": getattr(one, kind) for region, one in self.subnets.items() for kind in kinds
        }


class GcpNetwork(Component):
    """A custom-mode VPC whose subnets reach Google's APIs privately, and the internet through Cloud NAT. It has no
    firewall rules: GKE opens what a cluster's nodes and pods need between themselves, and there is no other ingress.
    Another primary range replaces a subnet, and every cluster there; it can only be widened in place."""

    TYPE = "accel:gcp:Network"

    network: pulumi.Output[str]
    subnetworks: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, spec: GcpNetworkSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        vpc = gcp.compute.Network(
            name,
            auto_create_subnetworks=False,
            routing_mode="REGIONAL",
            mtu=spec.mtu,
            opts=self.child(),
        )
        subnets = {region: _subnet(self, f"{name}-{region}", vpc, region, spec) for region in spec.subnets}
        if spec.nat is not None:
            for region in spec.subnets:
                _nat(self, f"{name}-{region}", vpc, region, spec.nat)
        self.network = vpc.id
        self._by_region = {region: subnet.id for region, subnet in subnets.items()}
        self.subnetworks = pulumi.Output.all(**self._by_region)
        self.finish()

    def subnetwork(self, region: str) -> pulumi.Output[str]:
        """Return the subnet of one region. Read from `subnetworks` it would be unknown while a subnet of another region
        is new, and a preview would replace the cluster for it."""
        return self._by_region[region]


_INTERVALS: Mapping[str, str] = {
    "5s": "INTERVAL_5_SEC",
    "30s": "INTERVAL_30_SEC",
    "1m": "INTERVAL_1_MIN",
    "5m": "INTERVAL_5_MIN",
    "10m": "INTERVAL_10_MIN",
    "15m": "INTERVAL_15_MIN",
}


def _subnet(
    self: Component, name: str, vpc: gcp.compute.Network, region: str, spec: GcpNetworkSpec
) -> gcp.compute.Subnetwork:
    ranges, logs = spec.subnets[region], spec.flow_logs
    return gcp.compute.Subnetwork(
        name,
        network=vpc.id,
        region=region,
        ip_cidr_range=ranges.nodes,
        secondary_ip_ranges=[
            gcp.compute.SubnetworkSecondaryIpRangeArgs(range_name=PODS_RANGE, ip_cidr_range=ranges.pods),
            gcp.compute.SubnetworkSecondaryIpRangeArgs(range_name=SERVICES_RANGE, ip_cidr_range=ranges.services),
        ],
        private_ip_google_access=True,
        log_config=gcp.compute.SubnetworkLogConfigArgs(
            aggregation_interval=_INTERVALS[logs.interval],
            flow_sampling=logs.sampling,
            metadata="INCLUDE_ALL_METADATA",
        )
        if logs
        else None,
        opts=self.child(),
    )


def _nat(self: Component, name: str, vpc: gcp.compute.Network, region: str, spec: NatSpec) -> None:
    router = gcp.compute.Router(name, network=vpc.id, region=region, opts=self.child())
    gcp.compute.RouterNat(
        name,
        router=router.name,
        region=region,
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
        enable_dynamic_port_allocation=True,
        # The provider refuses dynamic ports beside it, and would otherwise leave it unchanged in the cloud.
        enable_endpoint_independent_mapping=False,
        min_ports_per_vm=spec.min_ports_per_node,
        max_ports_per_vm=spec.max_ports_per_node,
        log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
        opts=self.child(),
    )

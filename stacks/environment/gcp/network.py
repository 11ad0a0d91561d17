"""The network of the Google Cloud section: created here, existing, or of another stack."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulumi

from accel.contract.network import GcpNetwork, GcpSubnet
from accel.contract.stack import read
from components.gcp import network as made_network

from ..export_model import promise_output
from .config import CreatedNetwork, ExistingNetwork, Gcp, StackNetwork


@dataclass(frozen=True)
class ClusterNetwork:
    """The network from which a cluster gets addresses. Each value comes from its own resource, and not out of `whole`,
    which is unknown as long as anything in it is: a preview would take that for a change, and replace the cluster."""

    whole: pulumi.Output[GcpNetwork]
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    pods_range: pulumi.Input[str]
    services_range: pulumi.Input[str]
    max_pods_per_node: pulumi.Input[int]
    subnetwork_in: Callable[[str], pulumi.Input[str]]
    """Returns the subnet of any region in which the network has one."""


def network_of(section: Gcp, on_gcp: pulumi.ResourceOptions) -> ClusterNetwork | None:
    """Create or read the section's network; return None where it has none. Its own region is where clusters are."""
    match section.network:
        case None:
            return None
        case CreatedNetwork() as spec:
            made = made_network.GcpNetwork("network", spec, on_gcp)
            known = pulumi.Output.all(network=made.network, subnetworks=made.subnetworks)
            whole = promise_output(known, lambda ids: _described(section, spec, ids["network"], ids["subnetworks"]))
            here = section.region if section.region in spec.subnets else min(spec.subnets)
            return ClusterNetwork(
                whole,
                made.network,
                made.subnetwork(here),
                made_network.PODS_RANGE,
                made_network.SERVICES_RANGE,
                spec.subnets[here].max_pods_per_node,
                made.subnetwork,
            )
        case ExistingNetwork() as given:
            return _read_place(pulumi.Output.from_input(given.network).apply(lambda _: _given(given)), section.region)
        case StackNetwork() as other:
            whole = read(GcpNetwork, pulumi.StackReference(other.stack), "gcp_network")
            return _read_place(whole, section.region)


def _read_place(whole: pulumi.Output[GcpNetwork], region: str) -> ClusterNetwork:
    subnet = whole.apply(lambda one: subnet_of(one, region))
    return ClusterNetwork(
        whole,
        whole.apply(lambda one: one.network),
        subnet.apply(lambda one: one.subnetwork),
        subnet.apply(lambda one: one.pods_range),
        subnet.apply(lambda one: one.services_range),
        subnet.apply(lambda one: one.max_pods_per_node),
        lambda other: whole.apply(lambda one: subnet_of(one, other).subnetwork),
    )


def _described(section: Gcp, spec: CreatedNetwork, network: str, subnetworks: Mapping[str, str]) -> GcpNetwork:
    subnets = {
        region: GcpSubnet(
            subnetwork=subnetworks[region],
            pods_range=made_network.PODS_RANGE,
            services_range=made_network.SERVICES_RANGE,
            max_pods_per_node=ranges.max_pods_per_node,
        )
        for region, ranges in spec.subnets.items()
    }
    return GcpNetwork(project=section.project, network=network, subnets=subnets)


def _given(given: ExistingNetwork) -> GcpNetwork:
    return GcpNetwork(
        project=given.network.split("/")[1],
        network=given.network,
        subnets={region: GcpSubnet(**subnet.model_dump()) for region, subnet in given.subnets.items()},
    )


def subnet_of(network: GcpNetwork, region: str) -> GcpSubnet:
    """Raise pulumi.RunError where an existing network has no subnet in the region."""
    if region not in network.subnets:
        raise pulumi.RunError(
            f"gcp.region: is {region}, and the network has subnets in {', '.join(sorted(network.subnets))} only"
        )
    return network.subnets[region]

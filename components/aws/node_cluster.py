"""The parts that let instances work as one machine: a placement group, a shared security group, EFA interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pulumi

from ..base import Component
from ..sdk import aws

Groups = pulumi.Input[list[str]]


def placement_group(self: Component, name: str) -> aws.ec2.PlacementGroup:
    """Create a group of strategy `cluster`: instances close together in one availability zone."""
    return aws.ec2.PlacementGroup(name, strategy="cluster", opts=self.child())


def node_group(self: Component, name: str, vpc_id: pulumi.Input[str]) -> aws.ec2.SecurityGroup:
    """Create a group that allows all traffic between its own members, and nothing else. EFA needs this traffic, and
    nodes find each other by it. Source: https://docs.aws.amazon.com/batch/latest/userguide/efa.html"""
    group = aws.ec2.SecurityGroup(
        f"{name}-nodes",
        vpc_id=vpc_id,
        description="nodes of one job, among themselves",
        tags={"Name": f"{name}-nodes"},
        opts=self.child(),
    )
    for direction, rule in (
        ("in", aws.vpc.SecurityGroupIngressRule),
        ("out", aws.vpc.SecurityGroupEgressRule),
    ):
        rule(
            f"{name}-nodes-{direction}",
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="among themselves",
            opts=self.child(),
        )
    return group


class WayOut(NamedTuple):
    """An egress rule of a security group: one TCP port, or everything with None."""

    name: str
    port: int | None
    cidr: str
    description: str


def default_group(self: Component, name: str, vpc_id: pulumi.Input[str], ways_out: Sequence[WayOut] | None) -> None:
    """Manage a VPC's default security group. By default it has no rules, so that resources that name no group get no
    access by accident. With `ways_out` it is opened among its members and to those destinations: where an environment
    names no group, as with EFA, Batch gives this one to the containers of multi-node jobs. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/mnp-ce.html"""
    out = aws.ec2.DefaultSecurityGroupEgressArgs
    among = aws.ec2.DefaultSecurityGroupIngressArgs(protocol="-1", from_port=0, to_port=0, self=True)
    opened = ways_out is not None
    outwards = [out(protocol="-1", from_port=0, to_port=0, self=True)]
    for way in ways_out or ():
        protocol, port = ("tcp", way.port) if way.port else ("-1", 0)
        outwards.append(out(protocol=protocol, from_port=port, to_port=port, cidr_blocks=[way.cidr]))
    aws.ec2.DefaultSecurityGroup(
        f"{name}-default",
        vpc_id=vpc_id,
        ingress=[among] if opened else [],
        egress=outwards if opened else [],
        opts=self.child(),
    )


def efa_interfaces(cards: Sequence[int], groups: Groups) -> list[aws.ec2.LaunchTemplateNetworkInterfaceArgs]:
    """Return one interface for each network card with EFA. The primary one carries IP too; the others take no address.
    Card 0 keeps a slot free: a node's container gets an interface of its own there, and the cards of a p5 have two.
    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html"""
    kinds = {0: "efa" if 0 in cards else "interface"} | {card: "efa-only" for card in cards if card}
    return [
        aws.ec2.LaunchTemplateNetworkInterfaceArgs(
            network_card_index=card,
            device_index=0,
            interface_type=kind,
            security_groups=groups,
            delete_on_termination="true",
        )
        for card, kind in kinds.items()
    ]

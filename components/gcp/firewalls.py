"""Firewalls between machines of jobs."""

from __future__ import annotations

import pulumi

from ..base import Component
from ..sdk import gcp


def among(self: Component, name: str, project: str, network: pulumi.Input[str], tag: str) -> gcp.compute.Firewall:
    """Allow machines with a tag to reach each other, and no other ingress."""
    return gcp.compute.Firewall(
        f"{name}-inside",
        project=project,
        network=network,
        direction="INGRESS",
        allows=[gcp.compute.FirewallAllowArgs(protocol=each) for each in ("tcp", "udp", "icmp")],
        source_tags=[tag],
        target_tags=[tag],
        opts=self.child(),
    )

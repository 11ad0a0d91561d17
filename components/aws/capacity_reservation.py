"""The part of a launch template that names capacity reserved outside the stack."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import reservations as rules

from ..base import Spec
from ..sdk import aws


class CapacityReservationSpec(Spec):
    """A reservation that instances are launched into, and nowhere else. It is bought and ended outside the stack."""

    id: str | None = Field(default=None, description="Id of a reservation or Capacity Block, cr-...")
    group_arn: str | None = Field(default=None, description="ARN of a resource group of reservations, in place of id")
    market: Literal["on-demand", "capacity-block"] = Field(
        default="on-demand", description="Type of the purchase: a reservation (ODCR), or a Capacity Block for ML"
    )

    def check(self) -> list[Finding]:
        return rules.target(self.id, self.group_arn)


def reservation_target(spec: CapacityReservationSpec) -> aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs:
    return aws.ec2.LaunchTemplateCapacityReservationSpecificationArgs(
        capacity_reservation_target=aws.ec2.LaunchTemplateCapacityReservationSpecificationCapacityReservationTargetArgs(
            capacity_reservation_id=spec.id, capacity_reservation_resource_group_arn=spec.group_arn
        )
    )


def market(spec: CapacityReservationSpec) -> aws.ec2.LaunchTemplateInstanceMarketOptionsArgs | None:
    """Return `instanceMarketOptions`, or None. AWS uses a Capacity Block only if the market type is set beside the
    target, and an ODCR only if it is not (https://github.com/awslabs/awsome-distributed-ai/issues/1263)."""
    if spec.market != rules.BLOCK:
        return None
    return aws.ec2.LaunchTemplateInstanceMarketOptionsArgs(market_type=rules.BLOCK)

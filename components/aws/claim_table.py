"""The table that makes `jobs submit` idempotent on AWS Batch."""

from __future__ import annotations

import pulumi
from pydantic import Field

from accel.contract import claims

from ..base import Component, Spec
from ..sdk import aws


class ClaimTableSpec(Spec):
    """How the table is kept. Its rows and attributes are those of accel.contract.claims."""

    protect: bool = Field(default=False, description="losing the table forgets which keys were used")


class ClaimTable(Component):
    """A DynamoDB table, one row a submission key, paid per request; rows expire."""

    TYPE = "accel:aws:ClaimTable"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: ClaimTableSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        table = aws.dynamodb.Table(
            name,
            billing_mode="PAY_PER_REQUEST",
            hash_key=claims.KEY,
            attributes=[aws.dynamodb.TableAttributeArgs(name=claims.KEY, type="S")],
            ttl=aws.dynamodb.TableTtlArgs(attribute_name=claims.EXPIRES, enabled=True),
            point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=spec.protect),
            deletion_protection_enabled=spec.protect,
            opts=self.child(protect=spec.protect),
        )
        self.name = table.name
        self.arn = table.arn
        self.finish()

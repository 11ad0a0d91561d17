"""The table that makes `jobs submit` idempotent on AWS Batch."""

from __future__ import annotations

import pulumi
from pydantic import Field

from accel.contract import claims

from ..base import Component, Spec
from . import dynamodb


class ClaimTableSpec(Spec):
    """Settings of the table. Its rows and attributes are those of accel.contract.claims."""

    protect: bool = Field(
        default=False, description="Refuse to delete the table; losing it forgets which submission keys were used"
    )


class ClaimTable(Component):
    """A DynamoDB table, one row per submission key, paid per request; rows expire."""

    TYPE = "accel:aws:ClaimTable"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: ClaimTableSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        table = dynamodb.expiring(self, name, protect=spec.protect, expires=claims.EXPIRES, key=claims.KEY)
        self.name = table.name
        self.arn = table.arn
        self.finish()

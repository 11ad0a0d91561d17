"""The table in which clients reserve what jobs may cost."""

from __future__ import annotations

from typing import Literal

import pulumi
from pydantic import Field

from accel.contract import allowances

from ..base import Component, Spec
from . import dynamodb


class SpendLedgerSpec(Spec):
    """A table of DynamoDB. Its items are those of accel.contract.allowances."""

    kind: Literal["dynamodb"] = "dynamodb"
    protect: bool = Field(
        default=False, description="Refuse to delete the table; losing it forgets what was spent and held"
    )


class SpendLedger(Component):
    """A DynamoDB table, an item for each balance and each hold, paid per request; settled holds expire. It is not the
    claims' table: a team's holds are listed by its partition key, for which a policy can be written
    (dynamodb:LeadingKeys), and balances outlive claims."""

    TYPE = "accel:aws:SpendLedger"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: SpendLedgerSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        table = dynamodb.expiring(
            self, name, protect=spec.protect, expires=allowances.EXPIRES, key=allowances.TEAM, sort=allowances.ENTRY
        )
        self.name = table.name
        self.arn = table.arn
        self.finish()

"""The table in which clients hold what jobs may cost."""

from __future__ import annotations

from typing import Literal

import pulumi
from pydantic import Field

from accel.contract import allowances

from ..base import Component, Spec
from ..sdk import aws


class SpendLedgerSpec(Spec):
    """A table of DynamoDB. Its items are those of accel.contract.allowances."""

    kind: Literal["dynamodb"] = "dynamodb"
    protect: bool = Field(default=False, description="losing the table forgets what was spent and held")


class SpendLedger(Component):
    """A DynamoDB table, an item for each balance and each hold, paid per request; holds that are settled expire.

    It is a table of its own, beside the claims': a team's holds are listed by its partition key, of which a policy may
    be made (dynamodb:LeadingKeys), and balances outlive claims.
    """

    TYPE = "accel:aws:SpendLedger"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: SpendLedgerSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        table = aws.dynamodb.Table(
            name,
            billing_mode="PAY_PER_REQUEST",
            hash_key=allowances.TEAM,
            range_key=allowances.ENTRY,
            attributes=[
                aws.dynamodb.TableAttributeArgs(name=column, type="S") for column in (allowances.TEAM, allowances.ENTRY)
            ],
            ttl=aws.dynamodb.TableTtlArgs(attribute_name=allowances.EXPIRES, enabled=True),
            point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=spec.protect),
            deletion_protection_enabled=spec.protect,
            opts=self.child(protect=spec.protect),
        )
        self.name = table.name
        self.arn = table.arn
        self.finish()

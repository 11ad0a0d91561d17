"""DynamoDB tables in which clients of jobs share their records."""

from __future__ import annotations

from ..base import Component
from ..sdk import aws


def expiring(
    component: Component, name: str, *, protect: bool, expires: str, key: str, sort: str | None = None
) -> aws.dynamodb.Table:
    """Create a table, paid per request, that deletes items at the time in `expires`. Both keys are strings."""
    keys = [key] if sort is None else [key, sort]
    return aws.dynamodb.Table(
        name,
        billing_mode="PAY_PER_REQUEST",
        hash_key=key,
        range_key=sort,
        attributes=[aws.dynamodb.TableAttributeArgs(name=column, type="S") for column in keys],
        ttl=aws.dynamodb.TableTtlArgs(attribute_name=expires, enabled=True),
        point_in_time_recovery=aws.dynamodb.TablePointInTimeRecoveryArgs(enabled=True),
        deletion_protection_enabled=protect,
        opts=component.child(protect=protect),
    )

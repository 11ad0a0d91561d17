"""Tables of DynamoDB in which clients of jobs keep what they know together."""

from __future__ import annotations

from ..base import Component
from ..sdk import aws


def expiring(
    component: Component, name: str, *, protect: bool, expires: str, key: str, sort: str | None = None
) -> aws.dynamodb.Table:
    """A table, paid per request, whose items go at the time that `expires` says; both keys are strings."""
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

"""The IAM actions that a deployer needs for each AWS resource, by Pulumi type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast, get_args

from accel.catalog.tables import rows

Operation = Literal["create", "read", "update", "delete"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Permission:
    """IAM actions for one operation on one type."""

    operation: Operation
    actions: tuple[str, ...]
    resource: str
    """ARN template that IAM checks; empty if IAM has no resource, or none whose name is known before it exists."""
    names_of: str
    """Type whose names fill the template."""


@cache
def aws_permissions() -> dict[str, tuple[Permission, ...]]:
    """Return permissions by type, such as `aws:batch/jobQueue:JobQueue`. Raises DamagedData."""
    found: dict[str, tuple[Permission, ...]] = {}
    for row in rows("aws_permissions.csv"):
        if row["operation"] not in OPERATIONS:
            raise row.damaged("operation", f"not one of {', '.join(OPERATIONS)}: {row['operation']}")
        operation = cast("Operation", row["operation"])
        one = Permission(operation, row.parts("actions"), row["resource"], row["names_of"] or row["type"])
        found[row["type"]] = (*found.get(row["type"], ()), one)
    return found


def arn_template(kind: str) -> str:
    """Return an empty string if the type's rows have no template of their own."""
    return next((one.resource for one in aws_permissions().get(kind, ()) if one.resource and one.names_of == kind), "")

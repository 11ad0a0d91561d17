"""What a deployer may have to do with each resource of AWS: IAM actions by Pulumi's types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, cast, get_args

from accel.catalog.tables import rows

Operation = Literal["create", "read", "update", "delete"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Permission:
    """Actions of one operation on one type."""

    operation: Operation
    actions: tuple[str, ...]
    resource: str
    """A template of the ARN that IAM holds the actions against; empty where it knows no resource for them, or none
    whose name is known before it exists."""
    names_of: str
    """The type whose names go into the template."""


@cache
def aws_permissions() -> dict[str, tuple[Permission, ...]]:
    """By type, such as `aws:batch/jobQueue:JobQueue`. Raises DamagedData."""
    found: dict[str, tuple[Permission, ...]] = {}
    for row in rows("aws_permissions.csv"):
        if row["operation"] not in OPERATIONS:
            raise row.damaged("operation", f"not one of {', '.join(OPERATIONS)}: {row['operation']}")
        operation = cast("Operation", row["operation"])
        one = Permission(operation, row.parts("actions"), row["resource"], row["names_of"] or row["type"])
        found[row["type"]] = (*found.get(row["type"], ()), one)
    return found


def arn_template(kind: str) -> str:
    """The ARN of a type's resources; empty where its table has none of its own."""
    return next((one.resource for one in aws_permissions().get(kind, ()) if one.resource and one.names_of == kind), "")

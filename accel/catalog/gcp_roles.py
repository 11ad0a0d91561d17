"""What a deployer and who submits may have to do in Google Cloud: permissions by Pulumi's types and by kinds of
targets, and the predefined roles that have them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from accel.catalog.tables import rows

Operation = Literal["create", "read", "update", "delete"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Role:
    """A predefined role, with those of its permissions that a table here names."""

    name: str
    size: int
    """How many it has in all."""
    permissions: frozenset[str]

    @property
    def only_reads(self) -> bool:
        """As Google names such roles: viewer, reviewer, browser."""
        return self.name.lower().endswith(("viewer", "browser"))


class UncoveredPermissions(Exception):
    """Permissions that no role of the file has."""


@cache
def of_types() -> Mapping[str, Mapping[Operation, tuple[str, ...]]]:
    """By type, such as `gcp:compute/network:Network`; of a component, what its hooks and look-ups need besides.
    Raises DamagedData."""
    return {row["type"]: {each: row.parts(each) for each in OPERATIONS} for row in rows("gcp_resource_permissions.csv")}


@cache
def of_targets() -> Mapping[str, tuple[str, ...]]:
    """By kind of target, such as `gke`; `ledger` where what jobs may cost is held in Firestore."""
    return {row["kind"]: row.parts("permissions") for row in rows("gcp_submit_permissions.csv")}


@cache
def roles() -> tuple[Role, ...]:
    """Those that a deployment, or who submits, may need. Raises DamagedData."""
    return tuple(
        Role(row["role"], row.integer("size"), frozenset(row.parts("permissions"))) for row in rows("gcp_roles.csv")
    )


def least(permissions: Collection[str], *, reading: bool = False) -> list[Role]:
    """Roles that have them all together: always the one with the fewest permissions for each that is still missing, and
    in the end none that the others make superfluous; with `reading` of those that only read. Raises
    UncoveredPermissions."""
    missing, chosen = set(permissions), list[Role]()
    while missing:
        useful = [role for role in roles() if role.permissions & missing and (role.only_reads or not reading)]
        if not useful:
            raise UncoveredPermissions(", ".join(sorted(missing)))
        best = min(useful, key=lambda role: (role.size / len(role.permissions & missing), role.name))
        chosen.append(best)
        missing -= best.permissions
    for role in sorted(chosen, key=lambda one: -one.size):
        others = frozenset[str]().union(*(one.permissions for one in chosen if one is not role))
        if others.issuperset(permissions):
            chosen.remove(role)
    return sorted(chosen, key=lambda one: one.name)

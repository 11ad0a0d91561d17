"""Google Cloud permissions of deployers and submitters, by Pulumi type and target kind, and roles that grant them."""

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
    """Number of all its permissions."""
    permissions: frozenset[str]

    @property
    def only_reads(self) -> bool:
        """Whether Google's name for the role ends like that of a read-only one: viewer, reviewer, browser."""
        return self.name.lower().endswith(("viewer", "browser"))


class UncoveredPermissions(Exception):
    """Permissions that no role of the file has."""


@cache
def of_types() -> Mapping[str, Mapping[Operation, tuple[str, ...]]]:
    """Return permissions by type, such as `gcp:compute/network:Network`. A component's entry holds what its hooks and
    lookups need in addition. Raises DamagedData."""
    return {row["type"]: {each: row.parts(each) for each in OPERATIONS} for row in rows("gcp_resource_permissions.csv")}


@cache
def of_targets() -> Mapping[str, tuple[str, ...]]:
    """Return permissions by target kind, such as `gke`; `ledger` is for allowances kept in Firestore."""
    return {row["kind"]: row.parts("permissions") for row in rows("gcp_submit_permissions.csv")}


@cache
def roles() -> tuple[Role, ...]:
    """Raise DamagedData for a damaged file."""
    return tuple(
        Role(row["role"], row.integer("size"), frozenset(row.parts("permissions"))) for row in rows("gcp_roles.csv")
    )


def least(permissions: Collection[str], *, reading: bool = False) -> list[Role]:
    """Return roles that together grant the permissions: the one with the fewest permissions for each one still missing,
    without those that the others make superfluous. `reading`: read-only roles alone. Raise UncoveredPermissions."""
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

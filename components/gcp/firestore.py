"""Firestore databases in which clients of jobs share their records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pulumi

from ..base import Component
from ..sdk import gcp
from .services import enable_services


class Settings(Protocol):
    """What the specs of all databases have."""

    @property
    def location(self) -> str | None: ...

    @property
    def protect(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class DatabaseArgs:
    """The spec, and the project and region that the database is for."""

    spec: Settings
    project: str
    region: str


def expiring(component: Component, name: str, args: DatabaseArgs, *, collection: str, field: str) -> pulumi.Output[str]:
    """Create a database in native mode, paid per request, and return its path: projects/<p>/databases/<d>. Documents of
    the collection expire at the time in the given field."""
    project, protect = args.project, args.spec.protect
    made = gcp.firestore.Database(
        name,
        project=project,
        location_id=args.spec.location or args.region,
        type="FIRESTORE_NATIVE",
        delete_protection_state=f"DELETE_PROTECTION_{'ENABLED' if protect else 'DISABLED'}",
        # The provider's own default leaves the database behind.
        deletion_policy="DELETE",
        opts=component.child(protect=protect, depends_on=enable_services(component, name, project, ["firestore"])),
    )
    gcp.firestore.Field(
        f"{name}-expiry",
        project=project,
        database=made.name,
        collection=collection,
        field=field,
        ttl_config=gcp.firestore.FieldTtlConfigArgs(),
        # Deleted with its database.
        deletion_policy="ABANDON",
        opts=component.child(),
    )
    return made.id

"""Databases of Firestore in which clients of jobs keep what they know together."""

from __future__ import annotations

import pulumi

from ..base import Component
from ..sdk import gcp
from .services import enable_services


def expiring(
    component: Component, name: str, *, project: str, location: str, protect: bool, collection: str, field: str
) -> pulumi.Output[str]:
    """A database in native mode, paid per request, whose documents of the collection go at the time that the field
    says: projects/<p>/databases/<d>."""
    made = gcp.firestore.Database(
        name,
        project=project,
        location_id=location,
        type="FIRESTORE_NATIVE",
        delete_protection_state=f"DELETE_PROTECTION_{'ENABLED' if protect else 'DISABLED'}",
        # The provider's own default leaves it behind.
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
        # It goes with its database.
        deletion_policy="ABANDON",
        opts=component.child(),
    )
    return made.id

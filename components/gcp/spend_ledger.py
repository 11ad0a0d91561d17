"""The database in which clients hold what jobs may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.contract import allowances

from ..base import Component, Spec
from ..sdk import gcp
from .services import enabled


class GcpSpendLedgerSpec(Spec):
    """A database of Firestore. Its documents are those of accel.contract.allowances."""

    kind: Literal["firestore"] = "firestore"
    location: str | None = Field(default=None, description="of Firestore, such as nam5; absent: the section's region")
    protect: bool = Field(default=False, description="losing the database forgets what was spent and held")


@dataclass(frozen=True, kw_only=True)
class SpendLedgerArgs:
    """The spec, and the project and region that the database is for."""

    spec: GcpSpendLedgerSpec
    project: str
    region: str


class SpendLedger(Component):
    """A Firestore database in native mode, a document for each balance and each hold, paid per request; holds that are
    settled expire."""

    TYPE = "accel:gcp:SpendLedger"

    database: pulumi.Output[str]

    def __init__(self, name: str, args: SpendLedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        services = enabled(self, name, args.project, ["firestore"])
        made = gcp.firestore.Database(
            name,
            project=args.project,
            location_id=spec.location or args.region,
            type="FIRESTORE_NATIVE",
            delete_protection_state=f"DELETE_PROTECTION_{'ENABLED' if spec.protect else 'DISABLED'}",
            # The provider's own default leaves it behind.
            deletion_policy="DELETE",
            opts=self.child(protect=spec.protect, depends_on=services),
        )
        gcp.firestore.Field(
            f"{name}-expiry",
            project=args.project,
            database=made.name,
            collection=allowances.HOLDS,
            field=allowances.EXPIRES,
            ttl_config=gcp.firestore.FieldTtlConfigArgs(),
            # It goes with its database.
            deletion_policy="ABANDON",
            opts=self.child(),
        )
        # projects/<p>/databases/<d>
        self.database = made.id
        self.finish()

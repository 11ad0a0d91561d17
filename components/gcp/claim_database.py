"""The database that makes `jobs submit` idempotent on Vertex AI."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.contract import claims

from ..base import Component, Spec
from . import firestore


class ClaimDatabaseSpec(Spec):
    """Settings of the database. Its documents are those of accel.contract.claims."""

    location: str | None = Field(
        default=None, description="Firestore location, such as nam5. Default: the section's region"
    )
    protect: bool = Field(
        default=False, description="Protect the database from deletion, which loses the record of used submission keys"
    )


@dataclass(frozen=True, kw_only=True)
class ClaimDatabaseArgs(firestore.DatabaseArgs):
    """Arguments of a claim database."""

    spec: ClaimDatabaseSpec


class ClaimDatabase(Component):
    """A Firestore database in native mode, one document per submission key, paid per request; documents expire."""

    TYPE = "accel:gcp:ClaimDatabase"

    database: pulumi.Output[str]

    def __init__(self, name: str, args: ClaimDatabaseArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        self.database = firestore.expiring(self, name, args, collection=claims.COLLECTION, field=claims.EXPIRES)
        self.finish()

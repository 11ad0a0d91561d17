"""The database in which clients reserve what jobs may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.contract import allowances

from ..base import Component, Spec
from . import firestore


class GcpSpendLedgerSpec(Spec):
    """A database of Firestore. Its documents are those of accel.contract.allowances."""

    kind: Literal["firestore"] = "firestore"
    location: str | None = Field(
        default=None, description="Firestore location, such as nam5. Default: the section's region"
    )
    protect: bool = Field(
        default=False,
        description="Protect the database from deletion, which loses the record of spent and held amounts",
    )


@dataclass(frozen=True, kw_only=True)
class SpendLedgerArgs(firestore.DatabaseArgs):
    """Arguments of a spend ledger."""

    spec: GcpSpendLedgerSpec


class SpendLedger(Component):
    """A Firestore database in native mode, a document per balance and hold, paid per request; settled holds expire."""

    TYPE = "accel:gcp:SpendLedger"

    database: pulumi.Output[str]

    def __init__(self, name: str, args: SpendLedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        self.database = firestore.expiring(self, name, args, collection=allowances.HOLDS, field=allowances.EXPIRES)
        self.finish()

"""The `allowances` section as a ledger, an output, and a part of every target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from accel.contract.allowances import DynamoDbLedger, FirestoreLedger, Ledger
from components.aws.spend_ledger import SpendLedger as LedgerTable
from components.aws.spend_ledger import SpendLedgerSpec as TableSpec
from components.gcp.spend_ledger import GcpSpendLedgerSpec as DatabaseSpec
from components.gcp.spend_ledger import SpendLedger as LedgerDatabase
from components.gcp.spend_ledger import SpendLedgerArgs as LedgerDatabaseArgs

from .export_model import promise_output

if TYPE_CHECKING:
    from .config import Environment
    from .gcp.config import Gcp

NAME = "ledger"

Wired = Mapping[str, pulumi.Output[Any]]


class Spending:
    """The allowances of one environment. The first section that can creates the ledger; the targets of all name it."""

    def __init__(self, environment: Environment) -> None:
        self._spec, self._owner = environment.allowances, environment.owner
        self._stack = f"{pulumi.get_project()}/{pulumi.get_stack()}"
        self._kept = self._spec.ledger_spec(aws=environment.aws is not None) if self._spec else None
        self._wired: Wired = {}
        self.table_arn: pulumi.Output[str] | None = None

    def on_aws(self, region: str, on_aws: pulumi.ResourceOptions) -> Wired:
        """Create the ledger if it belongs to AWS. Return what targets are wired with, if anything."""
        if isinstance(self._kept, TableSpec):
            made = LedgerTable(NAME, self._kept, on_aws)
            self.table_arn = made.arn
            self._promise(made.name, lambda name: DynamoDbLedger(region=region, table=name))
        return self._everywhere()

    def on_gcp(self, section: Gcp, on_gcp: pulumi.ResourceOptions) -> Wired:
        if isinstance(self._kept, DatabaseSpec):
            args = LedgerDatabaseArgs(spec=self._kept, project=section.project, region=section.region)
            made = LedgerDatabase(NAME, args, on_gcp)
            self._promise(made.database, lambda name: FirestoreLedger(database=name))
        return self._everywhere()

    def _everywhere(self) -> Wired:
        if self._kept is not None and not self._wired:
            self._promise(pulumi.Output.from_input(""), lambda name: None)
        return self._wired

    def _promise(self, name: pulumi.Output[str], ledger: Callable[[str], Ledger | None]) -> None:
        spec = self._spec
        assert spec is not None

        def promise(known: str) -> dict[str, Any]:
            return spec.promise(self._stack, self._owner, ledger(known)).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )

        found = promise_output(name, promise)
        pulumi.export("allowances", found)
        self._wired = {"allowances": found}

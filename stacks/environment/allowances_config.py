"""The `allowances` section of an environment: what teams may spend on jobs, and where that is kept."""

from typing import Annotated, Literal

from pydantic import Field

from accel.contract.allowances import Allowance, Allowances, Ledger
from components.aws.spend_ledger import SpendLedgerSpec as TableSpec
from components.base import Name, Spec
from components.gcp.spend_ledger import GcpSpendLedgerSpec as DatabaseSpec


class MachineLedger(Spec):
    """No ledger of the stack: every machine counts its own jobs alone, and says so."""

    kind: Literal["machine"]


class Team(Spec):
    """What one team may spend in a calendar month (UTC) on jobs of this stack."""

    usd: float = Field(gt=0, description="a month")
    unpriced: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="jobs whose price the catalogue does not wholly know; warn: what is known of it is held",
    )


AnyLedger = Annotated[TableSpec | DatabaseSpec | MachineLedger, Field(discriminator="kind")]


class AllowancesSpec(Spec):
    """Who may spend how much. A job's label `team` names who pays for it; without it that is the owner, if it has an
    allowance."""

    teams: dict[Name, Team] = Field(min_length=1)
    ledger: AnyLedger | None = Field(
        default=None, description="absent: kind dynamodb in a stack with AWS, else kind firestore"
    )

    def ledger_spec(self, *, aws: bool) -> TableSpec | DatabaseSpec | MachineLedger:
        """The ledger, chosen where it is absent."""
        return self.ledger or (TableSpec() if aws else DatabaseSpec())

    def fault(self, *, aws: bool, gcp: bool) -> str | None:
        """What the ledger's kind lacks in an environment with these sections."""
        kind = self.ledger_spec(aws=aws).kind
        if kind == "dynamodb" and not aws:
            return "is a table of AWS, and there is no section aws; use kind firestore"
        if kind == "firestore" and (aws or not gcp):
            return "is for a stack of Google Cloud alone; with a section aws use kind dynamodb, which serves both"
        return None

    def promise(self, stack: str, owner: str, ledger: Ledger | None) -> Allowances:
        """What the stack's jobs are held to."""
        teams = {name: Allowance(usd=team.usd, unpriced=team.unpriced) for name, team in self.teams.items()}
        return Allowances(stack=stack, teams=teams, default_team=owner if owner in teams else None, ledger=ledger)

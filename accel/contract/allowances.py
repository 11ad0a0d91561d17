"""Spending allowances of teams: the `allowances` output, which every target has too, and the ledger in which every
client reserves the maximum cost of a job before sending it.

A ledger has balances, one per team and month, and holds, one per job, which change together, in one transaction under
conditions: a balance is always the sum of its holds, and two concurrent clients cannot reserve more than is available.
A cloud's budget knows the spending of a day ago; a ledger knows the requests up to this moment.
"""

from typing import Annotated, Literal

from pydantic import Field

from .model import SCHEMA, Contract

LABEL = "team"
"""Job label that names the paying team."""

TEAM = "team"
"""Partition key of the table, a string."""
ENTRY = "entry"
"""Sort key of the table, a string: `balance#<month>`, or `hold#<submission key>`."""
BALANCE, HOLD = "balance#", "hold#"
TEAMS, BALANCES, HOLDS = "accel-teams", "accel-balances", "accel-holds"
"""Firestore collections. A team's document contains its balances by month and its holds by submission key."""
USED = "used"
"""Number in a balance: micro-USD held or settled."""
SETTLED = "settled"
"""Number in a balance: micro-USD of jobs that have ended; part of USED."""
TERMS = "terms"
"""String in a hold: the hold as JSON."""
VERSION = "version"
"""String in a hold of the table. It changes with every update."""
EXPIRES = "expires"
"""Expiry of a settled hold, Unix seconds in DynamoDB and a timestamp in Firestore; the row may be deleted after it.
Claims on the key expire earlier, so that a reused key finds either its hold or no job."""
REMEMBERED_DAYS = 60


class Allowance(Contract):
    """The spending limit of one team in a calendar month (UTC)."""

    usd: float = Field(ge=0, description="Limit in USD per month")
    period: Literal["month"] = "month"
    unpriced: Literal["refuse", "warn"] = Field(
        default="refuse",
        description="Handling of jobs whose price is not wholly known; refuse them, or warn and hold what is known",
    )


class DynamoDbLedger(Contract):
    """A table of the stack."""

    kind: Literal["dynamodb"] = "dynamodb"
    region: str
    table: str


class FirestoreLedger(Contract):
    """A database of the stack."""

    kind: Literal["firestore"] = "firestore"
    database: str = Field(description="Firestore database: projects/<p>/databases/<d>")


Ledger = Annotated[DynamoDbLedger | FirestoreLedger, Field(discriminator="kind")]


class Allowances(Contract):
    """Allowances of all teams, and the ledger that records them."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    stack: str = Field(default="", description="Stack that the allowances belong to: <project>/<stack>")
    teams: dict[str, Allowance] = Field(min_length=1)
    default_team: str | None = Field(default=None, description="Team that pays for jobs without the label `team`")
    ledger: Ledger | None = Field(
        default=None, description="Ledger shared by all clients. Without it, every machine counts only its own jobs"
    )


TargetAllowances = Annotated[
    Allowances | None, Field(description="Allowances of teams: who may spend how much on jobs here")
]

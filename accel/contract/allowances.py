"""What teams may spend on the jobs of a stack: the `allowances` output, which every target has too, and the ledger in
which every client holds what a job may cost at worst before it sends the job.

A ledger has balances, one a team and month, and holds, one a job. They change together, in one transaction, under
conditions; so the balance is always the sum of its holds, and two clients at once cannot hold more than is there. A
budget of a cloud knows what was spent a day ago; a ledger knows what has been asked for just now.
"""

from typing import Annotated, Literal

from pydantic import Field

from .model import SCHEMA, Contract

LABEL = "team"
"""The label of a job that names who pays for it."""

TEAM = "team"
"""Partition key of the table, a string."""
ENTRY = "entry"
"""Sort key of the table, a string: `balance#<month>`, or `hold#<submission key>`."""
BALANCE, HOLD = "balance#", "hold#"
TEAMS, BALANCES, HOLDS = "accel-teams", "accel-balances", "accel-holds"
"""Collections of Firestore: below the document of a team its balances by month, and its holds by submission key."""
USED = "used"
"""Of a balance, a number: micro-USD that are held or settled."""
SETTLED = "settled"
"""Of a balance, a number: micro-USD of jobs that have ended; part of USED."""
TERMS = "terms"
"""Of a hold, a string: the hold as JSON."""
VERSION = "version"
"""Of a hold in the table, a string: another one after every change."""
EXPIRES = "expires"
"""Of a hold that is settled, Unix seconds in DynamoDB and a timestamp in Firestore: then the row may go. Its key is
claimed for less long, so that a key that is used again finds either its hold or no job."""
REMEMBERED_DAYS = 60


class Allowance(Contract):
    """What one team may spend in a calendar month (UTC)."""

    usd: float = Field(ge=0, description="a month")
    period: Literal["month"] = "month"
    unpriced: Literal["refuse", "warn"] = Field(
        default="refuse", description="jobs whose price is not wholly known; warn: what is known of it is held"
    )


class DynamoDbLedger(Contract):
    """A table of the stack."""

    kind: Literal["dynamodb"] = "dynamodb"
    region: str
    table: str


class FirestoreLedger(Contract):
    """A database of the stack."""

    kind: Literal["firestore"] = "firestore"
    database: str = Field(description="projects/<p>/databases/<d>")


Ledger = Annotated[DynamoDbLedger | FirestoreLedger, Field(discriminator="kind")]


class Allowances(Contract):
    """Who may spend how much, and where that is kept."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    stack: str = Field(default="", description="<project>/<stack>: whose they are")
    teams: dict[str, Allowance] = Field(min_length=1)
    default_team: str | None = Field(default=None, description="pays for jobs without the label")
    ledger: Ledger | None = Field(default=None, description="none: every machine counts its own jobs alone")

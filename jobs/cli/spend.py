"""`jobs spend`."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say, warn
from accel.console.options import OneOf, Settings
from accel.console.output import age, show
from accel.console.verb import Verb
from accel.diagnostics.errors import NotFound
from accel.diagnostics.messages import did_you_mean, printable_name

from ..client.allowances.ledgers import address, ledger_at
from ..client.allowances.reservation import MICRO
from ..client.targets import known_targets

if TYPE_CHECKING:
    from accel.contract.allowances import Allowances

    from ..client.allowances.reservation import Hold, Ledger
    from ..client.targets import Targets

TEAMS = ("team", "period", "allowance", "held", "settled", "free", "jobs")
JOBS = ("job", "team", "period", "target", "held", "settled", "age")
WIDE = (*JOBS, "name", "attempts", "timeout_s", "machines", "why")


@click.command(cls=Verb)
@click.argument("action", metavar="[settle]", required=False, type=OneOf("settle"))
@click.option("--team", metavar="TEAM", help="Show only this team.")
@click.option(
    "--jobs", "per_job", is_flag=True, help="Show each job that has a reservation, or that was submitted this month."
)
@click.pass_obj
def spend(settings: Settings, action: str | None, team: str | None, per_job: bool) -> None:
    """Show what teams may spend this month, what is reserved for their jobs, and what ended jobs have cost.

    `spend settle` looks at every job with a reservation. It settles those that have ended by their run time, and
    releases the reservations of jobs that were never created.
    """
    known = known_targets(settings)
    found = list(_ledgers(known))
    if not found:
        raise NotFound("no target here has allowances", "they are the section `allowances` of the stack's environment")
    names = [name for allowances, _ in found for name in allowances.teams]
    if team is not None and team not in names:
        raise NotFound(f"--team: {printable_name(team)} has no allowance{did_you_mean(team, sorted(names))}")
    wanted = [(of, book, name) for of, book in found for name in sorted(of.teams) if team in (None, name)]
    if any(not book.shared for _, book, _ in wanted):
        warn("these holds are of this machine alone: the stack has no ledger", settings)
    if action == "settle":
        rows = [row for _, book, name in wanted for row in _settled(book, name, known, settings)]
        show(rows, settings.output, JOBS, WIDE, "job")
    elif per_job:
        rows = [row for _, book, name in wanted for row in _jobs(book, name)]
        show(rows, settings.output, JOBS, WIDE, "job")
    else:
        show([_team(of, book, name) for of, book, name in wanted], settings.output, TEAMS, TEAMS, "team")


def _ledgers(known: "Targets") -> "Iterator[tuple[Allowances, Ledger]]":
    """Yield each ledger once, however many targets name it."""
    seen: set[str] = set()
    for entry in known.entries.values():
        allowances: Allowances | None = getattr(entry.target, "allowances", None)
        if allowances is not None and (where := address(allowances)) not in seen:
            seen.add(where)
            yield allowances, ledger_at(where)


def _team(allowances: "Allowances", book: "Ledger", name: str) -> dict[str, Any]:
    holds = book.holds(name)
    period = _period(book)
    balance = book.balance(name, period)
    limit = allowances.teams[name].usd
    return {
        "team": name,
        "period": period,
        "allowance": f"{limit:.2f}",
        "held": _usd(balance.reserved),
        "settled": _usd(balance.settled),
        "free": f"{limit - balance.used / MICRO:.2f}",
        "jobs": sum(hold.open and hold.period == period for hold in holds),
    }


def _jobs(book: "Ledger", name: str) -> list[dict[str, Any]]:
    holds = sorted(book.holds(name), key=lambda hold: -hold.made)
    period = _period(book)
    return [_row(hold) for hold in holds if hold.open or hold.period == period]


def _settled(book: "Ledger", name: str, known: "Targets", settings: Settings) -> list[dict[str, Any]]:
    from ..client.allowances.settlement import settle_team

    targets = {key: entry.target for key, entry in known.entries.items() if entry.target}
    done = settle_team(book, name, targets)
    for line in done.unseen:
        warn(f"not settled: {line}", settings)
    say(
        f"team {name}: {len(done.settled)} settled, {len(done.released)} released that were never created, "
        f"{done.running + len(done.unseen)} held"
    )
    return [_row(hold) for hold in done.settled] + [{**_row(hold), "why": "never made"} for hold in done.released]


def _row(hold: "Hold") -> dict[str, Any]:
    made = datetime.fromtimestamp(hold.made, UTC)
    values = {
        name: value for name, value in asdict(hold).items() if name not in ("usd", "usd_hour", "version", "owner")
    }
    return values | {
        "job": hold.ref or hold.name,
        "made": made.isoformat(),
        "held": _usd(hold.usd if hold.open else 0),
        "settled": None if hold.settled is None else _usd(hold.settled),
        "age": age(made),
    }


def _period(book: "Ledger") -> str:
    """Return the month by the ledger's clock, at its last read."""
    return f"{datetime.fromtimestamp(book.now(), UTC):%Y-%m}"


def _usd(amount: int) -> str:
    """Return USD as text, including fractions of a cent: a short job on a small machine costs less than one."""
    text = f"{amount / MICRO:.6f}".rstrip("0")
    return text + "0" * max(0, 2 - len(text.partition(".")[2]))

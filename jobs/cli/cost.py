"""`jobs cost`."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show_json, table
from accel.console.verb import Verb
from accel.cost import least_sure

from ..backends.registry import of_target
from ..client import cost as costs
from ..client.offers import KEY, decide, none_can
from ..client.targets import known_targets
from ..model.document import read
from ..model.job import Job
from ..model.keys import platform_name

if TYPE_CHECKING:
    from ..client.cost_parts import JobCost

COLUMNS = ("target", "environment", "capacity", "machines", "usd_hour", "usd_attempt", "confidence", "prices_of")


@click.command(cls=Verb)
@click.argument("file")
@click.option("--to", metavar="TARGET", help="Target. Default: all that can run the job.")
@click.pass_obj
def cost(settings: Settings, file: str, to: str | None) -> None:
    """Show what the job in FILE costs: one attempt of the full timeout, and the worst case, with every attempt of every
    task on demand. Without timeout_s, the cost is unbounded."""
    job = read(file, Job).job()
    found = _costs(job, known_targets(settings), to)
    if settings.output in ("json", "jsonl"):
        rows = [asdict(each) for each in found]
        show_json(rows, settings.output)
        return
    if settings.output == "id":
        for each in found:
            click.echo(each.target)
        return

    table([row for each in found for row in _rows(each)], COLUMNS)
    for each in found:
        click.echo(f"{each.target}: worst case: {_worst(each)}")
        for note in each.notes:
            say(f"{each.target}: {note}")


def _costs(job: Any, found: Any, to: str | None) -> "list[JobCost]":
    """Return the cost on the named target, else on all that can run the job. Raise BadInputs with reasons if none."""
    if to is not None:
        name, target = found.choose(to)
        of_target(name, target).render(job, platform_name(job.name, KEY), KEY)
        return [costs.of(job, name, target)]
    decision = decide(job, found.entries)
    if not decision.offers:
        raise none_can(decision)
    return [costs.of(job, *found.choose(offer.target)) for offer in decision.offers]


def _rows(found: "JobCost") -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for each in found.environments:
        for capacity in dict.fromkeys((each.capacity, "on-demand")):
            prices = each.range(capacity)
            known = [rate for rate in each.rates if rate.paid(capacity) is not None]
            rows.append(
                {
                    "target": found.target,
                    "environment": each.name,
                    "capacity": capacity,
                    "machines": _machines([rate.machine for rate in each.rates]),
                    "usd_hour": _range(prices, 4),
                    "usd_attempt": _attempt(found, prices),
                    "confidence": _least(known),
                    "prices_of": ", ".join(dict.fromkeys(date for rate in known for date in rate.dates)),
                }
            )
    return rows


def _least(rates: list[Any]) -> str:
    return least_sure(rate.confidence for rate in rates) if rates else ""


def _machines(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else "not in the catalogue"


def _range(prices: tuple[float, float] | None, decimals: int = 2) -> str:
    if prices is None:
        return "unknown"
    low, high = (f"{usd:,.{decimals}f}" for usd in prices)
    return low if low == high else f"{low}..{high}"


def _attempt(found: "JobCost", prices: tuple[float, float] | None) -> str:
    if found.timeout_s is None:
        return "unbounded"
    if prices is None:
        return "unknown"
    low, high = (found.attempt(usd) or 0.0 for usd in prices)
    return _range((low, high))


def _worst(found: "JobCost") -> str:
    if not found.environments:
        return "nothing is billed"
    if found.timeout_s is None:
        return "unbounded, since the job has no timeout_s"
    if found.worst is None:
        return "unknown, since no price is known"
    assumed = " (assumed)" if found.attempts_assumed else ""
    return (
        f"{'at least ' if found.at_least else ''}{found.worst:,.2f} USD = the dearest type on demand x "
        f"{found.timeout_s / 3600:g} h x {found.attempts} attempts{assumed} x {found.tasks} tasks"
    )

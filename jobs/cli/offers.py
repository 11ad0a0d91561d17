"""`jobs offers`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from accel.catalog.places import nearest_places
from accel.console.errors import say
from accel.console.options import Amount, OneOf, Settings, WholeNumber, program
from accel.console.output import show, show_json
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput

from ..client.cost_parts import usd
from ..client.market import kinds, list_machines, not_sold, parse_gpu, slices

if TYPE_CHECKING:
    from ..client.market import MarketMachine
    from ..client.offers import Decision, Offer

COLUMNS = ("target", "where", "machine", "capacity", "usd_hour", "expected", "on_demand", "worst", "prices_of")
WIDE = (*COLUMNS, "environment", "hours", "confidence", "note")
LISTED = (
    "cloud",
    "region",
    "machine",
    "count",
    "gpu_memory",
    "vcpus",
    "memory_gib",
    "on_demand",
    "spot",
    "prices_of",
    "confidence",
)
LISTED_WIDE = (*LISTED[:9], "spot_low", *LISTED[9:], "note")
KINDS = ("gpu", "gpu_memory", "a_machine", "clouds", "best_for")
KINDS_WIDE = (*KINDS, "architecture", "source")
LIMIT = 20


@click.command(cls=Verb)
@click.argument("file", required=False)
@click.option("--gpu", metavar="KIND[:COUNT]", help="GPUs of one task, such as a100-80gb:8, in place of those in FILE.")
@click.option("--best-for", is_flag=True, help="List the kinds of GPU, their memory, and what each is best for.")
@click.option("--cloud", type=OneOf("aws", "gcp"), help="Without FILE: only this cloud.")
@click.option("--region", metavar="REGION", help="Without FILE: only this region.")
@click.option("--cpus", type=WholeNumber(min=1), help="Without FILE: minimum number of vCPUs.")
@click.option("--memory-gib", type=Amount(min=0), help="Without FILE: minimum memory.")
@click.option("--capacity", type=OneOf("spot", "on-demand"), help="Without FILE: rank by this price.")
@click.option("--limit", type=WholeNumber(min=1), help=f"Without FILE: maximum number of offers (default: {LIMIT}).")
@click.pass_obj
def offers(settings: Settings, file: str | None, gpu: str | None, best_for: bool, **asked: Any) -> None:
    """Show every target that could run the job in FILE, cheapest first, and why the others cannot.

    Without FILE, --gpu lists what the clouds sell with such GPUs, and --best-for lists the kinds of GPU. Prices come
    from the catalogue.
    """
    if best_for:
        _kinds(settings, file or gpu, asked)
        return
    if file is None and gpu is None:
        raise BadInput(f"{program()} offers: FILE or --gpu is missing", f"`{program()} offers --help` shows its usage")
    given = {name: value for name, value in asked.items() if value is not None}
    if file is None:
        _market(settings, str(gpu), given)
        return
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise BadInput(f"{program()} offers: {names}: for the catalogue only; with FILE the targets are asked")
    _decision(settings, file, gpu)


def _kinds(settings: Settings, beside: str | None, asked: dict[str, Any]) -> None:
    cloud = asked.pop("cloud")
    if beside is not None or any(value is not None for value in asked.values()):
        raise BadInput("--best-for: is alone, or with --cloud")
    found = kinds(cloud)
    if settings.output in ("json", "jsonl"):
        rows = [asdict(each) for each in found]
        show_json(rows, settings.output)
        return
    shown = [
        {
            "gpu": each.accelerator,
            "gpu_memory": f"{each.gpu_memory_gib:g} GiB",
            "a_machine": " to ".join(f"{count:g}" for count in dict.fromkeys((*each.counts[:1], *each.counts[-1:]))),
            "clouds": ", ".join(each.clouds),
            "best_for": ", ".join(each.best_for) or "-",
            "architecture": each.architecture,
            "source": each.source or "-",
        }
        for each in found
    ]
    _show(shown, settings.output, KINDS, KINDS_WIDE, "gpu")


def _decision(settings: Settings, file: str, gpu: str | None) -> None:
    from ..client.offers import decide, none_can
    from ..client.targets import known_targets
    from ..model.document import read
    from ..model.job import Job

    document = read(file, Job)
    if gpu is not None:
        kind, count = parse_gpu(gpu)
        document.set(f"accelerator.type={kind}")
        document.set(f"accelerator.count={1 if count is None else count}")
    decision = decide(document.job(), known_targets(settings).entries)
    if settings.output in ("json", "jsonl"):
        _as_json(decision, settings.output)
    else:
        _show([_row(offer) for offer in decision.offers], settings.output, COLUMNS, WIDE, "target")
        for offer in decision.offers:
            for note in offer.notes:
                say(f"{offer.target}: {note}")
    if not decision.offers:
        raise none_can(decision)
    for each in decision.rejections:
        for reason in each.reasons:
            say(f"cannot run it: {each.target}: {reason}")


def _as_json(decision: "Decision", form: str) -> None:
    rows: list[dict[str, Any]] = [{"can_run": True, **asdict(offer)} for offer in decision.offers]
    rows += [{"can_run": False, **asdict(each)} for each in decision.rejections]
    show_json(rows, form)


def _row(offer: "Offer") -> dict[str, Any]:
    return {
        **{field: getattr(offer, field) for field in ("target", "machine", "capacity", "environment", "confidence")},
        "where": offer.region or offer.kind,
        **(_prices(offer) if offer.region else {}),
        "hours": f"{offer.hours:.2f}",
        "prices_of": ", ".join(offer.dates),
        "note": "; ".join(offer.notes),
    }


def _prices(offer: "Offer") -> dict[str, str]:
    return {
        "usd_hour": usd(offer.usd_hour, 4),
        "expected": usd(offer.expected),
        "on_demand": usd(offer.on_demand),
        "worst": f"{'at least ' * offer.at_least}{usd(offer.worst)}" if offer.bounded else "unbounded",
    }


def _market(settings: Settings, gpu: str, asked: dict[str, Any]) -> None:
    limit = asked.pop("limit", LIMIT)
    sized = asked.get("cloud") == "aws" or {"cpus", "memory_gib"} & asked.keys()
    if not sized and (found := slices(gpu, asked.get("region"), asked.get("capacity"))):
        _listing(settings, found, limit)
        return
    kind, count = parse_gpu(gpu)
    found = list_machines(kind, count, **asked)
    left_out = not_sold(kind, count, asked.get("cloud"), asked.get("capacity"))
    if not found:
        raise _nowhere(asked.pop("region"), list_machines(kind, count, **asked), left_out)
    for reason in left_out:
        say(f"left out: {reason}")
    _listing(settings, found, limit)


def _listing(settings: Settings, found: "Sequence[MarketMachine]", limit: int) -> None:
    shown = found[:limit]
    if settings.output in ("json", "jsonl"):
        rows = [asdict(each) for each in shown]
        show_json(rows, settings.output)
    else:
        _show([_listed_row(each) for each in shown], settings.output, LISTED, LISTED_WIDE, "machine")
    say(f"Shown {len(shown)} of {len(found)}")


def _nowhere(region: str, elsewhere: "Sequence[MarketMachine]", left_out: Sequence[str]) -> "BadInput":
    near = nearest_places(region, tuple(dict.fromkeys(each.region for each in elsewhere)))
    hint = f"left out: {'; '.join(left_out)}" if left_out else ""
    return BadInput(f'--region: "{region}" has no such machine; nearest: {", ".join(near)}', hint)


def _listed_row(each: "MarketMachine") -> dict[str, Any]:
    return {
        **{field: getattr(each, field) for field in ("cloud", "region", "machine", "vcpus", "confidence")},
        "count": f"{each.count:g}",
        "gpu_memory": f"{each.gpu_memory_gib:g}",
        "memory_gib": f"{each.memory_gib:g}",
        "on_demand": usd(each.on_demand, 4),
        "spot": usd(each.spot, 4),
        "spot_low": usd(each.spot_low, 4),
        "prices_of": ", ".join(each.dates),
        "note": "; ".join(filter(None, (each.why_unknown, *each.notes))),
    }


def _show(rows: list[dict[str, Any]], form: str, columns: Sequence[str], wide: Sequence[str], name: str) -> None:
    show(rows, form, columns, wide, name)

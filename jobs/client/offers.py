"""The targets that could run a job, with its expected cost, and why the others cannot.

A queue tries its environments in order, and nobody knows beforehand whether the first has capacity. So an offer is
priced as its first environment that can hold the job (the cheapest type there), and also shows what the job costs where
it lands on demand.

    expected = USD an hour x tasks x hours, and on Spot hours = run + repeats x lost
    repeats  = share of instances interrupted in a month x run / 730
    lost     = half a checkpoint interval where the job's env has CHECKPOINT_DIR, else the whole run

The run is `timeout_s`, or one hour where the job has none. The share is the middle of the band that AWS's Spot advisor
gives (https://aws.amazon.com/ec2/spot/instance-advisor/); for the open band above 20 % it is the lower end, which also
stands in for Google Cloud: Google publishes no bands.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from accel import cost
from accel.catalog.spot import Interruption, interruption
from accel.diagnostics.errors import BadInput, BadInputs

from ..backends.registry import of_target
from ..model.job import Job
from ..model.keys import platform_name
from . import cost as job_cost
from .cost_parts import Environment, JobCost, Rate, usd
from .targets import Entry, Target

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
CHECKPOINT_EVERY_H = 0.5
"""Assumed hours between the checkpoints of a job with CHECKPOINT_DIR."""

NO_BAND = 0.2
"""Share of instances interrupted in a month where the advisor has no row: the edge of its worst band."""

ASSUMED_RUN_H = 1.0
"""Assumed hours of a job without timeout_s, so that offers can be compared."""

LOCAL_KIND = "local"
KEY = "0" * 64


@dataclass(frozen=True)
class Offer:
    """A target that can run the job. Prices are in USD: `usd_hour` of one task's machine, `expected` and `on_demand` of
    the whole job run once, `worst` of all its attempts. With `at_least` the price of a type is not known, and `worst`
    may be higher. None means not known; `worst` is None too where no timeout_s makes the job `bounded`. `hours` are
    those to pay for, `repeats` the Spot interruptions to expect in them."""

    target: str
    kind: str
    region: str
    environment: str = ""
    capacity: str = ""
    machine: str = ""
    usd_hour: float | None = None
    expected: float | None = None
    on_demand: float | None = None
    worst: float | None = None
    at_least: bool = False
    bounded: bool = True
    hours: float = ASSUMED_RUN_H
    repeats: float = 0.0
    dates: tuple[str, ...] = ()
    confidence: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rejection:
    """A target that cannot run the job, and every reason."""

    target: str
    kind: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """Offers, the cheapest first, then those without a known price, this machine last; and the rejections."""

    offers: tuple[Offer, ...]
    rejections: tuple[Rejection, ...]


def decide(job: Job, entries: Mapping[str, Entry]) -> Decision:
    """Judge and rank every target. The function is pure, and a cache answers the same question again."""
    text = job.model_dump_json()
    offers: list[Offer] = []
    rejections: list[Rejection] = []
    for name, entry in entries.items():
        if entry.target is None:
            rejections.append(Rejection(name, entry.kind, (entry.fault or "cannot be used",)))
            continue
        judged = _judged(_Question(job, text, name, entry.target))
        if isinstance(judged, Offer):
            offers.append(judged)
        else:
            rejections.append(judged)
    return Decision(tuple(sorted(offers, key=_rank)), tuple(rejections))


def cheapest(job: Job, entries: Mapping[str, Entry]) -> tuple[Offer, Decision]:
    """Return the first offer; this machine only if it is the only one. Raises BadInputs with every target's reasons."""
    decision = decide(job, entries)
    first = next((offer for offer in decision.offers if offer.kind != LOCAL_KIND or len(entries) == 1), None)
    if first is None:
        raise none_can(decision)
    return first, decision


def none_can(decision: Decision) -> BadInputs:
    reasons = [f"{each.target}: {reason}" for each in decision.rejections for reason in each.reasons]
    here = any(offer.kind == LOCAL_KIND for offer in decision.offers)
    said = "`--to local` tries it on this machine" if here else "no target can run the job"
    return BadInputs(reasons, said)


def choice_summary(offer: Offer, decision: Decision) -> str:
    return f"cheapest: {offer.target}: {_why(offer)}; {_others(decision)}"


def _why(offer: Offer) -> str:
    if offer.expected is None:
        return "no price is known" if offer.region else "this machine"
    return f"{usd(offer.expected)} USD expected for {offer.hours:.2f} h on {offer.capacity} {offer.machine}"


def _others(decision: Decision) -> str:
    others = [f"{each.target} {usd(each.expected)}" for each in decision.offers[1:] if each.region]
    refused = len(decision.rejections)
    parts = [f"then {', '.join(others)}"] if others else []
    return "; ".join([*parts, f"{refused} of {refused + len(decision.offers)} targets cannot run it"])


def _rank(offer: Offer) -> tuple[bool, bool, float, str]:
    # This machine is free, but "cheapest" means the cheapest target that a stack deployed.
    return offer.kind == LOCAL_KIND, offer.expected is None, offer.expected or 0.0, offer.target


class _Question:
    """Cache key of a job and a target: the job's content, and the target object itself, which the key keeps alive."""

    __slots__ = ("job", "name", "target", "text")

    def __init__(self, job: Job, text: str, name: str, target: Target) -> None:
        self.job, self.text, self.name, self.target = job, text, name, target

    def __hash__(self) -> int:
        return hash((self.text, self.name, id(self.target)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Question)
            and other.target is self.target
            and (other.name, other.text) == (self.name, self.text)
        )


@lru_cache(maxsize=1024)
def _judged(asked: _Question) -> Offer | Rejection:
    job, name, target = asked.job, asked.name, asked.target
    try:
        warnings = of_target(name, target).render(job, platform_name(job.name, KEY), KEY).warnings
        found = job_cost.of(job, name, target)
    except BadInput as fault:
        reasons = fault.messages if isinstance(fault, BadInputs) else [fault.message]
        return Rejection(name, target.kind, tuple(reasons))
    return _offer(job, target.kind, found, warnings)


def _offer(job: Job, kind: str, found: JobCost, warnings: tuple[str, ...]) -> Offer:
    hours = ASSUMED_RUN_H if job.timeout_s is None else job.timeout_s / 3600
    first = next((each for each in found.environments if each.cheapest), None)
    rate = first.cheapest if first else None
    if first is None or rate is None:
        bounded = job.timeout_s is not None
        return Offer(found.target, kind, found.region, bounded=bounded, hours=hours, notes=(*found.notes, *warnings))
    usd_hour, repeated, notes = rate.paid(first.capacity), 0.0, list(found.notes)
    paid_hours = hours
    if usd_hour is None:
        usd_hour = rate.on_demand
        notes.append(f"{rate.machine}: no Spot price is known, on demand is counted")
    elif first.capacity == "spot":
        # Google publishes no such shares.
        band = interruption(found.region, rate.machine) if kind == "aws-batch" else None
        share = _share(band)
        repeated = cost.repeats(share, hours)
        checkpoint = CHECKPOINT_EVERY_H if CHECKPOINT_VARIABLE in job.env else None
        paid_hours = cost.spot_hours(hours, share, checkpoint)
        notes.append(_interrupted(rate, band, repeated))
    return Offer(
        found.target,
        kind,
        found.region,
        first.name,
        first.capacity,
        rate.machine,
        usd_hour,
        None if usd_hour is None else usd_hour * paid_hours * found.tasks,
        _on_demand(found.environments, first, hours, found.tasks),
        found.worst,
        found.at_least and found.worst is not None,
        job.timeout_s is not None,
        paid_hours,
        repeated,
        rate.dates,
        rate.confidence,
        (*notes, *warnings),
    )


def _on_demand(environments: tuple[Environment, ...], first: Environment, hours: float, tasks: int) -> float | None:
    """Return the USD on the cheapest type of the first on-demand environment, else of the first environment."""
    steady = next((each for each in environments if each.capacity == "on-demand" and each.range("on-demand")), first)
    paid = steady.range("on-demand")
    return cost.attempts_usd(paid[0], hours * 3600, 1, tasks) if paid else None


def _share(band: Interruption | None) -> float:
    if band is None:
        return NO_BAND
    return band.low if band.high >= 1 else (band.low + band.high) / 2


def _interrupted(rate: Rate, band: Interruption | None, repeated: float) -> str:
    if band is None:
        return f"{rate.machine}: Spot interruptions are not known, {NO_BAND:.0%} a month is assumed"
    return f"{rate.machine}: {band.band} interrupted a month ({band.date}), {repeated:.2g} to expect in this run"

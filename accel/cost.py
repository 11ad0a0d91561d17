"""Cost arithmetic: plain values in, USD out. An unknown price is None, and never counts as zero."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

HOURS_A_MONTH = 730
"""Hours in a month as AWS's own calculator counts: 8,760 hours per year over twelve.
https://docs.aws.amazon.com/pricing-calculator/"""

CONFIDENCE = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount in USD. `at_least`: a part has no known price; `usd` is None if no part has one."""

    usd: float | None
    at_least: bool = False

    def times(self, factor: float) -> "Amount":
        return Amount(None if self.usd is None else self.usd * factor, self.at_least)


UNKNOWN = Amount(None, at_least=True)


@dataclass(frozen=True, slots=True)
class Option:
    """An instance type that a pool may start: vCPUs, and USD per hour on demand and on Spot (median and low)."""

    name: str
    vcpus: int
    on_demand: float | None
    spot: float | None = None
    spot_low: float | None = None

    def running(self, on_spot: bool) -> float | None:
        """Return USD per hour. Batch bids at most the on-demand price, so a Spot price is never above it."""
        if not on_spot:
            return self.on_demand
        known = [price for price in (self.spot, self.on_demand) if price is not None]
        return min(known) if self.spot is not None else None


@dataclass(frozen=True, slots=True)
class Envelope:
    """The cost of a pool in USD per hour: at its minimum, as expected, and at its maximum on demand. `spot` is the
    range (low, median) of the maximum on Spot, if known; `dearest` is the type of the worst case, `overshoot` the cost
    of one more instance of the most expensive type."""

    floor: Amount
    expected: Amount
    worst: Amount
    spot: tuple[float, float] | None = None
    dearest: str | None = None
    overshoot: float | None = None


def instances(vcpus: int, each: int) -> int:
    return math.ceil(vcpus / each)


def pool(options: Sequence[Option], *, min_vcpus: int, max_vcpus: int, utilisation: float, on_spot: bool) -> Envelope:
    """Return the cost of a pool that scales between two numbers of vCPUs.

    For n(v) whole instances with v vCPUs together:
    - worst = the maximum over the types of n(max_vcpus) x on-demand price;
    - expected = utilisation x the maximum over the types of n(max_vcpus) x price (Spot median of a Spot pool), but not
      below the floor;
    - floor = the minimum over the types of n(min_vcpus) x price, 0 without a minimum.

    Types of a Spot pool without a Spot price are excluded from expected and floor; if none has one, the on-demand price
    is used instead. A type without any price makes all three "at least".
    """
    max_vcpus = max(min_vcpus, max_vcpus)
    priced = [option for option in options if option.on_demand is not None or option.running(on_spot) is not None]
    partly = len(priced) < len(options) or any(option.on_demand is None for option in options)
    if not priced:
        none_kept = Amount(0.0) if min_vcpus == 0 else UNKNOWN
        return Envelope(none_kept, UNKNOWN if max_vcpus and utilisation else none_kept, UNKNOWN)
    on_spot = on_spot and any(option.spot is not None for option in priced)

    def dear(option: Option) -> float:
        price = option.on_demand if option.on_demand is not None else option.running(on_spot)
        return price or 0.0

    def cost(option: Option, vcpus: int) -> float:
        return instances(vcpus, option.vcpus) * (option.running(on_spot) or 0.0)

    running = [option for option in priced if option.running(on_spot) is not None]
    dearest = max(priced, key=lambda option: instances(max_vcpus, option.vcpus) * dear(option))
    worst = instances(max_vcpus, dearest.vcpus) * dear(dearest)
    floor = min((cost(option, min_vcpus) for option in running), default=0.0)
    most = max(running, key=lambda option: cost(option, max_vcpus), default=None)
    expected = max(floor, utilisation * cost(most, max_vcpus)) if most else floor
    return Envelope(
        floor=Amount(floor, partly and min_vcpus > 0),
        expected=Amount(expected, partly),
        worst=Amount(worst, partly),
        spot=_spot_range(running, max_vcpus) if on_spot else None,
        dearest=dearest.name,
        overshoot=max(map(dear, priced)),
    )


def _spot_range(running: Sequence[Option], vcpus: int) -> tuple[float, float]:
    """Return (low, median) of the fleet that is most expensive at the median."""
    most = max(running, key=lambda option: instances(vcpus, option.vcpus) * (option.running(True) or 0.0))
    count, median = instances(vcpus, most.vcpus), most.running(True) or 0.0
    low = median if most.spot_low is None else min(most.spot_low, median)
    return count * low, count * median


def cost_per_instance(
    options: Sequence[Option], *, min_vcpus: int, max_vcpus: int, utilisation: float, each: float
) -> Envelope:
    """Return the cost of something that every instance of a pool has one of, at `each` USD per hour. Assumes the
    largest number of instances that the types allow, and at the minimum the smallest."""
    max_vcpus = max(min_vcpus, max_vcpus)
    if not options:
        return Envelope(UNKNOWN, UNKNOWN, UNKNOWN)
    least = min(instances(min_vcpus, option.vcpus) for option in options) * each
    most = max(instances(max_vcpus, option.vcpus) for option in options) * each
    return Envelope(Amount(least), Amount(max(least, utilisation * most)), Amount(most))


def fixed_cost(usd_hour: float) -> Envelope:
    return Envelope(Amount(usd_hour), Amount(usd_hour), Amount(usd_hour))


def at_least(envelope: Envelope) -> Envelope:
    """Add an unknown charge; an amount of zero has none."""

    def lower_bound(amount: Amount) -> Amount:
        return Amount(amount.usd, at_least=True) if amount.usd != 0 else amount

    scenarios = {name: lower_bound(getattr(envelope, name)) for name in ("floor", "expected", "worst")}
    return replace(envelope, **scenarios)


def total(amounts: Iterable[Amount]) -> Amount:
    """Return "at least" if a part is unknown, None if no part is known, 0 without parts."""
    parts = list(amounts)
    known = [part.usd for part in parts if part.usd is not None]
    return Amount(
        math.fsum(known) if known or not parts else None,
        any(part.at_least or part.usd is None for part in parts),
    )


def least_sure(confidences: Iterable[str]) -> str:
    return max(confidences, key=CONFIDENCE.index, default="low")


def attempts_usd(usd_hour: float, seconds: float, attempts: int, tasks: int) -> float:
    """Return USD if each of `tasks` tasks makes `attempts` attempts of `seconds` on its own instance."""
    return usd_hour * seconds / 3600 * attempts * tasks


def repeats(monthly: float, hours: float) -> float:
    """Return the expected interruptions of a run, given the share of instances interrupted per month: monthly x hours /
    730, for short runs the rate of a Poisson process. Source of the share:
    https://aws.amazon.com/ec2/spot/instance-advisor/"""
    return monthly * hours / HOURS_A_MONTH


def spot_hours(hours: float, monthly: float, checkpoint_every_h: float | None) -> float:
    """Return billed hours: hours + repeats x lost. Each interruption loses half a checkpoint interval, or the whole run
    if there are no checkpoints."""
    lost = hours if checkpoint_every_h is None else min(checkpoint_every_h / 2, hours)
    return hours + repeats(monthly, hours) * lost

"""The arithmetic of costs: plain values in, USD out. A price that is not known is None, and never counts as zero."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

HOURS_A_MONTH = 730
"""As AWS's own calculator counts: 8,760 hours a year over twelve. https://docs.aws.amazon.com/pricing-calculator/"""

CONFIDENCE = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Amount:
    """USD. `at_least`: something that belongs to it has no known price; `usd` is then None where nothing has."""

    usd: float | None
    at_least: bool = False

    def times(self, factor: float) -> "Amount":
        """The same for another span of time or number of things."""
        return Amount(None if self.usd is None else self.usd * factor, self.at_least)


UNKNOWN = Amount(None, at_least=True)


@dataclass(frozen=True, slots=True)
class Option:
    """An instance type that a pool may start: vCPUs, and USD an hour on demand and on Spot (median and low)."""

    name: str
    vcpus: int
    on_demand: float | None
    spot: float | None = None
    spot_low: float | None = None

    def running(self, on_spot: bool) -> float | None:
        """USD an hour of one. Batch bids at most the on-demand price, so a Spot price is never above it."""
        if not on_spot:
            return self.on_demand
        known = [price for price in (self.spot, self.on_demand) if price is not None]
        return min(known) if self.spot is not None else None


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a pool costs, USD an hour: at its minimum, as expected, and at its maximum on demand.

    `spot` is the range (low, median) of the maximum on Spot, where a Spot price is known. `dearest` is the type that
    makes the worst case, `overshoot` what one more instance of the dearest type would add.
    """

    floor: Amount
    expected: Amount
    worst: Amount
    spot: tuple[float, float] | None = None
    dearest: str | None = None
    overshoot: float | None = None


def instances(vcpus: int, each: int) -> int:
    """Whole instances that have at least so many vCPUs together."""
    return math.ceil(vcpus / each)


def pool(options: Sequence[Option], *, min_vcpus: int, max_vcpus: int, utilisation: float, on_spot: bool) -> Envelope:
    """What a pool that scales between two numbers of vCPUs costs.

    For n(v) whole instances with v vCPUs together:
    worst = the dearest over the types of n(max_vcpus) x on-demand price;
    expected = utilisation x the dearest over the types of n(max_vcpus) x price (Spot median of a Spot pool), but not
    below the floor;
    floor = the cheapest over the types of n(min_vcpus) x price, 0 without a minimum.
    Types of a Spot pool without a Spot price are left out of expected and floor; where none has one, the on-demand
    price stands in for it. A type without any price makes all three "at least".
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
    """(low, median) of the fleet that is the dearest at the median."""
    most = max(running, key=lambda option: instances(vcpus, option.vcpus) * (option.running(True) or 0.0))
    count, median = instances(vcpus, most.vcpus), most.running(True) or 0.0
    low = median if most.spot_low is None else min(most.spot_low, median)
    return count * low, count * median


def cost_per_instance(
    options: Sequence[Option], *, min_vcpus: int, max_vcpus: int, utilisation: float, each: float
) -> Envelope:
    """What something costs that every instance of a pool has one of, at `each` USD an hour: the number of instances is
    the largest that the types allow, at the minimum the smallest."""
    max_vcpus = max(min_vcpus, max_vcpus)
    if not options:
        return Envelope(UNKNOWN, UNKNOWN, UNKNOWN)
    least = min(instances(min_vcpus, option.vcpus) for option in options) * each
    most = max(instances(max_vcpus, option.vcpus) for option in options) * each
    return Envelope(Amount(least), Amount(max(least, utilisation * most)), Amount(most))


def fixed_cost(usd_hour: float) -> Envelope:
    """What costs the same whether anything runs or not."""
    return Envelope(Amount(usd_hour), Amount(usd_hour), Amount(usd_hour))


def at_least(envelope: Envelope) -> Envelope:
    """The same where a charge on top of it is not known; what costs nothing has none."""

    def lower_bound(amount: Amount) -> Amount:
        return Amount(amount.usd, at_least=True) if amount.usd != 0 else amount

    scenarios = {name: lower_bound(getattr(envelope, name)) for name in ("floor", "expected", "worst")}
    return replace(envelope, **scenarios)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of what is known; "at least" where a part is not, None where no part is known. Nothing costs 0."""
    parts = list(amounts)
    known = [part.usd for part in parts if part.usd is not None]
    return Amount(
        math.fsum(known) if known or not parts else None,
        any(part.at_least or part.usd is None for part in parts),
    )


def least_sure(confidences: Iterable[str]) -> str:
    """The lowest of several confidences; "low" for none."""
    return max(confidences, key=CONFIDENCE.index, default="low")


def attempts_usd(usd_hour: float, seconds: float, attempts: int, tasks: int) -> float:
    """USD of `attempts` attempts of `seconds` seconds each of `tasks` tasks, every task on an instance of its own."""
    return usd_hour * seconds / 3600 * attempts * tasks


def repeats(monthly: float, hours: float) -> float:
    """Interruptions to expect in a run of so many hours, of a share of instances interrupted in a month.

    The share is scaled to the run: monthly x hours / 730. For short runs that is the rate of a Poisson process.
    Source of the share: https://aws.amazon.com/ec2/spot/instance-advisor/
    """
    return monthly * hours / HOURS_A_MONTH


def spot_hours(hours: float, monthly: float, checkpoint_every_h: float | None) -> float:
    """Hours to pay for until a run of `hours` hours on Spot is done: hours + repeats x lost.

    Lost with each interruption: half a checkpoint interval, or without checkpoints the whole run.
    """
    lost = hours if checkpoint_every_h is None else min(checkpoint_every_h / 2, hours)
    return hours + repeats(monthly, hours) * lost

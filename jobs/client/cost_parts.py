"""What a cost is made of: rates of machines, the places that have them, and the job's whole."""

from dataclasses import dataclass

from accel import cost
from accel.catalog.prices import Price


@dataclass(frozen=True)
class Rate:
    """An instance type that can hold a task, in one environment; USD an hour, None where not known."""

    machine: str
    on_demand: float | None
    spot: float | None
    spot_low: float | None
    dates: tuple[str, ...]
    confidence: str
    why_unknown: str | None = None

    def paid(self, capacity: str) -> float | None:
        """What runs there cost an hour. Batch bids at most the on-demand price."""
        if capacity != "spot":
            return self.on_demand
        if self.spot is None or self.on_demand is None:
            return self.spot
        return min(self.spot, self.on_demand)

    @property
    def most(self) -> float | None:
        """The most that an hour can cost: the on-demand price, which bounds Spot; else the only price known."""
        return self.spot if self.on_demand is None else self.on_demand


@dataclass(frozen=True)
class Environment:
    """One compute environment, in the order in which they are tried, and the instance types that hold a task."""

    name: str
    capacity: str
    rates: tuple[Rate, ...]
    unknown: tuple[str, ...] = ()

    def range(self, capacity: str) -> tuple[float, float] | None:
        """The lowest and the highest price an hour of its types as that capacity."""
        paid = [usd for rate in self.rates if (usd := rate.paid(capacity)) is not None]
        return (min(paid), max(paid)) if paid else None

    @property
    def most(self) -> float | None:
        """The most that an hour can cost."""
        return max((usd for rate in self.rates if (usd := rate.most) is not None), default=None)

    @property
    def cheapest(self) -> Rate | None:
        """The type with the lowest price as what the environment is; without one on Spot, on demand."""
        for capacity in (self.capacity, "on-demand"):
            paid = [rate for rate in self.rates if rate.paid(capacity) is not None]
            if paid:
                return min(paid, key=lambda rate: rate.paid(capacity) or 0.0)
        return None


@dataclass(frozen=True)
class JobCost:
    """What a job costs on one target. `timeout_s` None: nothing bounds it. `worst` is USD over all attempts of all
    tasks, each until its timeout, on the dearest type; None where it is not bounded or no price is known."""

    target: str
    region: str
    environments: tuple[Environment, ...]
    timeout_s: int | None
    attempts: int
    tasks: int
    worst: float | None
    at_least: bool
    notes: tuple[str, ...]
    attempts_assumed: bool = False
    """The stack's definition says how many, and the target does not tell."""

    def attempt(self, usd_hour: float) -> float | None:
        """USD of one attempt of one task that takes its whole timeout."""
        return None if self.timeout_s is None else cost.attempts_usd(usd_hour, self.timeout_s, 1, 1)


def unpriced_machines(environments: tuple[Environment, ...]) -> list[str]:
    """A note for each machine without an on-demand price."""
    return [
        f"{machine}: {why}"
        for machine, why in {
            rate.machine: rate.why_unknown or "no on-demand price is known"
            for environment in environments
            for rate in environment.rates
            if rate.on_demand is None
        }.items()
    ]


def rate_of(machine: str, found: Price) -> Rate:
    """A price, as that of a machine that can hold a task."""
    dates = dict.fromkeys(date for date in (found.on_demand_date, found.spot_date) if date)
    return Rate(machine, found.on_demand, found.spot, found.spot_low, tuple(dates), found.confidence, found.why_unknown)


def usd(value: float | None, decimals: int = 2) -> str:
    """Return an amount of USD as text; "unknown" for None."""
    return "unknown" if value is None else f"{value:,.{decimals}f}"

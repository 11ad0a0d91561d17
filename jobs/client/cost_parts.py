"""Parts of a cost: rates of machines, the environments that have them, and the cost of the whole job."""

from dataclasses import dataclass

from accel import cost
from accel.catalog.prices import Price


@dataclass(frozen=True)
class Rate:
    """Rates of an instance type that can hold a task, in one environment, in USD per hour; None where not known."""

    machine: str
    on_demand: float | None
    spot: float | None
    spot_low: float | None
    dates: tuple[str, ...]
    confidence: str
    why_unknown: str | None = None

    def paid(self, capacity: str) -> float | None:
        """Return USD per hour. AWS Batch bids at most the on-demand price."""
        if capacity != "spot":
            return self.on_demand
        if self.spot is None or self.on_demand is None:
            return self.spot
        return min(self.spot, self.on_demand)

    @property
    def most(self) -> float | None:
        """Highest USD per hour: the on-demand price, which bounds Spot; else the only known price."""
        return self.spot if self.on_demand is None else self.on_demand


@dataclass(frozen=True)
class Environment:
    """A compute environment and its instance types that can hold a task. Environments are tried in order."""

    name: str
    capacity: str
    rates: tuple[Rate, ...]
    unknown: tuple[str, ...] = ()

    def range(self, capacity: str) -> tuple[float, float] | None:
        """Return the lowest and the highest USD per hour."""
        paid = [usd for rate in self.rates if (usd := rate.paid(capacity)) is not None]
        return (min(paid), max(paid)) if paid else None

    @property
    def most(self) -> float | None:
        return max((usd for rate in self.rates if (usd := rate.most) is not None), default=None)

    @property
    def cheapest(self) -> Rate | None:
        """Cheapest type as the environment's own capacity; without a Spot price, on demand."""
        for capacity in (self.capacity, "on-demand"):
            paid = [rate for rate in self.rates if rate.paid(capacity) is not None]
            if paid:
                return min(paid, key=lambda rate: rate.paid(capacity) or 0.0)
        return None


@dataclass(frozen=True)
class JobCost:
    """Cost of a job on one target. `timeout_s` is None where nothing bounds the job. `worst` is USD over all attempts
    of all tasks, each until its timeout, on the dearest type; None where it is not bounded or no price is known."""

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
    """True where the target does not publish the number, which the stack's definition has."""

    def attempt(self, usd_hour: float) -> float | None:
        """Return the USD of an attempt of one task that takes its whole timeout."""
        return None if self.timeout_s is None else cost.attempts_usd(usd_hour, self.timeout_s, 1, 1)


def unpriced_machines(environments: tuple[Environment, ...]) -> list[str]:
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
    dates = dict.fromkeys(date for date in (found.on_demand_date, found.spot_date) if date)
    return Rate(machine, found.on_demand, found.spot, found.spot_low, tuple(dates), found.confidence, found.why_unknown)


def usd(value: float | None, decimals: int = 2) -> str:
    return "unknown" if value is None else f"{value:,.{decimals}f}"

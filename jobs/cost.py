"""What a job costs on a target, from catalogue prices: no cloud is asked.

A task is taken to have its instance to itself; start-up and idle time of instances, volumes and data are left out.
"""

from dataclasses import dataclass
from functools import lru_cache

from accel import cost
from accel.catalog import UnknownName
from accel.catalog.prices import price
from accel.contract.targets import AwsBatchTarget, LocalTarget

from .job import Job

FREE = "this machine, which nobody bills"


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


def of(job: Job, name: str, target: AwsBatchTarget | LocalTarget) -> JobCost:
    """The cost of a job on a target that can run it. Raises BadInputs where no definition fits the job."""
    match target:
        case LocalTarget():
            attempts = (job.retries or 0) + 1
            return JobCost(name, "", (), job.timeout_s, attempts, job.tasks, None, False, (FREE,))
        case AwsBatchTarget():
            return _aws_batch(job, name, target)


def _aws_batch(job: Job, name: str, target: AwsBatchTarget) -> JobCost:
    from .backends.aws_batch.rates import demand

    found = demand(job, target)
    environments = tuple(
        Environment(
            place.environment,
            place.capacity,
            tuple(_rate(target.region, machine.name) for machine in place.machines),
            place.unknown,
        )
        for place in found.places
        if place.machines or place.unknown
    )
    notes = [
        f"{machine}: {why}"
        for machine, why in {
            rate.machine: rate.why_unknown or "no on-demand price is known"
            for environment in environments
            for rate in environment.rates
            if rate.on_demand is None
        }.items()
    ]
    unknown = dict.fromkeys(text for environment in environments for text in environment.unknown)
    notes += [f"{text}: not in the catalogue" for text in unknown]
    unpriced = bool(notes)
    if found.assumed:
        notes.append(
            f"attempts: {found.attempts} assumed: the definition says, and the target does not tell; retries would"
        )
    machines = job.tasks * job.nodes
    if job.nodes > 1:
        notes.append(f"{job.nodes} nodes: an instance each, and each is counted as a task")
    if found.timeout_s is None:
        notes.append("unbounded: neither the job nor its definition has a timeout_s")
    most = max((usd for each in environments if (usd := each.most) is not None), default=None)
    bounded = found.timeout_s is not None and most is not None
    worst = cost.attempts_usd(most or 0.0, found.timeout_s or 0, found.attempts, machines) if bounded else None
    return JobCost(
        name,
        target.region,
        environments,
        found.timeout_s,
        found.attempts,
        machines,
        worst,
        unpriced,
        tuple(notes),
        found.assumed,
    )


@lru_cache(maxsize=4096)
def _rate(region: str, machine: str) -> Rate:
    try:
        found = price("aws", region, machine)
    except UnknownName as error:  # a region that is younger than the catalogue
        return Rate(machine, None, None, None, (), "low", str(error))
    dates = dict.fromkeys(date for date in (found.on_demand_date, found.spot_date) if date)
    return Rate(machine, found.on_demand, found.spot, found.spot_low, tuple(dates), found.confidence, found.why_unknown)

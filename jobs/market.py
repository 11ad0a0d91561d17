"""What the clouds sell with a kind of accelerator: the catalogue's offers, the cheapest first."""

from dataclasses import dataclass

from accel.catalog import AmbiguousName, Machine, NoMachine, NotOffered, UnknownName, accelerator, machines_for
from accel.catalog.places import check_region
from accel.catalog.prices import Price, prices_for

from .errors import BadInput


@dataclass(frozen=True)
class Listed:
    """A machine type in a region; USD an hour of what `scope` says, None where not known."""

    cloud: str
    region: str
    machine: str
    accelerator: str
    count: int | float
    on_demand: float | None
    spot: float | None
    spot_low: float | None
    scope: str
    dates: tuple[str, ...]
    confidence: str
    why_unknown: str | None


def wanted(text: str) -> tuple[str, int | None]:
    """The kind and count of `a100-80gb:8`; a kind alone has no count. Raises BadInput."""
    kind, colon, count = text.rpartition(":")
    if not colon:
        kind, count = text, ""
    if colon and not (count.isascii() and count.isdigit() and len(count) < 7 and int(count)):
        raise BadInput(f"--gpu: must be KIND or KIND:COUNT, such as a100-80gb:8, is {text[:60]!r}")
    try:
        found = accelerator(kind)
    except (UnknownName, AmbiguousName, NotOffered) as error:
        raise BadInput(f"--gpu: {error}") from None
    return found.name, int(count) if colon else None


def listed(kind: str, count: int | None, cloud: str | None = None, region: str | None = None) -> list[Listed]:
    """Every machine type with so many of the accelerator (any number where None), in every region that offers it, the
    cheapest an hour first and those without a price last. GPUs to attach are priced without their host.

    Raises BadInput with the counts that exist, or for a region that no cloud asked has.
    """
    fitting = _fitting(kind, count, cloud)
    if region is not None:
        _check(region, {machine.cloud for machine in fitting})
    found = [
        _listed(machine, place, price)
        for machine in fitting
        for place, price in prices_for(machine.cloud, machine.name).items()
        if region in (None, place)
    ]
    return sorted(found, key=_rank)


def _fitting(kind: str, count: int | None, cloud: str | None) -> tuple[Machine, ...]:
    try:
        return machines_for(kind, count or 0, cloud)
    except NoMachine as error:
        if count is not None or not error.counts:
            raise BadInput(f"--gpu: {error}") from None
        return tuple(machine for each in error.counts for machine in machines_for(kind, each, cloud))
    except NotOffered as error:
        raise BadInput(f"--gpu: {error}") from None


def _check(region: str, clouds: set[str]) -> None:
    faults: list[str] = []
    for cloud in sorted(clouds):
        try:
            check_region(cloud, region)
        except UnknownName as error:
            faults.append(str(error))
    if len(faults) == len(clouds):
        raise BadInput(f"--region: {faults[0]}")


def _listed(machine: Machine, region: str, found: Price) -> Listed:
    dates = dict.fromkeys(date for date in (found.on_demand_date, found.spot_date) if date)
    return Listed(
        machine.cloud,
        region,
        machine.name,
        machine.accelerator,
        machine.accelerator_count,
        found.on_demand,
        found.spot,
        found.spot_low,
        found.scope,
        tuple(dates),
        found.confidence,
        found.why_unknown,
    )


def _rank(each: Listed) -> tuple[bool, float, str, str]:
    known = [usd for usd in (each.on_demand, each.spot) if usd is not None]
    return not known, min(known, default=0.0), each.machine, each.region

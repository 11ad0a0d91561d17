"""Machines that the clouds sell with a kind of accelerator: the catalogue's offers, the cheapest first."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from accel.catalog import (
    AmbiguousName,
    Machine,
    NoMachine,
    UnavailableName,
    UnknownName,
    accelerator,
    hosts,
    machines,
    machines_for,
)
from accel.catalog.accelerators import Accelerator, accelerators
from accel.catalog.machines import sold_with
from accel.catalog.places import check_region
from accel.catalog.prices import Price, price, prices_for
from accel.catalog.tpu import NoSuchSlice, tpu
from accel.catalog.uses import uses
from accel.cost import least_sure
from accel.diagnostics.errors import BadInput
from accel.rules.gcp import gpus

COUNT = r"[0-9]{1,6}|0?\.[0-9]{1,6}"


@dataclass(frozen=True)
class MarketMachine:
    """A machine type in a region, with prices of the whole machine in USD per hour; None where not known. A machine
    with GPUs to attach appears once for each host that takes them: `machine` is then `n1-standard-4+nvidia-tesla-t4x1`.
    `gpu_memory_gib` is of one GPU; `memory_gib` is the host's, as the cloud lists it, more than a job gets."""

    cloud: str
    region: str
    machine: str
    accelerator: str
    count: int | float
    gpu_memory_gib: float
    vcpus: int
    memory_gib: float
    on_demand: float | None
    spot: float | None
    spot_low: float | None
    dates: tuple[str, ...]
    confidence: str
    why_unknown: str | None
    notes: tuple[str, ...] = ()
    """Ways to get the machine, where it is not simply on demand."""


@dataclass(frozen=True)
class Kind:
    """A kind of accelerator, and its best uses according to `source`; both empty where no source is known."""

    accelerator: str
    gpu_memory_gib: float
    counts: tuple[int | float, ...]
    """Accelerators per machine; empty for a kind sold by the slice."""
    clouds: tuple[str, ...]
    architecture: str
    best_for: tuple[str, ...]
    source: str


def kinds(cloud: str | None = None) -> list[Kind]:
    """Return what the cloud, or any, sells, the kind with the most memory first."""
    found = (_kind(gpu, ("aws", "gcp") if cloud is None else (cloud,)) for gpu in accelerators().values())
    return sorted((each for each in found if each.clouds), key=lambda each: (-each.gpu_memory_gib, each.accelerator))


def _kind(gpu: Accelerator, clouds: Sequence[str]) -> Kind:
    use = uses().get(gpu.name)
    found = {cloud: sold_with(cloud).get(gpu.name, []) for cloud in clouds}
    counts = tuple(sorted({machine.accelerator_count for each in found.values() for machine in each}))
    # Some TPUs are sold by the slice only, which is no machine.
    sold = tuple(cloud for cloud, each in found.items() if each or (gpu.is_tpu and cloud == "gcp"))
    best_for, source = (use.best_for, f"{use.source} ({use.source_date})") if use else ((), "")
    return Kind(gpu.name, gpu.memory_gib, counts, sold, gpu.architecture, best_for, source)


def parse_gpu(text: str) -> tuple[str, float | None]:
    """Parse `a100-80gb:8`, the share `l4:0.125`, or a kind alone, which has no count. Raises BadInput."""
    kind, colon, count = text.rpartition(":")
    if not colon:
        kind, count = text, ""
    if colon and not (re.fullmatch(COUNT, count) and float(count)):
        raise BadInput(f"--gpu: must be KIND or KIND:COUNT, such as a100-80gb:8, is {text[:60]!r}")
    try:
        found = accelerator(kind)
    except (UnknownName, AmbiguousName, UnavailableName) as error:
        raise BadInput(f"--gpu: {error}") from None
    if not colon:
        return found.name, None
    return found.name, int(count) if count.isdigit() else float(count)


def slices(name: str, region: str | None = None, capacity: str | None = None) -> list[MarketMachine]:
    """Return the slice in each region that offers it, with its hosts' vCPUs and memory; nothing for any other name."""
    try:
        found = tpu(name)
    except (UnknownName, NoSuchSlice):
        return []
    # The catalogue has no hosts of v2 and v4.
    host = next((each for each in machines("gcp") if each.name == found.machine_type), None)
    unsized = () if host else ("the vCPUs and memory of its hosts are not known",)
    rows = [
        MarketMachine(
            "gcp",
            place,
            found.name,
            found.generation.accelerator,
            found.chips,
            accelerator(found.generation.accelerator).memory_gib,
            host.vcpus * found.hosts if host else 0,
            host.memory_mib * found.hosts / 1024 if host else 0.0,
            paid.on_demand,
            paid.spot,
            paid.spot_low,
            tuple(dict.fromkeys(date for date in (paid.on_demand_date, paid.spot_date) if date)),
            paid.confidence,
            paid.why_unknown,
            unsized,
        )
        for place, paid in (prices_for("gcp", found.name) if found.places else {}).items()
        if region in (None, place)
    ]
    return sorted(rows, key=lambda each: _rank(each, capacity))


def list_machines(
    kind: str,
    count: float | None,
    cloud: str | None = None,
    region: str | None = None,
    *,
    cpus: int = 0,
    memory_gib: float = 0.0,
    capacity: str | None = None,
) -> list[MarketMachine]:
    """Return every machine type with `count` of the accelerator (None: any) and at least the vCPUs and GiB, by region.
    The cheapest per hour comes first, as `capacity` (`spot`, `on-demand`; None: either); machines without that price
    come last, and those that `not_sold` names are left out. Raises BadInput where none is left, with the reasons, the
    counts or the sizes that exist, and for a region that no searched cloud has."""
    ranked = _ranked(kind, count, cloud, capacity)
    found = [
        each
        for each in ranked
        if (region is None or each.region == region) and each.vcpus >= cpus and each.memory_gib >= memory_gib
    ]
    if not found:
        _check_size(ranked, cpus, memory_gib)
        if region is not None:
            _check(region, (each.cloud for each in _fitting(kind, count, cloud)))
    return found


@cache
def _ranked(kind: str, count: float | None, cloud: str | None, capacity: str | None) -> tuple[MarketMachine, ...]:
    fitting = _fitting(kind, count, cloud)
    kept = [machine for machine in fitting if not _not_sold(machine, capacity)]
    if not kept:
        raise BadInput(f"--capacity: {'; '.join(not_sold(kind, count, cloud, capacity))}")
    found = (each for machine in kept for each in _sold(machine, capacity))
    return tuple(sorted(found, key=lambda each: _rank(each, capacity)))


def not_sold(kind: str, count: float | None, cloud: str | None, capacity: str | None) -> list[str]:
    """Return why machines are left out for a capacity."""
    reasons = {machine.name: _not_sold(machine, capacity) for machine in _fitting(kind, count, cloud)}
    return [f"{name}: {reason}" for name, reason in reasons.items() if reason]


def _not_sold(machine: Machine, capacity: str | None) -> str | None:
    found = gpus.small_a3(machine.name, capacity, "capacity") if capacity else []
    return f"capacity: {found[0].text}" if found and machine.cloud == "gcp" else None


def _notes(machine: Machine, capacity: str | None) -> tuple[str, ...]:
    if machine.cloud != "gcp":
        return ()
    found = gpus.small_a3(machine.name, capacity) + gpus.scarce(machine.name, capacity)
    return tuple(f"capacity: {each.text}" for each in found)


def _fitting(kind: str, count: float | None, cloud: str | None) -> tuple[Machine, ...]:
    try:
        return machines_for(kind, count or 0, cloud)
    except NoMachine as error:
        if count is not None or not error.counts:
            raise BadInput(f"--gpu: {error}") from None
        return tuple(machine for each in error.counts for machine in machines_for(kind, each, cloud))
    except UnavailableName as error:
        raise BadInput(f"--gpu: {error}") from None


def _check(region: str, clouds: Iterable[str]) -> None:
    faults: list[UnknownName] = []
    for cloud in dict.fromkeys(clouds):
        try:
            check_region(cloud, region)
        except UnknownName as error:
            faults.append(error)
        else:
            return
    if faults:
        zone = next((fault for fault in faults if isinstance(fault, UnavailableName)), None)
        raise BadInput(f"--region: {zone or faults[0]}")


def _check_size(ranked: tuple[MarketMachine, ...], cpus: int, memory_gib: float) -> None:
    sizes = {(each.vcpus, each.memory_gib) for each in ranked}
    if sizes and not any(vcpus >= cpus and memory >= memory_gib for vcpus, memory in sizes):
        vcpus, memory = max(sizes)
        asked = [f"{cpus} vCPUs"] * bool(cpus) + [f"{memory_gib:g} GiB"] * bool(memory_gib)
        raise BadInput(f"no machine with such GPUs has {' and '.join(asked)}; the largest: {vcpus}, {memory:g} GiB")


def _sold(machine: Machine, capacity: str | None) -> Iterator[MarketMachine]:
    notes = _notes(machine, capacity)
    for region, paid in prices_for(machine.cloud, machine.name).items():
        if not machine.is_attachment:
            yield _listed(machine, region, machine.name, machine, (paid,), notes)
            continue
        for host in hosts(machine):
            name = f"{host.name}+{machine.accelerator}x{machine.accelerator_count}"
            yield _listed(machine, region, name, host, (paid, price(host.cloud, region, host.name)), notes)


def _listed(
    machine: Machine, region: str, name: str, host: Machine, parts: tuple[Price, ...], notes: tuple[str, ...]
) -> MarketMachine:
    dates = dict.fromkeys(date for part in parts for date in (part.on_demand_date, part.spot_date) if date)
    return MarketMachine(
        machine.cloud,
        region,
        name,
        machine.accelerator,
        machine.accelerator_count,
        accelerator(machine.accelerator).memory_gib,
        host.vcpus,
        host.memory_mib / 1024,
        _sum([part.on_demand for part in parts]),
        _sum([part.spot for part in parts]),
        _sum([part.spot_low for part in parts]),
        tuple(dates),
        least_sure(part.confidence for part in parts),
        "; ".join(part.why_unknown for part in parts if part.why_unknown) or None,
        notes,
    )


def _sum(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _rank(each: MarketMachine, capacity: str | None) -> tuple[bool, float, str, str]:
    asked = {"spot": (each.spot,), "on-demand": (each.on_demand,)}.get(capacity or "", (each.on_demand, each.spot))
    known = [usd for usd in asked if usd is not None]
    return not known, min(known, default=0.0), each.machine, each.region

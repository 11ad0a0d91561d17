"""Fit of a job's size to the instances that a queue can start."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from accel.catalog import Fit, Machine, holding, machines, resolve_machines
from accel.catalog.memory import (
    Holding,
    ceiling_memory_mib,
    ecs_gpus,
    suggested_memory_mib,
    usable_memory_mib,
)
from accel.catalog.node_prices import find_price
from accel.diagnostics.findings import Finding
from accel.rules.aws import types
from accel.rules.table import rule

NO_FIT = rule("aws.fit.none")
TOO_MANY_GPUS = rule("aws.fit.too-many-gpus")
TIGHT = rule("aws.fit.tight")
HEAD_ROOM = rule("aws.fit.head-room")
IDLE_GPUS = rule("aws.fit.idle-gpus")
OVER_MAX = rule("aws.fit.over-max")
UNSERVED = rule("aws.fit.unserved-queue")

_IDLE = 4


class Size(NamedTuple):
    """The resources requested by one container, after the definition's defaults."""

    vcpus: int
    memory_mib: int
    gpus: int

    def __str__(self) -> str:
        return f"{self.vcpus} vCPUs, {self.memory_mib} MiB and {self.gpus} GPUs"


@dataclass(frozen=True, slots=True)
class QueueEnvironment:
    """An environment of a queue."""

    name: str
    instance_types: Sequence[str]
    max_vcpus: int
    region: str | None = None
    """Region whose prices order the suggested types; None: they are ordered by size."""


def placement(size: Size, places: Sequence[QueueEnvironment]) -> list[Finding]:
    """Check that some instance type of a queue holds a job, and that max_vcpus has room for one such instance, not
    relying on the one by which Batch may exceed it. If the catalogue lacks some of the types, and none of the known
    ones holds the job, there is no finding about types."""
    if not places:
        return []
    if all(place.max_vcpus < size.vcpus for place in places):
        shown = ", ".join(f"{place.name} {place.max_vcpus}" for place in places)
        message = f"is {size.vcpus}, above max_vcpus of every environment ({shown})"
        most = max(place.max_vcpus for place in places)
        return [OVER_MAX.finding("vcpus", message, f"ask for at most {most}, or raise max_vcpus")]
    inside = startable(places)
    names = tuple(machine.name for machine in inside)
    held, region = holding_of(names, size), places[0].region
    if held.fits or held.tight:
        return fit(*size, names, region)
    if any(resolve_machines(tuple(place.instance_types))[1] for place in places):
        return []
    found = fit(*size, [name for place in places for name in place.instance_types], region)
    return found if _rejects(found) else [_over_max(size, places, inside)]


def startable(places: Sequence[QueueEnvironment]) -> list[Machine]:
    """Return the known types that max_vcpus of their environment has room for."""
    return [machine for place in places for machine in _machines(place) if machine.vcpus <= place.max_vcpus]


def in_queues(size: Size, queues: Mapping[str, Sequence[QueueEnvironment]]) -> list[Finding]:
    """Check a definition on the queue that suits it best. A definition that no queue holds waits forever."""
    tried = [placement(size, places) for places in queues.values() if places]
    return min(tried, key=lambda found: (_rejects(found), len(found))) if tried else []


def unserved_queue(sizes: Mapping[str, Size], places: Sequence[QueueEnvironment]) -> list[Finding]:
    """Check that a queue can run at least one definition of its stack. `sizes` is by definition name."""
    refused = {
        name: [one for one in placement(size, places) if one.severity == "reject"] for name, size in sizes.items()
    }
    if not refused or not places or not all(refused.values()):
        return []
    shown = "; ".join(f"{name}: {found[0].field} {found[0].message}" for name, found in refused.items())
    message = f"hold none of the definitions ({shown})"
    return [UNSERVED.finding("environments", message, "add an environment that holds one, or leave the queue out")]


def fit(
    vcpus: int, memory_mib: int, gpus: int, instance_types: Sequence[str], region: str | None = None
) -> list[Finding]:
    """Ignore types that the catalogue does not know; if none is known, there is no finding."""
    return list(_fit(vcpus, memory_mib, gpus, tuple(instance_types), region))


@lru_cache(maxsize=1024)
def _fit(
    vcpus: int, memory_mib: int, gpus: int, instance_types: tuple[str, ...], region: str | None
) -> Sequence[Finding]:
    allowed = resolve_machines(instance_types)[0]
    if not allowed:
        return []
    most = max(ecs_gpus(machine) for machine in allowed)
    if gpus > most:
        message = f"is {gpus}, and no allowed instance type has more than {most}"
        return [TOO_MANY_GPUS.finding("gpus", message, _larger(vcpus, memory_mib, gpus, region))]
    held = holding_of(instance_types, Size(vcpus, memory_mib, gpus))
    if not held.fits:
        return [_tight(held, memory_mib) if held.tight else _none(held, vcpus, memory_mib, gpus, region)]
    return _head_room(held, memory_mib, region) + _idle(held.fits, gpus)


@lru_cache(maxsize=1024)
def holding_of(instance_types: tuple[str, ...], size: Size) -> Holding:
    return holding(resolve_machines(instance_types)[0], *size)


def _machines(place: QueueEnvironment) -> tuple[Machine, ...]:
    return resolve_machines(tuple(place.instance_types))[0]


def _rejects(found: Sequence[Finding]) -> bool:
    return any(finding.severity == "reject" for finding in found)


def _over_max(size: Size, places: Sequence[QueueEnvironment], inside: Sequence[Machine]) -> Finding:
    needs: list[tuple[QueueEnvironment, Machine]] = []
    for place in places:
        held = holding_of(tuple(place.instance_types), size)
        if machines := held.fits or held.tight:
            needs.append((place, min(machines, key=lambda machine: machine.vcpus)))
    shown = ", ".join(f"{place.name}: max_vcpus is {place.max_vcpus}, {it.name} has {it.vcpus}" for place, it in needs)
    place, machine = min(needs, key=lambda need: need[1].vcpus - need[0].max_vcpus)
    fix = f"raise max_vcpus of {place.name} to at least {machine.vcpus}"
    enough = [each for each in inside if ecs_gpus(each) >= size.gpus]
    wide = [each for each in enough if each.vcpus >= size.vcpus]
    field = "memory_mib" if wide else "vcpus" if enough else "gpus"
    if wide:
        largest = max(wide, key=usable_memory_mib)
        fix += f", or {_ask_for([largest])}"
    message = f"{size} need an instance that no environment has room for ({shown})"
    return OVER_MAX.finding(field, message, fix)


def _none(held: Holding, vcpus: int, memory_mib: int, gpus: int, region: str | None) -> Finding:
    enough = [fit for fit in held.all if ecs_gpus(fit.machine) >= gpus]
    field = "memory_mib" if any(fit.machine.vcpus >= vcpus for fit in enough) else "vcpus"
    missed = [fit for fit in enough if fit.head_room]
    shown = missed or sorted(enough, key=lambda fit: (-fit.machine.vcpus, -fit.machine.memory_mib))
    reasons = "; ".join(fit.reason for fit in shown[:3])
    message = f"{Size(vcpus, memory_mib, gpus)} fit no allowed instance type ({reasons})"
    if missed:
        return NO_FIT.finding(field, message, _ask_for([fit.machine for fit in missed]))
    return NO_FIT.finding(field, message, _larger(vcpus, memory_mib, gpus, region))


def _tight(held: Holding, memory_mib: int) -> Finding:
    machine = held.tight[0]
    message = (
        f"is {memory_mib}, and {machine.name} registers about {usable_memory_mib(machine)} to "
        f"{ceiling_memory_mib(machine)} of its {machine.memory_mib} MiB, depending on the AMI"
    )
    return TIGHT.finding("memory_mib", message, _ask_for(held.tight))


def _head_room(held: Holding, memory_mib: int, region: str | None) -> list[Finding]:
    least = min(machine.vcpus for machine in held.fits)
    missed = [fit for fit in held.all if fit.head_room and fit.machine.vcpus < least]
    if not missed:
        return []
    machine = missed[0].machine
    (first, *_), how = _ordered(held.fits, region)
    message = (
        f"is {memory_mib}, which misses {_names(missed)} (ECS registers about {usable_memory_mib(machine)} "
        f"of {machine.memory_mib} MiB), so the job runs on {first.name} or larger{how}"
    )
    return [HEAD_ROOM.finding("memory_mib", message, _ask_for([fit.machine for fit in missed]))]


def _idle(fits: Sequence[Machine], gpus: int) -> list[Finding]:
    least = min(fits, key=ecs_gpus)
    spare = ecs_gpus(least) - gpus
    if not gpus or spare < _IDLE:
        return []
    message = f"is {gpus}, and the smallest allowed instance, {least.name}, has {ecs_gpus(least)}"
    fix = f"allow a smaller type, or {spare} GPUs are idle unless jobs share it"
    return [IDLE_GPUS.finding("gpus", message, fix)]


def _ask_for(machines: Sequence[Machine]) -> str:
    first = machines[0]
    return f"ask for at most {suggested_memory_mib(first)} MiB to fit {first.name}"


def _names(fits: Sequence[Fit]) -> str:
    return ", ".join(fit.machine.name for fit in fits)


def _ordered(fits: Sequence[Machine], region: str | None) -> tuple[list[Machine], str]:
    """Return the cheapest on demand first, those without a price last, and a note on the order. Without a region, or if
    no price is known there, the smallest comes first."""
    by_size = sorted(fits, key=lambda machine: (ecs_gpus(machine), machine.vcpus, machine.memory_mib))
    if region is None:
        return by_size, ""
    usd = {machine.name: find_price("aws", region, machine.name).on_demand for machine in by_size}
    if not any(usd.values()):
        return by_size, f" (by size: no price in {region} is known)"
    return sorted(by_size, key=lambda machine: usd[machine.name] or math.inf), f" (by price in {region})"


def _larger(vcpus: int, memory_mib: int, gpus: int, region: str | None) -> str:
    """Name types that hold the job and that Batch has an image for, cheapest or smallest first."""
    usable = [
        machine
        for machine in machines("aws")
        if machine.family not in types.NEEDS_OWN_AMI and machine.cpu_arch == "x86_64"
    ]
    fits = [machine for machine in holding(usable, vcpus, memory_mib, gpus).fits if not gpus or ecs_gpus(machine)]
    if not fits:
        return "no instance type of the catalogue holds it; use several nodes, or ask for less"
    fits, how = _ordered(fits, region)
    return f"allow a type that holds it, such as {', '.join(machine.name for machine in fits[:3])}{how}"

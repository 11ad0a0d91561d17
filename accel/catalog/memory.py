"""Memory, cores and GPUs of a machine that a job can reserve on ECS, hence AWS Batch, and on GKE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from accel.catalog.accelerators import accelerators
from accel.catalog.machines import Machine
from accel.catalog.tables import rows

TYPE_CHECKING = False  # typing takes 5 ms to import; the type checker knows this name
if TYPE_CHECKING:
    from typing import Literal

    Verdict = Literal["fits", "tight", "no"]

USABLE_RATIO = 0.92
"""Safe share of the nominal memory to request if no figure is known. The lowest observed share from 8 GiB up is 0.936
(data/ecs_registered_memory.csv); torchx uses 0.96 and states that it is too much for some types. Source:
https://docs.aws.amazon.com/batch/latest/userguide/memory-management.html"""

CEILING_RATIO = 0.985
"""Share that no observed instance registers; the highest in data/ecs_registered_memory.csv is 0.983."""

_AMI_MARGIN = 0.99
"""Share of an observed figure that is safe: the kernel's own part changes with the AMI
(https://github.com/aws/amazon-ecs-agent/issues/399)."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a machine holds a request, and why. `head_room`: its nominal memory would suffice, but what ECS registers
    does not, or not for certain."""

    machine: Machine
    verdict: Verdict
    reason: str
    head_room: bool = False


@dataclass(frozen=True, slots=True)
class Holding:
    """The verdict of each of several machines on one request, in the given order."""

    all: tuple[Fit, ...]

    @property
    def fits(self) -> tuple[Machine, ...]:
        return tuple(fit.machine for fit in self.all if fit.verdict == "fits")

    @property
    def tight(self) -> tuple[Machine, ...]:
        """Those that may hold it, depending on the AMI."""
        return tuple(fit.machine for fit in self.all if fit.verdict == "tight")

    @property
    def refused(self) -> tuple[Fit, ...]:
        return tuple(fit for fit in self.all if fit.verdict == "no")


@cache
def _registered() -> dict[str, int]:
    return {row["machine"]: row.integer("registered_mib") for row in rows("ecs_registered_memory.csv")}


def usable_memory_mib(machine: Machine) -> int:
    """Return what a job on ECS can safely reserve."""
    seen = _registered().get(machine.name)
    return int(machine.memory_mib * USABLE_RATIO) if seen is None else int(seen * _AMI_MARGIN)


def ceiling_memory_mib(machine: Machine) -> int:
    """Return the memory above which ECS certainly never places a job."""
    seen = _registered().get(machine.name)
    return int(machine.memory_mib * CEILING_RATIO) if seen is None else seen


def suggested_memory_mib(machine: Machine) -> int:
    """Return a round number to get the most of a machine: 30000 of 32768."""
    usable = usable_memory_mib(machine)
    return usable // 1000 * 1000 if usable >= 2000 else usable


def ecs_gpus(machine: Machine) -> int:
    """Return the GPUs that ECS can reserve: whole NVIDIA GPUs only."""
    if not machine.accelerator or not accelerators()[machine.accelerator].is_nvidia_gpu:
        return 0
    return machine.whole_accelerators


@lru_cache(4096)  # the targets of a decision have the same machines
def fits(machine: Machine, vcpus: int, memory_mib: int, gpus: int) -> Fit:
    """Judge one task on an empty instance."""
    have = ecs_gpus(machine)
    if gpus > have:
        return Fit(machine, "no", _too_few_gpus(machine, have, gpus))
    if vcpus > machine.vcpus:
        return Fit(machine, "no", f"{machine.name} has {machine.vcpus} vCPUs of the {vcpus} asked for")
    if memory_mib > machine.memory_mib:
        return Fit(machine, "no", f"{machine.name} has {machine.memory_mib} MiB of the {memory_mib} asked for")
    usable = usable_memory_mib(machine)
    registers = f"{machine.name} has {machine.memory_mib} MiB, of which ECS registers about {usable}"
    if memory_mib > ceiling_memory_mib(machine):
        return Fit(machine, "no", registers, head_room=True)
    if memory_mib > usable:
        return Fit(machine, "tight", f"{registers} to {ceiling_memory_mib(machine)}", head_room=True)
    idle = f", {have - gpus} of its {have} GPUs stay free" if have > gpus else ""
    return Fit(machine, "fits", f"{machine.name} holds it{idle}")


def _too_few_gpus(machine: Machine, have: int, gpus: int) -> str:
    if have:
        return f"{machine.name} has {have} of the {gpus} GPUs asked for"
    if not machine.accelerator:
        return f"{machine.name} has no GPU"
    if 0 < machine.accelerator_count < 1:
        return f"{machine.name} has {machine.accelerator_count} of a GPU; a job reserves whole ones"
    return f"{machine.name} has {machine.accelerator}, which ECS does not count as a GPU"


def holding(machines: Iterable[Machine], vcpus: int, memory_mib: int, gpus: int) -> Holding:
    return Holding(tuple(fits(machine, vcpus, memory_mib, gpus) for machine in machines))


_GKE_MEMORY = ((4096, 25), (4096, 20), (8192, 10), (114688, 6))
"""MiB, and the percentage of them that GKE keeps; it keeps two percent of the rest."""

_GKE_CPU = ((1000, 600), (1000, 100), (2000, 50))
"""Thousandths of a core, and the hundredths of a percent of them that GKE keeps; it keeps 25 of the rest."""

_GKE_EVICTION_MIB = 100


def gke_allocatable(machine: Machine) -> tuple[int, int]:
    """Return the thousandths of a core and the MiB that pods of a GKE node can request together. Raise ValueError for
    GPUs to attach, whose host is the node.

    Memory: GKE keeps 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % of the
    rest (255 MiB on machines below 1 GiB), and 100 MiB for eviction. CPU: 6 % of the first core, 1 % of the second, 0.5
    % of the next two, 0.25 % of the rest; 400 thousandths more if a node allows over 110 pods, not deducted here. The
    memory is an upper bound: the formula uses the nominal size, and the kernel keeps two or three percent more (the
    page shows 13182 MiB on a node of 16 GiB, where this gives 13621); DaemonSets take their part in addition. Source:
    https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    """
    if machine.is_attachment:
        raise ValueError(f"{machine.name} is no machine; ask for the N1 machine that it is attached to")
    if machine.memory_mib < 1024:
        kept_memory = 255 * 100
    else:
        kept_memory = _kept(machine.memory_mib, _GKE_MEMORY, above=2)
    kept_cpu = _kept(machine.vcpus * 1000, _GKE_CPU, above=25)
    cpu_millis = (machine.vcpus * 1000 * 10000 - kept_cpu) // 10000
    memory_mib = (machine.memory_mib * 100 - kept_memory) // 100 - _GKE_EVICTION_MIB
    return cpu_millis, max(memory_mib, 0)


def _kept(amount: int, bands: tuple[tuple[int, int], ...], above: int) -> int:
    """Return the sum over the bands of size times share, in whole numbers to avoid rounding errors."""
    kept = 0
    for size, share in bands:
        kept += min(amount, size) * share
        amount = max(amount - size, 0)
    return kept + amount * above

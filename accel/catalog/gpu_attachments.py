"""GPUs attached to N1 hosts on Google Cloud: Compute Engine's limits for each number of GPUs, N1 sizes, and the numbers
that Vertex AI allows, which are stricter."""

import re
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from accel.catalog.machines import machines
from accel.catalog.tables import Row, rows

N1_SIZES = (1, 2, 4, 8, 16, 32, 64, 96)
_GB_A_VCPU = {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9}
_CUSTOM = re.compile(r"(?:n1-)?custom-(\d{1,3})-(\d{1,7})(?:-ext)?", re.ASCII)
_PREDEFINED = re.compile(r"n1-(standard|highmem|highcpu)-(\d{1,2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class GpuAttachment:
    """A number of GPUs on one N1 VM, and the VM sizes allowed with it. Memory is in GB as Google counts it.
    `unverified` names the columns taken from memory; no limit is among them."""

    accelerator: str
    count: int
    vcpus_min: int
    vcpus_max: int
    memory_gib_min: float
    memory_gib_max: float
    sources: tuple[str, ...]
    unverified: tuple[str, ...]
    notes: str


@dataclass(frozen=True, slots=True)
class N1:
    """Size of an N1 machine type."""

    name: str
    vcpus: int
    memory_gib: float


@cache
def gpu_attachments() -> dict[str, dict[int, GpuAttachment]]:
    """Return attachments by accelerator and number of GPUs."""
    found: dict[str, dict[int, GpuAttachment]] = {}
    for row in rows("machines.csv"):
        if row["kind"] == "n1-attach":
            each = _attached(row)
            found.setdefault(each.accelerator, {})[each.count] = each
    return found


def _attached(row: Row) -> GpuAttachment:
    return GpuAttachment(
        accelerator=row["accelerator"],
        count=row.integer("accelerator_count"),
        vcpus_min=row.integer("vcpus_min"),
        vcpus_max=row.integer("vcpus_max"),
        memory_gib_min=row.figure("memory_gib_min"),
        memory_gib_max=row.figure("memory_gib_max"),
        sources=row.parts("source"),
        unverified=row.parts("unverified_fields"),
        notes=row["notes"],
    )


def n1(machine: str) -> N1 | None:
    """Return the size of an N1 type, predefined or custom (`custom-<vCPUs>-<MB>`), or None. 3.75, 6.5 and 0.9 GB per
    vCPU: https://docs.cloud.google.com/compute/docs/general-purpose-machines#n1_machines"""
    if found := _PREDEFINED.fullmatch(machine):
        series, vcpus = found[1], int(found[2])
        smallest = 1 if series == "standard" else 2
        if vcpus in N1_SIZES and vcpus >= smallest:
            return N1(machine, vcpus, round(vcpus * _GB_A_VCPU[series], 2))
    elif (found := _CUSTOM.fullmatch(machine)) and int(found[1]):
        return N1(machine, int(found[1]), int(found[2]) / 1024)
    return None


class _PerGpu(NamedTuple):
    """The vCPUs and memory that one GPU covers, and the available numbers of GPUs."""

    vcpus: int
    memory_gb: float
    counts: tuple[int, ...]


class Counts(NamedTuple):
    """The numbers of GPUs allowed on a machine. `derived`: computed for a machine that the published table lacks."""

    values: tuple[int, ...]
    derived: bool


_PER_GPU = {
    "nvidia-tesla-k80": _PerGpu(8, 52, (1, 2, 4, 8)),
    "nvidia-tesla-p4": _PerGpu(24, 156, (1, 2, 4)),
    "nvidia-tesla-p100": _PerGpu(16, 104, (1, 2, 4)),
    "nvidia-tesla-t4": _PerGpu(24, 156, (1, 2, 4)),
    "nvidia-tesla-v100": _PerGpu(12, 78, (1, 2, 4, 8)),
}
_AT_MOST = {("nvidia-tesla-k80", 8): (64, 208), ("nvidia-tesla-p100", 4): (64, 208)}
"""vCPUs and GB that the largest number of an accelerator covers, if less than the sum."""

_PUBLISHED_VCPUS = 32
"""vCPUs of the largest machine in the table that had the K80; today's table goes up to 96, without it."""


@cache
def a100_machines() -> dict[str, int]:
    return {each.name: each.whole_accelerators for each in machines("gcp") if each.accelerator == "nvidia-tesla-a100"}


def vertex_counts(machine_type: str, accelerator: str) -> Counts | None:
    """Return the numbers of an accelerator (its catalogue name, or nvidia-tesla-k80) that Vertex AI allows on a machine
    type, or None if the table does not cover these. A number is allowed if it exists and that many GPUs cover the vCPUs
    and the memory; all 55 published cells agree."""
    if accelerator == "nvidia-tesla-a100" and machine_type in a100_machines():
        return Counts((a100_machines()[machine_type],), derived=True)
    size = n1(machine_type)
    if size is None or accelerator not in _PER_GPU or size.vcpus not in N1_SIZES or "custom" in machine_type:
        return None
    each = _PER_GPU[accelerator]
    values: list[int] = []
    for count in each.counts:
        vcpus, memory_gb = _AT_MOST.get((accelerator, count), (count * each.vcpus, count * each.memory_gb))
        if vcpus >= size.vcpus and memory_gb >= size.memory_gib:
            values.append(count)
    return Counts(tuple(values), derived=accelerator == "nvidia-tesla-k80" and size.vcpus > _PUBLISHED_VCPUS)

"""GPUs attached to N1 hosts on Google Cloud: Compute Engine's limits for each number of GPUs, and N1 sizes."""

import re
from dataclasses import dataclass
from functools import cache

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
    """The size of an N1 machine type."""

    name: str
    vcpus: int
    memory_gib: float


@cache
def gpu_attachments() -> dict[str, dict[int, GpuAttachment]]:
    """Return the attachments that N1 accepts, by accelerator and number of GPUs."""
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
    """Return the size of an N1 machine type, predefined or custom (`custom-<vCPUs>-<MB>`), or None for any other
    machine.

    Source: https://docs.cloud.google.com/compute/docs/general-purpose-machines#n1_machines (3.75, 6.5 and 0.9 GB per
    vCPU).
    """
    if found := _PREDEFINED.fullmatch(machine):
        series, vcpus = found[1], int(found[2])
        smallest = 1 if series == "standard" else 2
        if vcpus in N1_SIZES and vcpus >= smallest:
            return N1(machine, vcpus, round(vcpus * _GB_A_VCPU[series], 2))
    elif (found := _CUSTOM.fullmatch(machine)) and int(found[1]):
        return N1(machine, int(found[1]), int(found[2]) / 1024)
    return None

"""GKE volumes: mountability and size limits of each kind."""

from collections.abc import Sequence

from accel.catalog.disks import HYPERDISK, PERSISTENT_DISK, disk_support
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.table import rule

DISK_TYPE = rule("gke.volume.disk-type")
DISK_MACHINE = rule("gke.volume.disk-machine")
DISK_SIZE = rule("gke.volume.disk-size")
PERFORMANCE = rule("gke.volume.performance")
READ_ONLY = rule("gke.volume.read-only-new")
FILESTORE_SIZE = rule("gke.volume.filestore-size")

DISK_TYPES = (*HYPERDISK, *PERSISTENT_DISK)
SIZES_GIB = {
    "hyperdisk-balanced": (4, 64 * 1024),
    "hyperdisk-balanced-high-availability": (4, 64 * 1024),
    "hyperdisk-extreme": (64, 64 * 1024),
    "hyperdisk-throughput": (2 * 1024, 32 * 1024),
    "hyperdisk-ml": (4, 64 * 1024),
}
"""Minimum and maximum, from the page as updated on 2026-08-26:
https://docs.cloud.google.com/compute/docs/disks/hyperdisks#size-limits"""

_IOPS = ("hyperdisk-balanced", "hyperdisk-balanced-high-availability", "hyperdisk-extreme")
_THROUGHPUT = ("hyperdisk-balanced", "hyperdisk-balanced-high-availability", "hyperdisk-throughput", "hyperdisk-ml")

FILESTORE_LEAST_GIB = {"basic-hdd": 100, "basic-ssd": 2560, "zonal": 1024, "regional": 100}
"""Minimum by tier. basic-hdd below 1024 needs GKE 1.33. https://docs.cloud.google.com/filestore/docs/csi-driver,
https://docs.cloud.google.com/filestore/docs/service-tiers (pages of 2025 and 2026)"""


def disk(
    *,
    disk_type: str,
    size_gib: int,
    many_readers: bool,
    existing: bool,
    iops: int | None = None,
    throughput_mib_s: int | None = None,
) -> list[Finding]:
    """Check a disk. `many_readers`: several nodes mount it read-only at the same time."""
    if disk_type not in DISK_TYPES:
        fix = did_you_mean(nearest(disk_type, DISK_TYPES, 1), DISK_TYPES)
        return [DISK_TYPE.finding("type", f'is "{disk_type}", which GKE does not make', fix)]
    found: list[Finding] = []
    least, most = SIZES_GIB.get(disk_type, (1, 64 * 1024))
    if not least <= size_gib <= most:
        message = f"is {size_gib}; a {disk_type} has {least} to {most} GiB"
        found.append(DISK_SIZE.finding("size_gib", message, f"write {least if size_gib < least else most}"))
    for field, value, takes in (("iops", iops, _IOPS), ("throughput_mib_s", throughput_mib_s, _THROUGHPUT)):
        if value is not None and disk_type not in takes:
            message = f"is {value}, and a {disk_type} takes none"
            found.append(PERFORMANCE.finding(field, message, f"leave it out, or use {' or '.join(takes)}"))
    if many_readers and not existing:
        message = "is many-readers, and a new disk is empty and could never be written"
        found.append(READ_ONLY.finding("access", message, "name an existing disk, or use filestore or a bucket"))
    return found


def machines(disk_type: str, machine_types: Sequence[str], field: str = "type") -> list[Finding]:
    """Check the machines of the mounting pods' pools. Unknown machines pass."""
    found: list[Finding] = []
    for machine_type in dict.fromkeys(machine_types):
        support = disk_support(machine_type)
        if support and support.attaches(disk_type) is False:
            fits = [*support.hyperdisk_types, *(("pd-balanced",) if support.persistent_disk else ())]
            message = f"is {disk_type}, which {machine_type} ({support.series}) cannot attach"
            fix = f"use {' or '.join(fits)}" if fits else "use filestore or a bucket"
            found.append(DISK_MACHINE.finding(field, message, fix))
    return found


def filestore(tier: str, size_gib: int) -> list[Finding]:
    least = FILESTORE_LEAST_GIB[tier]
    if size_gib >= least:
        return []
    return [
        FILESTORE_SIZE.finding("size_gib", f"is {size_gib}; the tier {tier} begins at {least} GiB", f"write {least}")
    ]

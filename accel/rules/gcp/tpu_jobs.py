"""A job on TPU VMs created for it: limits of a queued resource and its machines."""

from collections.abc import Mapping, Sequence

from accel.catalog.machines import machine
from accel.catalog.nearest import UnknownName
from accel.catalog.tpu import Slice
from accel.diagnostics.findings import Finding
from accel.rules.gke.jobs import hosts_text
from accel.rules.jobs.variables import of_platform
from accel.rules.table import rule

ZONES = rule("gcp.tpu.job-zones")
HOSTS = rule("gcp.tpu.job-hosts")
HOST_SIZE = rule("gcp.tpu.job-host-size")
DISK = rule("gcp.tpu.job-disk")
ENV_RESERVED = rule("gcp.tpu.job-env")
SIZE = rule("gcp.tpu.job-size")

RESERVED_VARIABLES = ("TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES", "MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES",
                      "MEGASCALE_SLICE_ID")  # fmt: skip
MAX_VALUE_BYTES = 256 * 1024
_OURS_BYTES = 4 * 1024
"""Bytes reserved for what is added when a machine is created: its name, its attempt, the location of its result."""


def zones(wanted: Sequence[str], found: Slice, field: str = "zones") -> tuple[list[str], list[Finding]]:
    """Return the zones known to have the slice; if none is, all with a warning, since the catalogue may be outdated."""
    regions = found.places
    known = [zone for zone in wanted if _has(regions, zone)]
    if known or not regions:
        return known or list(wanted), []
    message = f"are {', '.join(wanted)}, where {found.name} is not known to be"
    return list(wanted), [ZONES.finding(field, message, "make sure that it is, or ask for another type")]


def _has(regions: Mapping[str, Sequence[str]], zone: str) -> bool:
    region = zone.rpartition("-")[0]
    return region in regions and (not regions[region] or zone in regions[region])


def hosts(found: Slice, slices: int, nodes: int, count: int) -> list[Finding]:
    """Check `nodes` and `count`: 1 (omitted), or all hosts, and the chips of a host or of a slice."""
    total = slices * found.hosts
    whole = f"{found.written} is {hosts_text(found.hosts, found.chips_per_host)}"
    if slices > 1:
        whole = f"{slices} slices of {found.written} are {hosts_text(total, found.chips_per_host)}"
    fix = f"leave it out, or write nodes: {total} and count: {found.chips_per_host}"
    said: list[Finding] = []
    if nodes not in (1, total):
        said.append(HOSTS.finding("nodes", f"is {nodes}, and {whole}", fix))
    if count not in (1, found.chips_per_host, found.chips):
        said.append(HOSTS.finding("accelerator.count", f"is {count}, and {whole}", fix))
    return said


def host_size(found: Slice, cpus: int | None, memory_mib: int | None) -> list[Finding]:
    asked = [("cpus", cpus, "vCPUs"), ("memory_mib", memory_mib, "MiB")]
    try:
        host = machine("gcp", found.machine_type or "")
    except UnknownName:
        return [
            HOST_SIZE.finding(name, f"is {value}, and what a host of {found.name} has is not known", "leave it out")
            for name, value, _ in asked
            if value is not None
        ]
    return [
        HOST_SIZE.finding(name, f"is {value}, and a host of {found.name} has {most} {unit}", "ask for less")
        for (name, value, unit), most in zip(asked, (host.vcpus, host.memory_mib), strict=True)
        if value is not None and value > most
    ]


def disk(disk_gib: int | None) -> list[Finding]:
    if disk_gib is None:
        return []
    message = f"is {disk_gib}, and a TPU VM's boot disk is 100 GiB and cannot be resized"
    return [DISK.finding("disk_gib", message, "leave it out, and mount a bucket")]


def environment(variables: Mapping[str, object], field: str = "env") -> list[Finding]:
    return of_platform(ENV_RESERVED, [name for name in RESERVED_VARIABLES if name in variables], field)


def size(length: int) -> list[Finding]:
    most = MAX_VALUE_BYTES - _OURS_BYTES
    if length <= most:
        return []
    message = f"has {length} bytes, of which a machine's metadata keeps {most}"
    return [SIZE.finding("request", message, "put long arguments and values into a file")]

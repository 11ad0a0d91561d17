"""TPU VMs that a stack owns: zone, disks, and limits of the provider's queued resource."""

from collections.abc import Iterable
from datetime import datetime

from accel.catalog.places import nearest_places
from accel.diagnostics.findings import Finding
from accel.rules.gcp.tpu import find_slice
from accel.rules.table import rule

ZONE = rule("gcp.tpu.zone")
QUEUE_FIELD = rule("gcp.tpu.queue-field")
QUEUE_ACCOUNT = rule("gcp.tpu.queue-account")
DISK = rule("gcp.tpu.disk")
DISK_SHARED = rule("gcp.tpu.disk-shared")
DISK_TYPE = rule("gcp.tpu.disk-type")

QUEUE_VALID = rule("gcp.tpu.queue-valid")
QUEUE_RESERVATION = rule("gcp.tpu.queue-reservation")

QUEUE_ONLY_JOBS = (
    "spot", "reserved", "reservation", "guaranteed", "capacity", "valid_until", "valid_for_s", "slices",
    "service_account",
    "startup_script", "metadata", "labels", "tags", "data_disks", "topology", "secure_boot",
)  # fmt: skip
"""Fields that the Cloud TPU API accepts for a queued resource and its nodes, but the provider's resource does not."""

_HYPERDISK = ("hyperdisk-balanced", "hyperdisk-ml")
_NEW = "tpu-v6e"


def zone(name: str, accelerator_type: str, field: str = "zone") -> list[Finding]:
    """Ignore regions whose zones the catalogue does not have."""
    of = find_slice(accelerator_type)
    regions = of.places if of else {}
    offered = tuple(sorted(each for zones in regions.values() for each in zones))
    if of is None or not offered or name in offered or regions.get(name.rpartition("-")[0]) == ():
        return []
    message = f"is {name}, and {of.name} is in {', '.join(nearest_places(name, offered, len(offered)))}"
    return [ZONE.finding(field, message, f"use {nearest_places(name, offered)[0]}, or make sure that it is there")]


def queue_fields(given: Iterable[str]) -> list[Finding]:
    fix = "write it under queued_tpus, or ask by `accel-jobs submit` to a target of kind tpu-vm"
    return [
        QUEUE_FIELD.finding(name, "is nothing that the provider's queued resource takes", fix)
        for name in given
        if name in QUEUE_ONLY_JOBS
    ]


def queue_account(field: str = "accelerator_type") -> list[Finding]:
    """Return the finding for any queued resource that a stack creates."""
    message = "is asked for by a resource that names no service account, so its nodes run as the project's default one"
    return [QUEUE_ACCOUNT.finding(field, message, "use a TpuVm, queued_tpus, or a job to a target of kind tpu-vm")]


def valid(for_s: int | None, until: str | None) -> list[Finding]:
    """Check the time until which a declared queue requests TPUs."""
    if for_s is not None and until is not None:
        return [QUEUE_VALID.finding("valid_for_s", "is beside valid_until", "write one of them")]
    try:
        at = datetime.fromisoformat(until) if until is not None else None
    except ValueError:
        return [QUEUE_VALID.finding("valid_until", f'is "{until}", which is no time', "such as 2027-01-31T08:00:00Z")]
    if at is not None and at.tzinfo is None:
        return [QUEUE_VALID.finding("valid_until", f'is "{until}", without a zone', f"write {until}Z")]
    return []


def queue_reservation(capacity: str, reservation: str | None) -> list[Finding]:
    if reservation is None or capacity == "reserved":
        return []
    message = f"is named, and capacity is {capacity}"
    return [QUEUE_RESERVATION.finding("reservation", message, "write capacity: reserved")]


def disk_types(accelerator_type: str) -> tuple[str, ...]:
    """Return the default of a new disk first."""
    of = find_slice(accelerator_type)
    return _HYPERDISK if of and of.generation.accelerator == _NEW else ("pd-balanced",)


def data_disk(
    accelerator_type: str,
    *,
    size_gib: int | None,
    source: str | None,
    kind: str | None,
    read_only: bool,
    field: str,
) -> list[Finding]:
    """Check one disk: created by the stack (`size_gib`), or existing (`source`)."""
    if (size_gib is None) == (source is None):
        message = "has a size and a source" if source else "has neither size_gib nor source"
        return [DISK.finding(field, message, "write size_gib for a new disk, or source for one that is there")]
    found: list[Finding] = []
    of = find_slice(accelerator_type)
    if of and of.multi_host and not read_only:
        message = f"is written to, and {of.name} has {of.hosts} hosts"
        found.append(DISK_SHARED.finding(field, message, "write mode: read-only and a source, or use a bucket"))
    if size_gib is not None and read_only:
        found.append(DISK.finding(field, "is new, empty and read-only", "write mode: read-write, or name a source"))
    if kind and size_gib is not None and kind not in disk_types(accelerator_type):
        allowed = " or ".join(disk_types(accelerator_type))
        found.append(DISK_TYPE.finding(f"{field}.type", f"is {kind}, and the TPU takes {allowed}", f"use {allowed}"))
    return found

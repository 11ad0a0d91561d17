"""TPU VMs that a stack owns: zone, disks, and limits of the provider's queued resource."""

from collections.abc import Iterable
from datetime import datetime

from accel.catalog.places import nearest_places
from accel.diagnostics.findings import TPU, Finding, Rule
from accel.rules.gcp.tpu import find_slice

_DISKS = "https://cloud.google.com/tpu/docs/setup-persistent-disk"
_QUEUE = "https://www.pulumi.com/registry/packages/gcp/api-docs/tpu/v2queuedresource/"

ZONE = Rule(
    "gcp.tpu.zone",
    "warn",
    "A TPU is made in a zone that has its type; Google's list leaves zones out, and may be newer",
    f"{TPU}regions-zones",
)
QUEUE_FIELD = Rule(
    "gcp.tpu.queue-field",
    "reject",
    "A queued resource of the provider has a type, a software version, a description and a network; no more",
    _QUEUE,
)
QUEUE_ACCOUNT = Rule(
    "gcp.tpu.queue-account",
    "warn",
    "Nodes without a service account of their own run as the project's default one",
    "https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes#ServiceAccount",
)
DISK = Rule("gcp.tpu.disk", "reject", "A data disk is made with a size, or is there already", _DISKS)
DISK_SHARED = Rule(
    "gcp.tpu.disk-shared",
    "reject",
    "One machine alone writes to a disk, so a slice of several hosts only reads",
    _DISKS,
)
DISK_TYPE = Rule("gcp.tpu.disk-type", "reject", "A generation attaches certain types of disk", _DISKS)

QUEUE_VALID = Rule(
    "gcp.tpu.queue-valid",
    "reject",
    "A queued resource is valid for a while or until a time, in the form of RFC 3339 with its zone",
    f"{TPU}queued-resources",
)
QUEUE_RESERVATION = Rule(
    "gcp.tpu.queue-reservation", "reject", "A reservation is for reserved capacity", f"{TPU}queued-resources"
)

RULES = (ZONE, QUEUE_FIELD, QUEUE_ACCOUNT, DISK, DISK_SHARED, DISK_TYPE, QUEUE_VALID, QUEUE_RESERVATION)

QUEUE_ONLY_JOBS = (
    "spot", "reserved", "reservation", "guaranteed", "capacity", "valid_until", "valid_for_s", "slices",
    "service_account",
    "startup_script", "metadata", "labels", "tags", "data_disks", "topology", "secure_boot",
)  # fmt: skip
"""Fields that the Cloud TPU API accepts for a queued resource and its nodes, but the provider's resource does not."""

_HYPERDISK = ("hyperdisk-balanced", "hyperdisk-ml")
_NEW = "tpu-v6e"


def zone(name: str, accelerator_type: str, field: str = "zone") -> list[Finding]:
    """Check the zone of a slice. Ignores regions whose zones the catalog does not have."""
    of = find_slice(accelerator_type)
    regions = of.places if of else {}
    offered = tuple(sorted(each for zones in regions.values() for each in zones))
    if of is None or not offered or name in offered or regions.get(name.rpartition("-")[0]) == ():
        return []
    message = f"is {name}, and {of.name} is in {', '.join(nearest_places(name, offered, len(offered)))}"
    return [ZONE.finding(field, message, f"use {nearest_places(name, offered)[0]}, or make sure that it is there")]


def queue_fields(given: Iterable[str]) -> list[Finding]:
    """Check the fields of a queued resource that a stack creates."""
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
    """Check a declared queue's reservation and capacity."""
    if reservation is None or capacity == "reserved":
        return []
    message = f"is named, and capacity is {capacity}"
    return [QUEUE_RESERVATION.finding("reservation", message, "write capacity: reserved")]


def disk_types(accelerator_type: str) -> tuple[str, ...]:
    """Return the types of data disk that a slice can attach; the default of a new one comes first."""
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
    """Check one data disk: created by the stack (`size_gib`), or existing (`source`)."""
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

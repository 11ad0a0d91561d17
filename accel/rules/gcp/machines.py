"""Machine types of Google Cloud with GPUs: built-in ones, and those that an N1 machine accepts."""

from accel.catalog import Accelerator, Machine, UnknownName, machines
from accel.catalog import machine as machine_named
from accel.catalog.gpu_attachments import N1, GpuAttachment, gpu_attachments, n1
from accel.diagnostics.findings import Finding
from accel.rules import newer_types
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.table import rule

UNKNOWN = rule("gcp.machine.unknown")
NEWER = rule("gcp.machine.newer")
NOT_ATTACHABLE = rule("gcp.machine.not-attachable")
MISMATCH = rule("gcp.machine.accelerator-mismatch")
BUNDLED_COUNT = rule("gcp.machine.accelerator-count")
N1_COUNT = rule("gcp.machine.n1-count")
N1_LIMIT = rule("gcp.machine.n1-limit")
P100_ZONE = rule("gcp.machine.p100-zone")

_SERIES = ("a2-", "a3-", "a4-", "a4x-", "g2-", "g4-", "n1-", "ct3", "ct4", "ct5", "ct6", "tpu7x-")
_P100_ZONES = ("us-east1-c", "europe-west1-d", "europe-west1-b")


_LIMITS = (
    ("vcpus_max", "at most {:g} vCPUs", "smaller"),
    ("memory_gib_max", "at most {:g} GB", "smaller"),
    ("vcpus_min", "at least {:g} vCPUs", "larger"),
    ("memory_gib_min", "at least {:g} GB", "larger"),
)
"""Column of an attachment, its wording, and the kind of machine that respects it."""


def machine(
    machine_type: str, accelerator: str | None = None, count: int | None = None, zone: str | None = None
) -> list[Finding]:
    """Check a type with the GPUs named beside it (None: none); the zone matters for four P100 only. Fields are
    `machine_type`, `accelerator` and `accelerator_count`. Ignores accelerators that gpus.accelerator_name() reports."""
    kind = find_accelerator(accelerator) if accelerator is not None else None
    return with_gpus(machine_type, kind, accelerator, count, zone)


def with_gpus(
    machine_type: str, kind: Accelerator | None, written: str | None, count: int | None, zone: str | None = None
) -> list[Finding]:
    """Check as machine() does; `written` is the GPU as the user wrote it."""
    if size := n1(machine_type):
        return _on_n1(size, kind, count, zone)
    try:
        found = machine_named("gcp", machine_type)
    except UnknownName as unknown:
        if newer_types.gcp(machine_type):
            message = f'is "{machine_type}", {newer_types.doubt("gcp")}'
            return [UNKNOWN.finding("machine_type", message, newer_types.fix("gcp", unknown.nearest))]
        if machine_type.startswith(_SERIES):
            near = " or ".join(unknown.nearest) or "one of the catalogue, such as g2-standard-8 or a2-highgpu-1g"
            return [
                UNKNOWN.finding(
                    "machine_type",
                    f'is "{machine_type}", which is no known type',
                    f"use {near}; {newer_types.REFRESHED}",
                )
            ]
        return _not_attachable(machine_type, kind)
    if not found.accelerator:
        return _not_attachable(machine_type, kind)
    if kind is not None and kind.name != found.accelerator:
        return [_mismatch(found, kind, str(written))]
    return _bundled(found, count)


def target_machine(machine_type: str) -> list[Finding]:
    """Check a type that a target only names: only jobs need to know its size."""
    found = machine(machine_type)
    if not newer_types.gcp(machine_type):
        return found
    return [NEWER.finding(each.field, each.message, each.fix) for each in found]


def attachable(machine_type: str, kind: Accelerator) -> list[Finding]:
    return [] if kind.name in gpu_attachments() else _not_attachable(machine_type, kind)


def _mismatch(found: Machine, kind: Accelerator, written: str) -> Finding:
    message = f"is {written}, and {found.name} has {_built_in(found)} built in"
    return MISMATCH.finding("accelerator", message, f"leave it out, or use {_with(kind.name)}")


def _built_in(found: Machine) -> str:
    return f"{found.accelerator_count:g} {found.accelerator}"


def _bundled(found: Machine, count: int | None) -> list[Finding]:
    if count is None or count == found.accelerator_count or not found.whole_accelerators:
        return []
    message = f"is {count}, and {found.name} has {_built_in(found)}"
    same = [each for each in machines("gcp", family=found.family) if each.accelerator == found.accelerator]
    other = [each.name for each in same if each.accelerator_count == count]
    fix = f"write {found.accelerator_count:g}" + (f", or use {' or '.join(other)}" if other else "")
    return [BUNDLED_COUNT.finding("accelerator_count", message, fix)]


def _with(accelerator: str) -> str:
    if accelerator in gpu_attachments():
        return "an N1 machine such as n1-standard-8"
    found = [each.name for each in machines("gcp") if each.accelerator == accelerator]
    return " or ".join(found[:4]) or "AWS"


def _not_attachable(machine_type: str, kind: Accelerator | None) -> list[Finding]:
    if kind is None:
        return []
    message = f'is "{machine_type}", which takes no {kind.name}'
    return [NOT_ATTACHABLE.finding("machine_type", message, f"use {_with(kind.name)}")]


def _on_n1(size: N1, kind: Accelerator | None, count: int | None, zone: str | None) -> list[Finding]:
    if kind is None or kind.name not in gpu_attachments():
        return _not_attachable(size.name, kind)
    numbers = gpu_attachments()[kind.name]
    asked = 1 if count is None else count
    if asked not in numbers:
        allowed = ", ".join(str(each) for each in numbers)
        message = f"is {asked}, and N1 takes {allowed} of {kind.name}"
        return [N1_COUNT.finding("accelerator_count", message, f"use one of {allowed}, or more than one machine")]
    return _limits(size, numbers, asked) + _p100(size, kind.name, asked, zone)


def _limits(size: N1, numbers: dict[int, GpuAttachment], count: int) -> list[Finding]:
    found: list[Finding] = []
    taken = numbers[count]
    for column, words, other in _LIMITS:
        if _within(size, taken, column):
            continue
        message = (
            f'is "{size.name}" ({size.vcpus} vCPUs, {size.memory_gib:g} GB), and {count} {taken.accelerator} allow '
            + words.format(_allowed(taken, column))
        )
        enough = " or ".join(str(each) for each, one in numbers.items() if _within(size, one, column))
        fix = f"use {enough} {taken.accelerator}, or a {other} machine" if enough else f"use a {other} machine"
        found.append(N1_LIMIT.finding("machine_type", message, fix))
    return found


def _allowed(taken: GpuAttachment, column: str) -> float:
    return {
        "vcpus_min": taken.vcpus_min,
        "vcpus_max": taken.vcpus_max,
        "memory_gib_min": taken.memory_gib_min,
        "memory_gib_max": taken.memory_gib_max,
    }[column]


def _within(size: N1, taken: GpuAttachment, column: str) -> bool:
    of, _, end = column.rpartition("_")
    is_ = size.vcpus if of == "vcpus" else size.memory_gib
    limit = _allowed(taken, column)
    return is_ <= limit if end == "max" else is_ >= limit


def _p100(size: N1, accelerator: str, count: int, zone: str | None) -> list[Finding]:
    if (accelerator, count) != ("nvidia-tesla-p100", 4) or zone not in _P100_ZONES:
        return []
    if size.vcpus <= 64 and size.memory_gib <= 208:
        return []
    message = f'is "{size.name}" ({size.vcpus} vCPUs, {size.memory_gib:g} GB), and 4 P100 allow 64 and 208 GB in {zone}'
    return [P100_ZONE.finding("machine_type", message, "use n1-standard-32 or n1-highmem-32, or another zone")]

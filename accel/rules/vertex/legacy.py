"""GPU limits on N1 of Vertex AI and AI Platform Training, which are stricter than Compute Engine's, and the machine
types of AI Platform Training."""

from functools import cache
from typing import NamedTuple

from accel.catalog import UnknownName, machines
from accel.catalog.gpu_attachments import N1_SIZES, n1
from accel.catalog.legacy import legacy_machine, legacy_machines
from accel.diagnostics.findings import Finding, Rule
from accel.rules.gcp.gpus import find_accelerator

_TABLE = "https://docs.cloud.google.com/vertex-ai/docs/training/configure-compute#gpu-compatibility-table"
_TYPES = "https://cloud.google.com/ai-platform/training/docs/machine-types"

GPU_COUNT = Rule(
    "gcp.vertex.gpu-count",
    "reject",
    "Vertex AI takes the numbers of GPUs that cover the machine's vCPUs and memory",
    _TABLE,
)
GPU_COUNT_DERIVED = Rule(
    "gcp.vertex.gpu-count-derived",
    "warn",
    "For the K80 on machines of 64 and 96 vCPUs the allowed numbers are computed, not read from the table",
    _TABLE,
)
TYPE = Rule(
    "gcp.legacy.machine-type",
    "translate",
    "AI Platform Training's machine types are replaced by those of Compute Engine",
    _TYPES,
)
TYPE_UNKNOWN = Rule(
    "gcp.legacy.machine-type-unknown",
    "reject",
    "A legacy machine type is one that AI Platform Training had",
    _TYPES,
)
DECISION = Rule(
    "gcp.legacy.decision",
    "reject",
    "Some legacy machine types have no equal: their replacement has to be chosen",
    _TYPES,
)
REGION = Rule(
    "gcp.legacy.region",
    "warn",
    "AI Platform Training had GPUs in sixteen regions",
    "https://cloud.google.com/ai-platform/training/docs/regions",
)

RULES = (GPU_COUNT, GPU_COUNT_DERIVED, TYPE, TYPE_UNKNOWN, DECISION, REGION)

REGIONS = (
    "us-west1", "us-west2", "us-central1", "us-east1", "us-east4", "northamerica-northeast1", "southamerica-east1",
    "europe-west1", "europe-west2", "europe-west4", "asia-south1", "asia-southeast1", "asia-east1", "asia-northeast1",
    "asia-northeast3", "australia-southeast1",
)  # fmt: skip


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
def _a100_machines() -> dict[str, int]:
    return {each.name: each.whole_accelerators for each in machines("gcp") if each.accelerator == "nvidia-tesla-a100"}


def legacy_counts(machine_type: str, accelerator: str) -> Counts | None:
    """Return the numbers of an accelerator (its catalog name, or nvidia-tesla-k80) that Vertex AI allows on a machine
    type, or None if the table does not cover the machine or the accelerator.

    A number is allowed if it exists and that many GPUs cover the vCPUs and the memory. All 55 published cells agree.
    """
    if accelerator == "nvidia-tesla-a100" and machine_type in _a100_machines():
        return Counts((_a100_machines()[machine_type],), derived=True)
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


def vertex_gpus(machine_type: str, accelerator: str, count: int, field: str = "accelerator_count") -> list[Finding]:
    """Check GPUs on an N1 machine of a Vertex AI job. gcp.machines.machine() checks machines with built-in GPUs."""
    kind = find_accelerator(accelerator)
    return gpu_count(machine_type, kind.name if kind else accelerator.lower().replace("_", "-"), count, field)


def gpu_count(machine_type: str, name: str, count: int, field: str = "accelerator_count") -> list[Finding]:
    """Check GPUs on an N1 machine by their catalog name, or nvidia-tesla-k80, as vertex_gpus() does."""
    allowed = legacy_counts(machine_type, name)
    if allowed is None or count in allowed.values or name == "nvidia-tesla-a100":
        return []
    shown = ", ".join(str(each) for each in allowed.values)
    who = "AI Platform Training took" if name == "nvidia-tesla-k80" else "Vertex AI takes"
    message = f"is {count}, and {who} {shown or 'none'} of {name} on {machine_type}"
    fix = f"use one of {shown}, or a smaller machine" if shown else "use a smaller machine or another accelerator"
    rule = GPU_COUNT_DERIVED if allowed.derived else GPU_COUNT
    return [rule.finding(field, message, fix)]


def machine_type(name: str, field: str = "machine_type") -> list[Finding]:
    """Check a machine type of AI Platform Training. The replacement is the machine type; its GPUs are those of
    catalog.legacy.legacy_machine(). Names of Compute Engine are accepted as well."""
    if n1(name) or name in _a100_machines():
        return []
    try:
        found = legacy_machine(name)
    except UnknownName as unknown:
        near = " or ".join(unknown.nearest) or f"one of {', '.join(legacy_machines())}"
        return [TYPE_UNKNOWN.finding(field, f'is "{name}", which AI Platform Training did not have', f"use {near}")]
    had = f" ({found.legacy_count} {found.legacy_accelerator})" if found.legacy_count else ""
    if found.decision:
        return [DECISION.finding(field, f'is "{name}"{had}, which has no equal', found.decision)]
    gpus = f" with {found.count} {found.accelerator}" if found.count else ""
    unsure = ", a size that was recalled" if found.size_confidence == "low" else ""
    message = f'is "{name}"{had}, a machine type of AI Platform Training of about {found.base_vcpus} vCPUs and '
    message += f"{found.base_memory_gb:g} GB{unsure}"
    return [TYPE.finding(field, message, f"use {found.machine}{gpus}", found.machine)]


def region(name: str, field: str = "region") -> list[Finding]:
    """Check the region of an AI Platform Training job with GPUs."""
    if name in REGIONS:
        return []
    message = f'is "{name}", where AI Platform Training had no GPUs'
    return [REGION.finding(field, message, f"use one of {', '.join(REGIONS)}")]

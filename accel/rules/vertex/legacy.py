"""Machine types and regions of AI Platform Training."""

from accel.catalog import UnknownName
from accel.catalog.gpu_attachments import a100_machines, n1
from accel.catalog.legacy import legacy_machine, legacy_machines
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

TYPE = rule("gcp.legacy.machine-type")
TYPE_UNKNOWN = rule("gcp.legacy.machine-type-unknown")
DECISION = rule("gcp.legacy.decision")
REGION = rule("gcp.legacy.region")

REGIONS = (
    "us-west1", "us-west2", "us-central1", "us-east1", "us-east4", "northamerica-northeast1", "southamerica-east1",
    "europe-west1", "europe-west2", "europe-west4", "asia-south1", "asia-southeast1", "asia-east1", "asia-northeast1",
    "asia-northeast3", "australia-southeast1",
)  # fmt: skip


def machine_type(name: str, field: str = "machine_type") -> list[Finding]:
    """Check a type. The replacement has the GPUs of catalog.legacy.legacy_machine(). Compute Engine's names pass."""
    if n1(name) or name in a100_machines():
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
    if name in REGIONS:
        return []
    message = f'is "{name}", where AI Platform Training had no GPUs'
    return [REGION.finding(field, message, f"use one of {', '.join(REGIONS)}")]

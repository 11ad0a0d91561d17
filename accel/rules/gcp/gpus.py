"""GPUs by name and number on Google Cloud, and the provisioning of scarce ones."""

from accel.catalog import Accelerator, AmbiguousName, UnavailableName, UnknownName, accelerator
from accel.catalog.machines import counts_of
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

UNKNOWN = rule("gcp.gpu.unknown")
CONSUMER = rule("gpu.consumer")
NOT_HERE = rule("gcp.gpu.not-on-google-cloud")
K80 = rule("gcp.gpu.k80")
OLD = rule("gcp.gpu.old")
COUNT = rule("gcp.gpu.count")
SMALL_A3 = rule("gcp.gpu.small-a3")
SCARCE = rule("gcp.gpu.scarce")

OLD_GENERATIONS = ("nvidia-tesla-p4", "nvidia-tesla-p100", "nvidia-tesla-v100")
SMALL_A3_MACHINES = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
_SCARCE_SERIES = ("a3-ultragpu", "a4-", "a4x-")
_INTERRUPTIBLE = ("spot", "flex-start")


def find_accelerator(name: str) -> Accelerator | None:
    """Return None for a name that accelerator_name() reports."""
    try:
        return accelerator(name)
    except (UnknownName, AmbiguousName):
        return None


def accelerator_name(name: str, field: str = "accelerator", *, cloud: str = "gcp") -> list[Finding]:
    """Check a name. `cloud="aws"`: consumer GPUs are rejected there too."""
    return resolve_accelerator(name, field, cloud=cloud)[1]


def resolve_accelerator(
    name: str, field: str = "accelerator", *, cloud: str = "gcp"
) -> tuple[Accelerator | None, list[Finding]]:
    try:
        kind = accelerator(name)
    except UnavailableName as refused:
        if "k80" not in name.lower():
            message = f'is "{name}", which is not offered on AWS or Google Cloud'
            return None, [CONSUMER.finding(field, message, _use(refused))]
        return None, [K80.finding(field, f'is "{name}", which is no longer offered', _use(refused))]
    except UnknownName as unknown:
        some = f"use one of {', '.join(unknown.listed[:10])}, or another of `accel-jobs offers --best-for`"
        fix = _use(unknown) if unknown.nearest else some
        return None, [UNKNOWN.finding(field, f'is "{name}", which is no known accelerator', fix)]
    except AmbiguousName as several:
        message = f'is "{name}", which means more than one accelerator'
        return None, [UNKNOWN.finding(field, message, f"use {' or '.join(several.choices)}")]
    return kind, _on_google_cloud(kind, name, field) if cloud == "gcp" else []


def _on_google_cloud(kind: Accelerator, name: str, field: str) -> list[Finding]:
    if not kind.is_tpu and not counts_of(kind.name, "gcp"):
        message = f'is "{name}", which Google Cloud does not have'
        return [NOT_HERE.finding(field, message, "use nvidia-l4 or nvidia-tesla-t4, or run it on AWS")]
    if kind.name in OLD_GENERATIONS:
        message = f'is "{name}", an old generation ({kind.architecture})'
        return [OLD.finding(field, message, "use nvidia-l4 or nvidia-tesla-a100 unless the job needs it")]
    return []


def accelerator_count(
    name: str, count: float, field: str = "accelerator_count", *, cloud: str | None = "gcp"
) -> list[Finding]:
    """Check GPUs on one machine of a cloud (None: any). Ignores unknown accelerators and TPUs."""
    kind = find_accelerator(name)
    return gpu_count(kind, count, field, cloud=cloud) if kind else []


def gpu_count(
    kind: Accelerator, count: float, field: str = "accelerator_count", *, cloud: str | None = "gcp"
) -> list[Finding]:
    offered = counts_of(kind.name, cloud)
    if kind.is_tpu or not offered or count in offered:
        return []
    each = [f"{number:g}" for number in offered]
    shown = each[0] if len(each) == 1 else f"{', '.join(each[:-1])} or {each[-1]}"
    message = f"is {count:g}, and no machine has that many {kind.name}; machines have {shown}"
    return [COUNT.finding(field, message, f"use {shown}, or more than one machine")]


def small_a3(machine: str, provisioning: str | None, field: str = "provisioning") -> list[Finding]:
    """Check `spot`, `flex-start` and the like in any API's spelling (SPOT, FLEX_START, STANDARD); None is on demand."""
    if machine not in SMALL_A3_MACHINES or _provisioning(provisioning) in _INTERRUPTIBLE:
        return []
    message = f"is {provisioning or 'on-demand'}, and {machine} is available as Spot or flex-start only"
    return [SMALL_A3.finding(field, message, "use spot or flex-start, or a3-highgpu-8g or a2-ultragpu-2g")]


def scarce(machine: str, provisioning: str | None, field: str = "provisioning") -> list[Finding]:
    if not machine.startswith(_SCARCE_SERIES) or _provisioning(provisioning) not in ("on-demand", "standard"):
        return []
    message = f"is {provisioning or 'on-demand'}, and {machine} is rarely available that way"
    # https://docs.cloud.google.com/compute/docs/instances/about-flex-start-vms
    others = "spot" if machine.startswith("a4x-") else "flex-start or spot"
    return [SCARCE.finding(field, message, f"name a reservation, or use {others}")]


def _provisioning(name: str | None) -> str:
    return (name or "on-demand").lower().replace("_", "-")


def _use(unknown: UnknownName) -> str:
    return f"use {' or '.join(unknown.nearest)}"

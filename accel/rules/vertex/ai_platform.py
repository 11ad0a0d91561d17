"""Tiers, machines and roles of AI Platform Training jobs, which are read for migration."""

from collections.abc import Mapping

from accel.catalog import NoMachine, machines_for
from accel.catalog.gpu_attachments import n1, vertex_counts
from accel.catalog.legacy import legacy_machines
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.table import rule

TIER = rule("ai-platform.tier.unknown")
TIER_MACHINE = rule("ai-platform.tier.machine")
TIER_SIZE = rule("ai-platform.tier.size")
CUSTOM_ONLY = rule("ai-platform.tier.custom-only")
MASTER = rule("ai-platform.role.master")
ROLE_TYPE = rule("ai-platform.role.type")
KINDS = rule("ai-platform.role.kinds")
LEGACY_GPUS = rule("ai-platform.role.legacy-accelerators")
TPU = rule("ai-platform.tpu")
K80 = rule("ai-platform.k80")
K80_NONE = rule("ai-platform.k80.none")

TIERS = {
    "BASIC": "standard",
    "BASIC_GPU": "standard_gpu",
    "STANDARD_1": "",
    "PREMIUM_1": "",
    "BASIC_TPU": "",
    "CUSTOM": "",
}
"""Legacy machine type of each scale tier; empty for tiers that are not one machine."""

REPLACEMENTS = (
    "nvidia-tesla-t4", "nvidia-l4", "nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4", "nvidia-tesla-a100",
)  # fmt: skip
"""Possible replacements for a K80; the first is the default."""

_K80 = "nvidia-tesla-k80"
_TPU_FIX = "use a TPU VM (tpu_vm target, v3-8), or Vertex AI with ct5lp-hightpu-4t and topology 2x2"


def scale_tier(name: str, field: str = "scaleTier") -> list[Finding]:
    if name not in TIERS:
        fix = did_you_mean(nearest(name, TIERS), TIERS)
        return [TIER.finding(field, f'is "{name}", which is no scale tier', fix)]
    if name in ("STANDARD_1", "PREMIUM_1"):
        fix = "write scaleTier CUSTOM with masterType, and types and counts of workers and parameter servers"
        return [TIER_SIZE.finding(field, f"is {name}, a cluster whose machines Vertex AI does not know", fix)]
    if name == "BASIC_TPU":
        return [TPU.finding(field, "is BASIC_TPU, a machine with a TPU v2", _TPU_FIX)]
    if name != "CUSTOM":
        found = legacy_machines()[TIERS[name]]
        gpus = f" with {found.legacy_count} {found.legacy_accelerator}" if found.legacy_count else ""
        message = f"is {name}, one machine of about {found.base_vcpus} vCPUs and {found.base_memory_gb:g} GB{gpus}"
        return [TIER_MACHINE.finding(field, message, f"use {found.machine}", found.machine)]
    return []


def custom_only(tier: str, field: str) -> list[Finding]:
    if tier == "CUSTOM":
        return []
    return [CUSTOM_ONLY.finding(field, f"goes with scaleTier CUSTOM, and the tier is {tier}", "write scaleTier CUSTOM")]


def master(tier: str, machine_type: str | None, field: str = "masterType") -> list[Finding]:
    if tier != "CUSTOM" or machine_type:
        return []
    return [MASTER.finding(field, "is missing, and scaleTier is CUSTOM", "name one, such as n1-standard-8")]


def role_type(count: int, machine_type: str | None, field: str) -> list[Finding]:
    if count == 0 or machine_type:
        return []
    return [ROLE_TYPE.finding(field, f"is missing, and there are {count} replicas", "name a machine type for them")]


def kinds(types: Mapping[str, str], field: str = "masterType") -> list[Finding]:
    legacy = [name for name, each in types.items() if each in legacy_machines()]
    if not legacy or len(legacy) == len(types):
        return []
    others = [name for name in types if name not in legacy]
    message = f"is one of both kinds of a job: {', '.join(legacy)} legacy, {', '.join(others)} Compute Engine's"
    return [KINDS.finding(field, message, "use one kind for all")]


def accelerators(machine_type: str, accelerator: str, field: str) -> list[Finding]:
    if accelerator.upper().startswith("TPU"):
        return [TPU.finding(field, f"is {accelerator}", _TPU_FIX)]
    if machine_type in legacy_machines():
        fix = f"leave them out, or use {legacy_machines()[machine_type].machine or 'a Compute Engine type'}"
        return [LEGACY_GPUS.finding(field, f"stands beside {machine_type}, a legacy machine type", fix)]
    return []


def replacement(machine_type: str, count: int, by: str) -> tuple[str, int] | None:
    """Return the machine and number of GPUs that replace `count` K80 on N1, or None. `by` is one of REPLACEMENTS."""
    size = n1(machine_type)
    assert size, machine_type
    if allowed := vertex_counts(machine_type, by):
        return (machine_type, count) if count in allowed.values else None
    try:
        found = machines_for(by, count, "gcp")
    except NoMachine:
        return None
    return next((each for each in found if (each.vcpus or 0) >= size.vcpus), found[-1]).name, count


def k80(machine_type: str, count: int, by: str, field: str = "accelerator") -> list[Finding]:
    new = replacement(machine_type, count, by)
    message = f"is {count} {_K80} on {machine_type}, a GPU that is no longer offered"
    if new is None:
        others = [(other, found) for other in REPLACEMENTS if (found := replacement(machine_type, count, other))]
        choice = " or ".join(f"{n} {other} ({machine})" for other, (machine, n) in others) or "fewer GPUs a machine"
        said = f"{message}; {count} {by} fit no machine"
        return [K80_NONE.finding(field, said, f"choose with --k80-replacement: {choice}")]
    kind = find_accelerator(by)
    return [K80.finding(field, message, f"use {new[1]} {by} on {new[0]}", kind.vertex_name if kind else by)]

"""Machines of Vertex AI worker pools, with their GPUs, TPUs and disks."""

from collections.abc import Mapping, Sequence

from accel.catalog import Accelerator, UnknownName, machine
from accel.catalog import vertex as offered
from accel.catalog.gke_machines import boot_disks, series
from accel.catalog.gpu_attachments import vertex_counts
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding
from accel.rules.gcp import gpus, machines
from accel.rules.table import rule

NOT_OFFERED = rule("vertex.machine.not-offered")
ACCELERATOR = rule("vertex.accelerator.not-offered")
RESERVED_ONLY = rule("vertex.machine.reserved-only")
ARM = rule("vertex.machine.arm")
P100 = rule("vertex.gpu.p100")
GPU_COUNT = rule("gcp.vertex.gpu-count")
GPU_COUNT_DERIVED = rule("gcp.vertex.gpu-count-derived")
REGION = rule("vertex.machine.region")
FIT = rule("vertex.fit")
HEADROOM = rule("vertex.headroom")
DISK_SIZE = rule("vertex.disk.size")
DISK_TYPE = rule("vertex.disk.type")
DISK_MACHINE = rule("vertex.disk.machine")

DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
DISK_MIN_GB, DISK_MAX_GB = 100, 64_000
_HEADROOM_PARTS = 16
"""Our own choice: a machine keeps one part in this many of its memory for anything but the job."""


def machine_type(name: str, field: str = "machine_type") -> list[Finding]:
    known = offered.machine_types()
    if name in known:
        return []
    alike = [each for each in known if series(each) == series(name)]
    near = nearest(name, alike) or nearest(name, known)
    fix = f"use {' or '.join(near)}" if near else "use one such as n1-standard-8, g2-standard-8 or a2-highgpu-1g"
    return [NOT_OFFERED.finding(field, f'is "{name}", on which Vertex AI does not train', fix)]


def pool(name: str, accelerator: str | None, count: int | None) -> list[Finding]:
    """Check type and GPUs (None: none are named). tpus.py checks TPUs."""
    kind, found = resolve_gpu(accelerator) if accelerator is not None else (None, [])
    return with_gpus(name, kind, accelerator, count, found)


def with_gpus(
    name: str, kind: Accelerator | None, written: str | None, count: int | None, of_gpu: list[Finding]
) -> list[Finding]:
    """Check as pool() does, given the result of resolve_gpu()."""
    found = machine_type(name) + of_gpu
    if any(finding.severity == "reject" for finding in found):
        return found
    return found + _gpus_on(name, kind, written, count)


def _gpus_on(name: str, kind: Accelerator | None, written: str | None, count: int | None) -> list[Finding]:
    """Check built-in or attached GPUs; one if no count is given."""
    if kind is None or not name.startswith("n1-"):
        return machines.with_gpus(name, kind, written, count)
    number = 1 if count is None else count
    return machines.attachable(name, kind) or gpus.gpu_count(kind, number) or _n1_count(name, kind.name, number)


def n1_gpus(machine_type: str, accelerator: str, count: int, field: str = "accelerator_count") -> list[Finding]:
    """Check GPUs on N1, also the K80 of AI Platform Training."""
    kind = gpus.find_accelerator(accelerator)
    return _n1_count(machine_type, kind.name if kind else accelerator.lower().replace("_", "-"), count, field)


def _n1_count(machine_type: str, name: str, count: int, field: str = "accelerator_count") -> list[Finding]:
    allowed = vertex_counts(machine_type, name)
    if allowed is None or count in allowed.values or name == "nvidia-tesla-a100":
        return []
    shown = ", ".join(str(each) for each in allowed.values)
    who = "AI Platform Training took" if name == "nvidia-tesla-k80" else "Vertex AI takes"
    message = f"is {count}, and {who} {shown or 'none'} of {name} on {machine_type}"
    fix = f"use one of {shown}, or a smaller machine" if shown else "use a smaller machine or another accelerator"
    broken = GPU_COUNT_DERIVED if allowed.derived else GPU_COUNT
    return [broken.finding(field, message, fix)]


def resolve_gpu(name: str, field: str = "accelerator") -> tuple[Accelerator | None, list[Finding]]:
    """Leave TPUs to tpus.py."""
    kind, found = gpus.resolve_accelerator(name, field)
    if kind is None or kind.is_tpu or any(finding.severity == "reject" for finding in found):
        return kind, found
    if kind.name in offered.accelerator_names():
        return kind, found + p100(kind, name, field)
    message = f'is "{name}", which Vertex AI does not train on'
    fix = f"use one of {', '.join(_gpus())}, or a target of kind gke or gce"
    return kind, [ACCELERATOR.finding(field, message, fix)]


def _gpus() -> list[str]:
    return [name for name in offered.accelerator_names() if not name.startswith("tpu")]


def p100(kind: Accelerator, written: str, field: str = "accelerator") -> list[Finding]:
    if kind.name != "nvidia-tesla-p100":
        return []
    return [P100.finding(field, f'is "{written}", supported until 2026-09-15', "use nvidia-tesla-t4 or nvidia-l4")]


def had(name: str, strategy: str | None, reservation: str | None, field: str = "provisioning") -> list[Finding]:
    """Check a strategy (SPOT, FLEX_START, STANDARD; None: STANDARD) and a reservation."""
    strategy = None if strategy == "STANDARD" else strategy
    found = gpus.small_a3(name, strategy, field)
    if name.startswith("a4x-") and not reservation:
        message = f"is {strategy or 'on-demand'} without a reservation, and {name} is available by reservation only"
        found.append(RESERVED_ONLY.finding(field, message, "name a reservation, or use a4-highgpu-8g"))
    elif not reservation:
        found += gpus.scarce(name, strategy, field)
    return found + arm(name)


def arm(name: str, field: str = "image") -> list[Finding]:
    try:
        other = machine("gcp", name).cpu_arch == "arm64"
    except UnknownName:
        return []
    if not other:
        return []
    return [ARM.finding(field, f"runs on {name}, an Arm machine", "make sure that it is built for linux/arm64")]


def fit(
    name: str, vcpus: int, memory_mib: int, cpus: int | None, asked_mib: int | None, larger: Sequence[str]
) -> list[Finding]:
    """Check `cpus` and `memory_mib` against the machine. `larger`: machines that would hold them, with their size."""
    use = f", or use {' or '.join(larger[:3])}" if larger else ""
    found: list[Finding] = []
    for field, asked, most, unit in (("cpus", cpus, vcpus, "vCPUs"), ("memory_mib", asked_mib, memory_mib, "MiB")):
        if asked and asked > most:
            found.append(FIT.finding(field, f"is {asked}, and {name} has {most} {unit}", f"write at most {most}{use}"))
    most = memory_mib - memory_mib // _HEADROOM_PARTS
    if asked_mib and most < asked_mib <= memory_mib:
        message = f"is {asked_mib} MiB, which leaves {memory_mib - asked_mib} MiB of {name} to all else"
        found.append(HEADROOM.finding("memory_mib", message, f"write at most {most}"))
    return found


def boot_disk_type(name: str) -> str | None:
    """Return the boot disk type of a machine that cannot start from pd-ssd, Vertex AI's default for most, or None."""
    able = [each for each in boot_disks(name) if each in DISK_TYPES]
    return None if not able or DISK_TYPES[0] in able else able[0]


def region(name: str, where: str, places: Mapping[str, Sequence[str]], field: str = "machine_type") -> list[Finding]:
    """Check a region against `places`, those known to have the machine; empty: unknown."""
    if not places or where in places:
        return []
    message = f"is {name}, which {where} is not known to have; {', '.join(list(places)[:6])} have it"
    return [REGION.finding(field, message, "make sure that it is there, or use a target of another region")]


def disk(name: str, size_gb: int | None, disk_type: str | None) -> list[Finding]:
    found: list[Finding] = []
    if size_gb is not None and not DISK_MIN_GB <= size_gb <= DISK_MAX_GB:
        fix = f"use {DISK_MIN_GB} to {DISK_MAX_GB}; a bucket is at /gcs/<bucket>"
        found.append(DISK_SIZE.finding("disk_gib", f"makes a boot disk of {size_gb} GB", fix))
    if disk_type is None:
        return found
    if disk_type not in DISK_TYPES:
        fix = f"use {', '.join(DISK_TYPES)}"
        return [*found, DISK_TYPE.finding("disk_type", f'is "{disk_type}", which Vertex AI does not take', fix)]
    able = [each for each in boot_disks(name) if each in DISK_TYPES]
    if able and disk_type not in able:
        message = f"is {disk_type}, from which {name} is not known to start"
        found.append(DISK_MACHINE.finding("disk_type", message, f"use {' or '.join(able)}, or leave it out"))
    return found

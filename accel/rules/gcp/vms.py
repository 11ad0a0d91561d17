"""GPU VMs of Compute Engine: machine, provisioning, shutdown, and reserved keys."""

from collections.abc import Iterable

from accel.catalog import UnknownName, machine
from accel.catalog.gke_machines import boot_disks, compact_placement, series
from accel.catalog.gpu_attachments import gpu_attachments, n1
from accel.catalog.machines import Machine, NoMachine, machines_for
from accel.catalog.places import where
from accel.diagnostics.findings import Finding
from accel.rules.gcp import gpus, machines
from accel.rules.gcp import zones as gcp_zones
from accel.rules.table import rule

MACHINE = rule("gcp.vm.machine")
MAINTENANCE = rule("gcp.vm.maintenance")
RESTART = rule("gcp.vm.restart")
RESERVATION = rule("gcp.vm.reservation")
DURATION = rule("gcp.vm.duration")
TERMINATION = rule("gcp.vm.termination")
NOTICE = rule("gcp.vm.notice")
CHECKPOINT = rule("gcp.vm.checkpoint-wait")
CHECKPOINT_OF = rule("gcp.vm.checkpoint")
DISK_TYPE = rule("gcp.vm.disk-type")
SECURE_BOOT = rule("gcp.vm.secure-boot")
COMPACT = rule("gcp.vm.compact")
GROUP_FLEX = rule("gcp.vm.group-flex-start")
OWN_KEY = rule("gcp.vm.own-key")

NOTICE_S = 120
SPOT_SHUTDOWN_S = 30
SHUTDOWN_S = 120
FLEX_LONGEST_S = 7 * 24 * 3600
OWN_PREFIX = "accel-"
_OWN_METADATA = {
    "startup-script": "startup_script",
    "shutdown-script": "checkpoint",
    "enable-oslogin": "IAM roles of OS Login",
    "enable-guest-attributes": "nothing: they are on",
    "install-nvidia-driver": "install_driver",
    "ssh-keys": "IAM roles of OS Login",
}
"""Metadata keys that the components write, and what to use instead."""


def smallest_machine(accelerator: str, count: int, zone: str) -> Machine | None:
    """Return the smallest with that many built-in GPUs, in the zone if known; None if it is not exactly one."""
    try:
        built_in = [each for each in machines_for(accelerator, count, "gcp") if not each.is_attachment]
    except NoMachine:
        return None
    here = [each for each in built_in if zone in _zones(each.name)] or built_in
    smallest = [each for each in here if (each.vcpus, each.memory_mib) == (here[0].vcpus, here[0].memory_mib)]
    return smallest[0] if len(smallest) == 1 else None


def gpu_machine_name(machine_type: str | None, accelerator: str | None, count: int | None, zone: str) -> str:
    """Return the machine type that is named, or the smallest with the accelerators; empty if that is not just one."""
    if machine_type:
        return machine_type
    smallest = smallest_machine(accelerator or "", count or 1, zone)
    return smallest.name if smallest else ""


def gpu_machine(
    machine_type: str | None, accelerator: str | None, count: int | None, zone: str, capacity: str
) -> list[Finding]:
    named = gpus.accelerator_name(accelerator) if accelerator else []
    if any(each.severity == "reject" for each in named):
        return named
    if machine_type is None:
        if refused := _unnamed(accelerator, count or 1, zone):
            return refused
        machine_type = gpu_machine_name(None, accelerator, count, zone)
    else:
        refused = machines.machine(machine_type, accelerator, count, zone) or _has_gpus(machine_type, accelerator)
        if any(each.severity == "reject" for each in refused):
            return refused
        named += refused
    named += gpus.small_a3(machine_type, capacity, "capacity") + gpus.scarce(machine_type, capacity, "capacity")
    kind = gpus.find_accelerator(accelerator) if accelerator else None
    at = f"n1+{kind.name}x{count or 1}" if n1(machine_type) and kind else machine_type
    return named + gcp_zones.zone(zone, at.removeprefix("n1+"), _zones(at))


def _unnamed(accelerator: str | None, count: int, zone: str) -> list[Finding]:
    if accelerator is None:
        fix = "name one such as g2-standard-8, or accelerator and accelerator_count"
        return [MACHINE.finding("machine_type", "is missing", fix)]
    if wrong := gpus.accelerator_count(accelerator, count):
        return wrong
    if smallest_machine(accelerator, count, zone):
        return []
    kind = gpus.find_accelerator(accelerator)
    if kind and kind.name in gpu_attachments():
        message = f"is missing, and {count} {kind.name} are attached to an N1 machine of your choice"
        return [MACHINE.finding("machine_type", message, "name one such as n1-standard-8")]
    if kind is None or kind.is_tpu:
        return [MACHINE.finding("accelerator", f"is {accelerator}, which is no GPU", "use a TPU VM")]
    same = [each.name for each in machines_for(accelerator, count, "gcp")]
    message = f"is missing, and {count} {kind.name} are in more than one machine"
    return [MACHINE.finding("machine_type", message, f"use {' or '.join(same)}")]


def _has_gpus(machine_type: str, accelerator: str | None) -> list[Finding]:
    if n1(machine_type):
        missing = f"is {machine_type}, which has no GPU by itself"
        return [] if accelerator else [MACHINE.finding("machine_type", missing, "name accelerator and its count")]
    try:
        if machine("gcp", machine_type).kind == "accelerator":
            return []
    except UnknownName:
        pass
    fix = "use one such as g2-standard-8 or a2-highgpu-1g"
    return [MACHINE.finding("machine_type", f"is {machine_type}, which has no GPU", fix)]


def _zones(name: str) -> list[str]:
    try:
        return [zone for zones in where("gcp", name).values() for zone in zones]
    except UnknownName:
        return []


def maintenance(policy: str, field: str = "on_host_maintenance") -> list[Finding]:
    if policy == "TERMINATE":
        return []
    return [MAINTENANCE.finding(field, f"is {policy}, which Google refuses with GPUs", "leave it out: TERMINATE")]


def provisioning(
    capacity: str,
    *,
    reservation: str | None = None,
    bound: bool = False,
    automatic_restart: bool | None = None,
    termination_action: str | None = None,
    max_run_duration_s: int | None = None,
    notice_s: int | None = None,
) -> list[Finding]:
    """Check a capacity (`on-demand`, `spot`, `flex-start`, `reservation`) and the settings that depend on it."""
    found: list[Finding] = []
    if (capacity == "reservation") != (reservation is not None):
        message = f"is {reservation}, beside capacity {capacity}" if reservation else "is missing beside reservation"
        fix = "write capacity: reservation, or leave the name out" if reservation else "name it"
        found.append(RESERVATION.finding("reservation", message, fix))
    if bound and capacity != "reservation":
        message = f"is true, and capacity is {capacity}"
        found.append(RESERVATION.finding("reservation_bound", message, "write capacity: reservation, and name it"))
    if automatic_restart and capacity in ("spot", "flex-start"):
        found.append(RESTART.finding("automatic_restart", f"is true, and capacity is {capacity}", "leave it out"))
    if notice_s is not None and (capacity != "spot" or notice_s != NOTICE_S):
        message = f"is {notice_s}, and capacity is {capacity}"
        fix = f"write {NOTICE_S}" if capacity == "spot" else "leave it out: Spot VMs alone are preempted"
        found.append(NOTICE.finding("preemption_notice_s", message, fix))
    if capacity == "flex-start":
        found += _flex(termination_action, max_run_duration_s)
    elif termination_action and capacity != "spot" and max_run_duration_s is None:
        message = f"is {termination_action}, and nothing ends the VM by itself"
        found.append(TERMINATION.finding("termination_action", message, "leave it out, or set max_run_duration_s"))
    return found


def _flex(termination_action: str | None, max_run_duration_s: int | None) -> list[Finding]:
    found: list[Finding] = []
    if termination_action == "STOP":
        found.append(TERMINATION.finding("termination_action", "is STOP, and capacity is flex-start", "leave it out"))
    if max_run_duration_s is None or max_run_duration_s > FLEX_LONGEST_S:
        message = "is missing" if max_run_duration_s is None else f"is {max_run_duration_s}"
        fix = f"write at most {FLEX_LONGEST_S}"
        found.append(DURATION.finding("max_run_duration_s", f"{message}, and capacity is flex-start", fix))
    return found


def most_wait_s(capacity: str, notice_s: int | None) -> int:
    """Return how long a checkpoint may take."""
    return (notice_s or SPOT_SHUTDOWN_S) if capacity == "spot" else SHUTDOWN_S


def checkpoint(
    unit: str | None, pid_file: str | None, wait_s: int | None, capacity: str, notice_s: int | None
) -> list[Finding]:
    """Check what receives SIGTERM before the VM is deleted, and how long the VM waits for it."""
    found: list[Finding] = []
    if (unit is None) == (pid_file is None):
        message = "names a unit and a pid_file" if unit else "names neither unit nor pid_file"
        found.append(CHECKPOINT_OF.finding("checkpoint", message, "name one of the two"))
    most = most_wait_s(capacity, notice_s)
    if wait_s is not None and wait_s > most:
        message = f"is {wait_s}, and the VM has {most}"
        fix = f"write at most {most}" + (f", or preemption_notice_s: {NOTICE_S}" if most == SPOT_SHUTDOWN_S else "")
        found.append(CHECKPOINT.finding("checkpoint.wait_s", message, fix))
    return found


def boot_disk(kind: str | None, machine_type: str, field: str = "disk.type") -> list[Finding]:
    allowed = boot_disks(machine_type)
    if not kind or not allowed or kind in allowed:
        return []
    message = f"is {kind}, and {machine_type} takes {', '.join(allowed)}"
    return [DISK_TYPE.finding(field, message, f"leave it out, or write {allowed[0]}")]


def secure_boot(on: bool, field: str = "secure_boot") -> list[Finding]:
    if not on:
        return []
    return [SECURE_BOOT.finding(field, "is true, on a VM with GPUs", "prove that the driver of the image loads")]


def group(machine_type: str, capacity: str, *, compact: bool) -> list[Finding]:
    found: list[Finding] = []
    if compact and compact_placement().get(series(machine_type)) is False:
        others = ", ".join(name for name, takes in compact_placement().items() if takes)
        message = f"is true, and {machine_type} cannot be placed so"
        found.append(COMPACT.finding("compact_placement", message, f"use a machine of {others}"))
    if capacity == "flex-start":
        fix = "use single VMs, or `accel-jobs submit` to a target of kind gce"
        found.append(GROUP_FLEX.finding("capacity", "is flex-start, in a group", fix))
    return found


def own_keys(labels: Iterable[str], metadata: Iterable[str]) -> list[Finding]:
    found = [
        OWN_KEY.finding(field, f'has "{key}", and keys of {OWN_PREFIX} are the stack\'s own', "rename it")
        for field, keys in (("labels", labels), ("metadata", metadata))
        for key in keys
        if key.startswith(OWN_PREFIX)
    ]
    for key in metadata:
        if instead := _OWN_METADATA.get(key):
            found.append(OWN_KEY.finding("metadata", f'has "{key}", which the stack writes', f"use {instead}"))
    return found

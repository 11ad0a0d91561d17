"""The VMs of a job on Google Batch: tasks per VM, GPUs and drivers, disks, and locations."""

import re
from collections.abc import Mapping, Sequence

from accel.catalog.disks import HYPERDISK, disk_support
from accel.catalog.gke_machines import boot_disks
from accel.catalog.machines import Machine
from accel.catalog.places import known_zones, regions
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

FIT = rule("google-batch.fit")
HEADROOM = rule("google-batch.headroom")
SHARED_GPUS = rule("google-batch.shared-gpus")
IDLE_GPUS = rule("google-batch.idle-gpus")
DRIVERS = rule("google-batch.drivers")
DRIVERS_ALONE = rule("google-batch.drivers-alone")
ACCELERATOR_DRIVERS = rule("google-batch.accelerator-drivers")
ZONE = rule("google-batch.zone")
REGION = rule("google-batch.region")
LOCATION = rule("google-batch.location")
RESERVATION = rule("google-batch.reservation")
TEMPLATE = rule("google-batch.template")
DISK = rule("google-batch.disk")

HEADROOM_PARTS = 16
"""Our own choice: a VM keeps one part in this many of its memory for anything but the job."""
RESERVATION_NAME = re.compile(r"projects/([^/]+)/zones/([^/]+)/reservations/([^/]+)")
_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-([a-z])")
_LOCATION = re.compile(r"(regions|zones)/([a-z0-9-]+)")
_ENOUGH_ZONES = 3
"""Minimum number of zones in a region. If this many are known, no other one-letter name is a zone. Source:
https://docs.cloud.google.com/compute/docs/regions-zones"""


def fit(
    machine: str, vcpus: float, memory_mib: int, cpu_milli: int, task_mib: int, per_vm: int, larger: Sequence[Machine]
) -> list[Finding]:
    """Check `per_vm` tasks on the machine that they share; `larger` machines would hold them."""
    others = [f"{each.name} ({each.vcpus} vCPUs, {each.memory_mib} MiB)" for each in larger[:3]]
    use = f", or use {' or '.join(others)}" if others else ""
    each = f" for each of {per_vm} tasks" if per_vm > 1 else ""
    found: list[Finding] = []
    if cpu_milli * per_vm > vcpus * 1000:
        message = f"is {cpu_milli / 1000:g}{each}, and {machine} has {vcpus:g} vCPUs"
        fix = f"write at most {int(vcpus // per_vm) or 1}{use}"
        found.append(FIT.finding("cpus", message, fix))
    total = task_mib * per_vm
    if total > memory_mib:
        message = f"is {task_mib} MiB{each}, and {machine} has {memory_mib} MiB"
        fix = f"write at most {memory_mib // per_vm}{use}"
        found.append(FIT.finding("memory_mib", message, fix))
    elif total > share(memory_mib, 1):
        message = f"is {task_mib} MiB{each}, which leaves {memory_mib - total} MiB of {machine} to all else"
        fix = f"write at most {share(memory_mib, per_vm)}"
        found.append(HEADROOM.finding("memory_mib", message, fix))
    return found


def share(memory_mib: int, per_vm: int) -> int:
    return memory_mib * (HEADROOM_PARTS - 1) // HEADROOM_PARTS // per_vm


def gpus(machine: str, on_vm: int, of_task: int, per_vm: int) -> list[Finding]:
    if of_task * per_vm > on_vm:
        message = f"is {per_vm} tasks of {of_task} GPUs, and {machine} has {on_vm}"
        return [FIT.finding("tasks_per_vm", message, f"write at most {max(on_vm // max(of_task, 1), 1)}")]
    found: list[Finding] = []
    if of_task and of_task * per_vm < on_vm:
        message = (
            f"is {of_task} for {per_vm} task{'s' * (per_vm > 1)} on {machine}, which has {on_vm}; the rest are idle"
        )
        fix = f"use a machine of {of_task * per_vm} GPUs, or let the tasks of a VM take them (tasks_per_vm)"
        found.append(IDLE_GPUS.finding("accelerator_count", message, fix))
    if per_vm > 1 and on_vm:
        message = f"is {per_vm}, and each of the tasks sees all {on_vm} GPUs of its VM"
        fix = "let each take its own, for example by a lock on a file of a folder that they share"
        found.append(SHARED_GPUS.finding("tasks_per_vm", message, fix))
    return found


def drivers(install: bool | None, gpu_count: int, own_image: bool, field: str = "install_drivers") -> list[Finding]:
    """Check `install`; None: Batch installs the driver if there are GPUs."""
    if install is False and gpu_count and not own_image:
        message = "is false, and no boot image that has a driver is named"
        return [DRIVERS.finding(field, message, "write true, or name a boot_image with the driver")]
    if install and not gpu_count:
        return [
            DRIVERS_ALONE.finding(field, "is true, and the job has no GPUs", "ask for an accelerator, or leave it out")
        ]
    return []


def accelerator_drivers(value: bool | None, field: str = "accelerators[0].installGpuDrivers") -> list[Finding]:
    """Check a deprecated flag, whose replacement is for the entry of instances."""
    if value is None:
        return []
    message = f"is {str(value).lower()}, in a deprecated place"
    return [ACCELERATOR_DRIVERS.finding(field, message, "it is taken for instances[0].installGpuDrivers", value)]


def zones(names: Sequence[str], region: str, field: str = "zones") -> list[Finding]:
    found: list[Finding] = []
    of = {zone: match[1] for zone in names if (match := _ZONE.fullmatch(zone))}
    if len(set(of.values())) > 1:
        message = f"are of {' and '.join(sorted(set(of.values())))}, and a job is in one region"
        return [REGION.finding(field, message, f"keep those of {region}, and submit another job for the others")]
    for i, zone in enumerate(names):
        near = " or ".join(known_zones("gcp", region)) or f"a zone of {region}"
        if zone.startswith("zones/"):
            plain = zone.removeprefix("zones/")
            found.append(
                ZONE.finding(f"{field}[{i}]", f"is {zone}, and a zone is named without zones/", f"use {plain}")
            )
        elif not zone.startswith(f"{region}-"):
            message = f"is {zone}, and the job is in {region}"
            found.append(REGION.finding(f"{field}[{i}]", message, f"use {near}"))
        elif zone in of and zone not in known_zones("gcp", region) and _all_known(region):
            found.append(ZONE.finding(f"{field}[{i}]", f"is {zone}, which does not exist", f"use {near}"))
    return found


def _all_known(region: str) -> bool:
    return len(known_zones("gcp", region)) >= _ENOUGH_ZONES


def locations(names: Sequence[str], region: str, field: str = "allowedLocations") -> tuple[list[str], list[Finding]]:
    """Return the zones, none for the whole region, and the findings."""
    found: list[Finding] = []
    inside: list[str] = []
    for i, name in enumerate(names):
        parts = _LOCATION.fullmatch(name)
        if parts is None:
            message = f'is "{name}", which is no location'
            fix = f"write regions/{region or '<region>'} or zones/{region or '<region>'}-b"
            found.append(LOCATION.finding(f"{field}[{i}]", message, fix))
        elif parts[1] == "zones":
            inside.append(parts[2])
        elif parts[2] != region:
            what = f"is {name}, and the job is in {region}"
            fix = f"write regions/{region}, or submit the job in {parts[2]}"
            known = parts[2] in regions("gcp")
            found.append(REGION.finding(f"{field}[{i}]", what, fix if known else f"write regions/{region}"))
    return inside, found + zones(inside, region, field)


def reservation(
    name: str | None, zones: Sequence[str], capacity: str, *, compact: bool, field: str = "reservation"
) -> list[Finding]:
    if name is None:
        return []
    parts = RESERVATION_NAME.fullmatch(name)
    faults = (
        (parts is None, f'is "{name}"', "write projects/<project>/zones/<zone>/reservations/<reservation>"),
        (capacity != "on-demand", f"is {name}, and the job is {capacity}", "leave one of the two out"),
        (compact, f"is {name}, and compact is true, beside which Batch takes no reservation", "leave compact out"),
        (
            bool(parts and zones and parts[2] not in zones),
            f"is of {parts[2] if parts else ''}, and the job may be in {', '.join(zones)}",
            "name its zone",
        ),
    )
    return [RESERVATION.finding(field, message, fix) for wrong, message, fix in faults if wrong]


def template(name: str, beside: Mapping[str, object]) -> list[Finding]:
    """Check VM settings, by field, that conflict with an instance template. None and false: not requested."""
    return [
        TEMPLATE.finding(
            field,
            f"is for a VM of the job's own, and one without a machine gets those of {name.rpartition('/')[2]}",
            "name a machine_type or an accelerator.type, or leave it out",
        )
        for field, value in beside.items()
        if value
    ]


def disks(names: Sequence[str], types: Sequence[str], machine: str) -> list[Finding]:
    support, boot = disk_support(machine), boot_disks(machine)
    none = bool(boot) and not any(kind.startswith("pd-") for kind in boot)
    found: list[Finding] = []
    for i, (name, kind) in enumerate(zip(names, types, strict=True)):
        if name in names[:i]:
            found.append(DISK.finding(f"disks[{i}].name", f"is {name} a second time", "give each a name of its own"))
        if (none and kind.startswith("pd-")) or (support and kind in HYPERDISK and not support.attaches(kind)):
            takes = support.hyperdisk_types[:2] if support and none else ("pd-balanced", "pd-ssd")
            message = f"is {kind}, which {machine} does not take"
            found.append(DISK.finding(f"disks[{i}].type", message, f"use {' or '.join(takes)}"))
    return found

"""The VMs of a Google Batch job in the terms of a job file: machine, GPUs, drivers, disks, zones."""

from accel.catalog.places import known_zones
from accel.diagnostics.errors import BadInput
from accel.diagnostics.findings import Finding
from accel.rules.batch import jobs, machines
from accel.rules.gcp import gpus as gcp_gpus

from ..backends.google_batch import nodes, sizes
from .fields import RequestFields
from .reading import Json

ALLOCATION = "allocationPolicy"
INSTANCE = f"{ALLOCATION}.instances[0]"
POLICY = f"{INSTANCE}.policy"
GROUP = "taskGroups[0]"


def vms(given: RequestFields, values: Json, block: Json) -> str:
    """Puts what the VMs shall be into the job; the region, if the document tells it."""
    region = _places(given, block)
    machine = given.text(f"{POLICY}.machineType")
    given.keep(f"{POLICY}.machineType", "google_batch.machine_type")
    gpus = _accelerator(given, values, block)
    model = _model(given, values, block)
    if machine:
        machine = _fitting(given, machine, values, block)
        if machine:
            block["machine_type"] = machine
    _drivers(given, machine, gpus, block)
    _disks(given, values, block, machine)
    if reservation := given.text(f"{POLICY}.reservation"):
        block["reservation"] = reservation
        zones = block.get("zones", [])
        compact = given.text(f"{ALLOCATION}.placement.collocation") == "COLLOCATED"
        found = machines.reservation(reservation, zones, model, compact=compact)
        given.report.findings(given.name(f"{POLICY}.reservation"), found)
    given.keep(f"{POLICY}.reservation", "google_batch.reservation")
    if given.text(f"{ALLOCATION}.placement.collocation") == "COLLOCATED":
        block["compact"] = True
        given.keep(f"{ALLOCATION}.placement.collocation", "google_batch.compact")
    given.left_out(f"{INSTANCE}.instanceTemplate", "is the target's, for jobs that name no machine")
    given.left_out(f"{INSTANCE}.blockProjectSshKeys", "is always so here")
    for path in ("network", "serviceAccount", "labels", "tags"):
        given.left_out(f"{ALLOCATION}.{path}", "is the target's")
    _logs(given, values, block)
    return region


def _places(given: RequestFields, block: Json) -> str:
    """The zones that exist, of those that are allowed."""
    path = f"{ALLOCATION}.location.allowedLocations"
    names = given.texts(path)
    given.keep(path, "google_batch.zones")
    if not names:
        return ""
    first = names[0].rpartition("/")[2]
    region = first if names[0].startswith("regions/") else first.rpartition("-")[0]
    inside, found = machines.locations(names, region)
    wrong = {int(finding.field.rpartition("[")[2][:-1]) for finding in found if finding.field.endswith("]")}
    left = [name for index, name in enumerate(names) if index not in wrong]
    if wrong and left and all(finding.rule == machines.ZONE.id for finding in found):
        for finding in found:
            at = int(finding.field.rpartition("[")[2][:-1])
            given.report.changed(given.name(path), left, f"{names[at]} {finding.message}", finding.rule)
        inside = [name.rpartition("/")[2] for name in left if name.startswith("zones/")]
    else:
        given.report.findings(given.name(path), found)
    if inside and sorted(inside) != sorted(known_zones("gcp", region)):
        block["zones"] = inside
    elif inside:
        given.report.note(given.name(path), f"are all that {region} is known to have, so the region stands for them")
    return region


def _accelerator(given: RequestFields, values: Json, block: Json) -> int:
    """The GPUs of a task; how many a VM has."""
    base = f"{POLICY}.accelerators[0]"
    if len(given.items(f"{POLICY}.accelerators")) > 1:
        given.report.refuse(f"{POLICY}.accelerators", "has several entries, and a machine has GPUs of one kind")
    kind, count = given.text(f"{base}.type"), given.whole(f"{base}.count", 1)
    given.keep(f"{base}.type", "accelerator.type")
    given.keep(f"{base}.count", "accelerator.count")
    if version := given.text(f"{base}.driverVersion"):
        block["driver_version"] = version
    given.keep(f"{base}.driverVersion", "google_batch.driver_version")
    if kind is None:
        return 0
    stands = given.report.findings(given.name(f"{base}.type"), gcp_gpus.accelerator_name(kind))
    number = count or 1
    per_vm = int(block.get("tasks_per_vm", 1))
    if number % per_vm:
        given.report.refuse(
            given.name(f"{base}.count"), f"is {number}, which {per_vm} tasks of a VM cannot share evenly"
        )
    if stands:
        given.report.findings(given.name(f"{base}.count"), gcp_gpus.accelerator_count(kind, number))
        values["accelerator"] = {"type": kind, "count": max(number // per_vm, 1)}
    return number


def _model(given: RequestFields, values: Json, block: Json) -> str:
    path = f"{POLICY}.provisioningModel"
    model = given.text(path)
    given.keep(path, "spot")
    for finding in jobs.provisioning(model or ""):
        given.report.findings(given.name(path), [finding])
        model = str(finding.replacement)
    if model == "FLEX_START":
        block["provisioning"] = "flex-start"
        return "flex-start"
    if model == "RESERVATION_BOUND":
        given.report.refuse(
            given.name(path), "is for machines of a future reservation, which a job file does not ask for"
        )
    elif model in ("SPOT", "STANDARD"):
        values["spot"] = model == "SPOT"
    elif model:
        given.report.refuse(given.name(path), "must be STANDARD, SPOT or FLEX_START")
    return "spot" if model == "SPOT" else "on-demand"


def _fitting(given: RequestFields, machine: str, values: Json, block: Json) -> str | None:
    """The machine type; another where the GPUs or the tasks do not fit it; None where it is to be chosen from them."""
    path = given.name(f"{POLICY}.machineType")
    gpu = values.get("accelerator")
    per_vm = int(block.get("tasks_per_vm", 1))
    try:
        size, found, faults = sizes.size_of_machine(
            machine, gpu["type"] if gpu else None, gpu["count"] if gpu else 0, per_vm, []
        )
    except (LookupError, BadInput):
        return machine
    wrong = [finding for finding in found if finding.severity == "reject"]
    if (
        size is None
        and gpu
        and all(finding.field != "machine_type" or "no known" not in finding.message for finding in wrong)
    ):
        for finding in wrong:
            given.report.changed(path, None, f"{finding.text}; chosen from type and number of GPUs", finding.rule)
        return None if wrong else machine
    if size is None:
        given.report.findings(path, wrong)
        for fault in faults:
            given.report.refuse(path, fault.partition(": ")[2])
        return machine
    cpus, memory = int(values.get("cpus", 1)), int(values.get("memory_mib", 1))
    larger = [
        each
        for each in sizes.like(size)
        if each.memory_mib >= memory * per_vm
        and each.vcpus >= cpus * per_vm
        and each.name.split("-")[0] == machine.split("-")[0]
    ]
    for finding in machines.fit(size.name, size.vcpus, size.memory_mib, cpus * 1000, memory, per_vm, larger):
        machine = _larger(given, path, finding, machine, larger[0].name if larger else None)
    return machine


def _larger(given: RequestFields, path: str, finding: Finding, machine: str, other: str | None) -> str:
    if finding.severity == "reject" and other:
        given.report.changed(path, other, f"the task's {finding.field} {finding.text}", finding.rule)
        return other
    given.report.findings(path, [finding])
    return machine


def _drivers(given: RequestFields, machine: str | None, gpus: int, block: Json) -> None:
    path = f"{INSTANCE}.installGpuDrivers"
    old = f"{POLICY}.accelerators[0].installGpuDrivers"
    install = given.flag(path)
    given.keep(path, "google_batch.install_drivers")
    if (before := given.flag(old)) is not None:
        given.report.findings(given.name(old), machines.accelerator_drivers(before))
        install = before if install is None else install
    size = sizes.size_of_machine(machine, None, 0, 1, [])[0] if machine and not gpus else None
    has = gpus or (size.gpus if size else 0)
    own = given.has(f"{POLICY}.bootDisk.image") or given.has(f"{INSTANCE}.instanceTemplate")
    given.report.findings(given.name(path), machines.drivers(install, has, own))
    if install is False and own:
        block["install_drivers"] = False


def _disks(given: RequestFields, values: Json, block: Json, machine: str | None) -> None:
    boot = f"{POLICY}.bootDisk"
    image = given.text(f"{boot}.image")
    # With a list of hosts it is what the platform takes anyway.
    if image and not (image == nodes.BOOT_IMAGE and given.flag(f"{GROUP}.requireHostsFile")):
        block["boot_image"] = image
    given.keep(f"{boot}.image", "google_batch.boot_image")
    if size := given.whole(f"{boot}.sizeGb", 1):
        values["disk_gib"] = max(size, int(values.get("disk_gib", 0)))
    given.keep(f"{boot}.sizeGb", "disk_gib")
    given.left_out(f"{boot}.type", "is chosen by the machine")
    paths: dict[str, str] = block.pop("_devices", {})
    found: list[Json] = []
    for path in given.items(f"{POLICY}.disks"):
        name, gib = given.text(f"{path}.deviceName"), given.whole(f"{path}.newDisk.sizeGb", 1)
        kind = given.text(f"{path}.newDisk.type")
        for each in ("deviceName", "newDisk.sizeGb", "newDisk.type"):
            given.keep(f"{path}.{each}", "google_batch.disks")
        if not name or not gib or name not in paths:
            given.report.refuse(given.name(f"{path}.deviceName"), "is no new disk with a size that a volume mounts")
            continue
        found.append({"name": name, "gib": gib, "path": paths.pop(name), **({"type": kind} if kind else {})})
    for device in paths:
        given.report.refuse("taskGroups[0].taskSpec.volumes", f"mount {device}, and no disk has that name")
    if found:
        block["disks"] = found
        names, types = [each["name"] for each in found], [each.get("type", "pd-balanced") for each in found]
        for finding in machines.disks(names, types, machine or ""):
            given.report.findings(given.name(f"{POLICY}.{finding.field}"), [finding])


def _logs(given: RequestFields, values: Json, block: Json) -> None:
    kind, path = given.text("logsPolicy.destination"), given.text("logsPolicy.logsPath")
    given.keep("logsPolicy.destination", "google_batch.logs_path")
    given.keep("logsPolicy.logsPath", "google_batch.logs_path")
    given.left_out("logsPolicy.cloudLoggingOption", "is Batch's own here")
    if kind not in (None, "CLOUD_LOGGING", "PATH"):
        given.report.refuse(given.name("logsPolicy.destination"), "must be CLOUD_LOGGING or PATH")
    if kind != "PATH" or not path:
        return
    for volume in given.items(f"{GROUP}.taskSpec.volumes"):
        host = given.text(f"{volume}.mountPath") or ""
        index = [*given.items(f"{GROUP}.taskSpec.volumes")].index(volume)
        if path.startswith(host) and index < len(values.get("mounts", [])):
            path = values["mounts"][index]["path"] + path.removeprefix(host)
            break
    block["logs_path"] = path

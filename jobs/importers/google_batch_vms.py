"""Translation of the VMs of a Google Batch job into a job file: machine, GPUs, drivers, disks, zones."""

import re

from accel.catalog.places import known_zones
from accel.diagnostics.errors import BadInput
from accel.diagnostics.findings import Finding
from accel.rules.batch import jobs, machines
from accel.rules.batch import runnables as google_batch_runnables
from accel.rules.gcp import gpus as gcp_gpus

from ..backends import google_machines
from ..backends.google_batch import labels, nodes
from ..backends.google_batch import machines as batch_machines
from ..backends.google_machines import Offer
from .google_batch_fields import ALLOCATION, GROUP, INSTANCE, POLICY, SPEC, BatchFields
from .google_batch_mounts import Storage
from .reading import Json

_SHARED_CORE = re.compile(r"(?:e2-(?:custom-)?(?:micro|small|medium)(?:-\d+)?|f1-micro|g1-small)")
_BATCH_IMAGE = re.compile(r"batch-\w")
_LEAST_MIB = 4
_DEFAULT_MILLI, _DEFAULT_MIB = 2000, 2000
"""Milli-vCPUs and MiB of a task that does not specify them.
Source: the discovery document of batch.v1 (ComputeResource)."""


def resources(given: BatchFields, values: Json) -> None:
    """Take Batch's defaults for the resources of a task that the document omits."""
    base = f"{SPEC}.computeResource"
    cpu, memory = given.whole(f"{base}.cpuMilli", 1), given.whole(f"{base}.memoryMib", 1)
    disk = given.whole(f"{base}.bootDiskMib", 1)
    given.keep(f"{base}.cpuMilli", "cpus")
    given.keep(f"{base}.memoryMib", "memory_mib")
    given.keep(f"{base}.bootDiskMib", "disk_gib")
    machine = _size(given.text(f"{POLICY}.machineType") or "")
    if cpu:
        values["cpus"] = -(-cpu // 1000)
        if cpu % 1000:
            given.report.changed(given.name(f"{base}.cpuMilli"), values["cpus"], "a job file has whole vCPUs")
    elif not given.is_written(f"{base}.cpuMilli"):
        values["cpus"] = min(_DEFAULT_MILLI // 1000, machine.vcpus if machine else _DEFAULT_MILLI)
        why = f"Batch takes {_DEFAULT_MILLI} where nothing is said, a job file the whole machine"
        given.report.keep(f"{base}.cpuMilli", f"cpus: {values['cpus']}", why)
    if memory:
        values["memory_mib"] = max(memory, _LEAST_MIB)
        if memory < _LEAST_MIB:
            given.report.changed(given.name(f"{base}.memoryMib"), _LEAST_MIB, "is less than a job file can say")
    elif not given.is_written(f"{base}.memoryMib"):
        values["memory_mib"] = min(_DEFAULT_MIB, machine.memory_mib if machine else _DEFAULT_MIB)
        why = f"Batch takes {_DEFAULT_MIB} where nothing is said, a job file the whole machine"
        given.report.keep(f"{base}.memoryMib", f"memory_mib: {values['memory_mib']}", why)
    if (shared := values.get("shm_mib", 0)) > values.get("memory_mib", shared):
        values["memory_mib"] = shared
        why = f"shared memory is a part of the task's memory, and has {shared} MiB (--shm-size)"
        given.report.changed(given.name(f"{base}.memoryMib"), shared, why)
    if disk and not given.has(f"{POLICY}.bootDisk.sizeGb"):
        values["disk_gib"] = -(-disk // 1024)
        if disk % 1024:
            given.report.changed(given.name(f"{base}.bootDiskMib"), values["disk_gib"], "a job file has whole GiB")


def _whole_cores(machine: str) -> str:
    """Return the smallest whole-core relative of a shared-core machine type, and any other type as it is."""
    if not _SHARED_CORE.fullmatch(machine):
        return machine
    return "e2-standard-2" if machine.startswith("e2-") else "n1-standard-1"


def _size(machine: str) -> Offer | None:
    try:
        return _offer(_whole_cores(machine)) if machine else None
    except (LookupError, BadInput):
        return None


def _offer(machine: str) -> Offer | None:
    """Return the offer of a machine type, or None if the rules reject it without attached GPUs."""
    faults = batch_machines.check_machine(machine, None, 0, 1)
    return None if _rejected(faults) else batch_machines.offer_by_name(machine, None, 0, 1)


def _rejected(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "reject"]


def vms(given: BatchFields, values: Json, block: Json, storage: Storage) -> str:
    """Put the settings of the VMs into the job. Return the region, or an empty string if the document names none."""
    region = _places(given, block)
    _template(given)
    machine = given.text(f"{POLICY}.machineType")
    given.keep(f"{POLICY}.machineType", "google_batch.machine_type")
    gpus = _accelerator(given, values, block)
    model = _model(given, values, block)
    if machine:
        machine = _fitting(given, machine, values, block)
        if machine:
            block["machine_type"] = machine
    _shared(given, machine, values, gpus)
    _drivers(given, machine, gpus, block)
    _disks(given, values, block, machine, storage)
    _reservation(given, model, block)
    _without_place(given)
    _logs(given, values, block, storage)
    return region


def _template(given: BatchFields) -> None:
    path = f"{INSTANCE}.instanceTemplate"
    if not given.has(path):
        return
    if given.has(POLICY):
        given.refuse(path, "is beside policy, and an entry of instances has one of the two")
    elif given.values.get(f"{ALLOCATION}.labels.{labels.MAKER}") == labels.JOBS:
        given.left_out(path, "is the target's, for jobs that name no machine")
    else:
        why = (
            "says what the VMs are, and a job file cannot name one: write the template's machine and GPUs as policy "
            "(machineType, accelerators), or leave it out, for that of the target (instance_template), which a job "
            "without a machine gets"
        )
        given.report.decide(given.name(path), why)


def _reservation(given: BatchFields, model: str, block: Json) -> None:
    path, collocation = f"{POLICY}.reservation", f"{ALLOCATION}.placement.collocation"
    compact = given.text(collocation)
    if compact == "COLLOCATED":
        block["compact"] = True
        given.keep(collocation, "google_batch.compact")
    elif compact in ("UNSPECIFIED", "COLLOCATION_UNSPECIFIED"):
        given.keep(collocation, why="is so without it")
    elif compact:
        given.report.refuse(given.name(collocation), "must be COLLOCATED or UNSPECIFIED")
    reservation = given.text(path)
    if reservation == "NO_RESERVATION":
        why = (
            "a job file cannot keep VMs out of reservations: those that fit are used, and the target's, if it has one, "
            "unless the job is Spot (spot: true)"
        )
        given.settle(path, why)
    elif reservation:
        block["reservation"] = reservation
        found = machines.reservation(reservation, block.get("zones", []), model, compact=compact == "COLLOCATED")
        given.report.findings(given.name(path), found)
        given.keep(path, "google_batch.reservation")


def _without_place(given: BatchFields) -> None:
    given.left_out(f"{INSTANCE}.blockProjectSshKeys", "is always so here")
    for path in ("network", "serviceAccount", "tags"):
        given.left_out(f"{ALLOCATION}.{path}", "is the target's")
    given.left_out(f"{ALLOCATION}.placement.maxDistance", "is not implemented by Batch")
    if given.is_on(f"{INSTANCE}.installOpsAgent"):
        why = (
            "a job file has no Ops Agent; use a boot image that has it (google_batch.boot_image) if metrics are needed"
        )
        given.settle(f"{INSTANCE}.installOpsAgent", why)
    why = "a job file has no minimum CPU; name a machine of a series that has it (google_batch.machine_type)"
    given.settle(f"{POLICY}.minCpuPlatform", why)
    if given.has(f"{ALLOCATION}.instanceFlexibilityPolicy"):
        why = "a job file names one machine; write it as instances[0].policy.machineType"
        given.refuse(f"{ALLOCATION}.instanceFlexibilityPolicy", why)


def _places(given: BatchFields, block: Json) -> str:
    """Put those of the allowed zones that exist into the job. Return the region."""
    path = f"{ALLOCATION}.location.allowedLocations"
    names = given.texts(path)
    given.keep(
        path, "google_batch.zones" if any(name.startswith("zones/") for name in names) else "the target's region"
    )
    if not names:
        return ""
    first = names[0].rpartition("/")[2]
    region = first if re.fullmatch(r"[a-z]+-[a-z]+\d+", first) else first.rpartition("-")[0]
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
    if inside and any(name.startswith("regions/") for name in names):
        given.report.changed(given.name(path), inside, "has a region beside zones of it; the zones are taken")
    if inside and sorted(inside) != sorted(known_zones("gcp", region)):
        block["zones"] = inside
    elif inside:
        given.report.note(given.name(path), f"are all that {region} is known to have, so the region stands for them")
    return region


def _accelerator(given: BatchFields, values: Json, block: Json) -> int:
    """Put the GPUs of a task into the job. Return the number of GPUs of a VM."""
    base = f"{POLICY}.accelerators[0]"
    if len(given.items(f"{POLICY}.accelerators")) > 1:
        given.report.refuse(f"{POLICY}.accelerators", "has several entries, and a machine has GPUs of one kind")
        for each in given.items(f"{POLICY}.accelerators")[1:]:
            given.refuse(each, "is of a second entry, and a machine has GPUs of one kind")
    kind, count = given.text(f"{base}.type"), given.whole(f"{base}.count", 1)
    given.keep(f"{base}.type", "accelerator.type")
    given.keep(f"{base}.count", "accelerator.count")
    if version := given.text(f"{base}.driverVersion"):
        block["driver_version"] = version
    given.keep(f"{base}.driverVersion", "google_batch.driver_version")
    if kind is None:
        if given.has(base):
            given.report.refuse(given.name(f"{base}.type"), "is missing: GPUs are of a type, such as nvidia-l4")
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


def _model(given: BatchFields, values: Json, block: Json) -> str:
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
    elif model and model != "PROVISIONING_MODEL_UNSPECIFIED":
        given.report.refuse(given.name(path), "must be STANDARD, SPOT or FLEX_START")
    return "spot" if model == "SPOT" else "on-demand"


def _fitting(given: BatchFields, machine: str, values: Json, block: Json) -> str | None:
    """Return a machine type that fits the GPUs and tasks, the given one or another; None if the GPUs determine it."""
    path = given.name(f"{POLICY}.machineType")
    gpu = values.get("accelerator")
    asked, machine = machine, _whole_cores(machine)
    per_vm = int(block.get("tasks_per_vm", 1))
    kind, count = (gpu["type"], gpu["count"]) if gpu else (None, 0)
    try:
        wrong = _rejected(batch_machines.check_machine(machine, kind, count, per_vm))
        size = None if wrong else batch_machines.offer_by_name(machine, kind, count, per_vm)
    except (LookupError, BadInput):
        return machine
    if size and size.gpus < count:
        size = None
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
        if not wrong:
            given.report.refuse(path, google_machines.unknown_type(machine))
        return machine
    cpus, memory = int(values.get("cpus", 1)), int(values.get("memory_mib", 1))
    larger = [
        each
        for each in batch_machines.like(size)
        if each.memory_mib >= memory * per_vm
        and each.vcpus >= cpus * per_vm
        and each.name.split("-")[0] == machine.split("-")[0]
    ]
    for finding in machines.fit(size.name, size.vcpus, size.memory_mib, cpus * 1000, memory, per_vm, larger):
        machine = _larger(given, path, finding, machine, larger[0].name if larger else None)
    if asked != _whole_cores(asked):
        why = f"shares a core with other VMs, and no job here has such a machine; {machine} is the smallest of its kind"
        given.report.decide(path, why, new=machine, is_open=False)
    return machine


def _larger(given: BatchFields, path: str, finding: Finding, machine: str, other: str | None) -> str:
    if finding.severity == "reject" and other:
        given.report.changed(path, other, f"the task's {finding.field} {finding.text}", finding.rule)
        return other
    given.report.findings(path, [finding])
    return machine


def _shared(given: BatchFields, machine: str | None, values: Json, gpus: int) -> None:
    """Report where Batch would let tasks share a VM and its GPUs, of which a job file gives each task its own."""
    path = f"{GROUP}.taskCountPerNode"
    size = _size(machine or "")
    if not gpus or size is None or given.is_written(path) or values.get("tasks", 1) == 1:
        return
    beside = min(size.vcpus // values.get("cpus", 1), size.memory_mib // values.get("memory_mib", 1))
    if beside > 1:
        why = f"as many as {beside} tasks would share a VM and its GPUs, of which here each task has its own"
        given.report.changed(path, 1, why)


def _drivers(given: BatchFields, machine: str | None, gpus: int, block: Json) -> None:
    path = f"{INSTANCE}.installGpuDrivers"
    old = f"{POLICY}.accelerators[0].installGpuDrivers"
    install = given.flag(path)
    if (before := given.flag(old)) is not None:
        given.report.findings(given.name(old), machines.accelerator_drivers(before))
        install = before if install is None else install
    size = _offer(machine) if machine and not gpus else None
    has = gpus or (size.gpus if size else 0)
    image = given.text(f"{POLICY}.bootDisk.image")
    own = bool(image) or given.has(f"{INSTANCE}.instanceTemplate")
    given.keep(path, why="is so where there are GPUs" if install else "")
    stands = given.report.findings(given.name(path), machines.drivers(install, has, own))
    # Without a word of it Batch installs none, and an image of one's own has it.
    if has and own and (install is False or (install is None and not _BATCH_IMAGE.match(image or ""))):
        block["install_drivers"] = False
        given.keep(path, "google_batch.install_drivers")
    elif has and not install and stands:
        given.report.keep(path, "true", "GPUs need their driver, which a job here has installed")


def _disks(given: BatchFields, values: Json, block: Json, machine: str | None, storage: Storage) -> None:
    boot = f"{POLICY}.bootDisk"
    image = given.text(f"{boot}.image")
    ours = given.values.get(f"{ALLOCATION}.labels.{labels.MAKER}") == labels.JOBS
    # With a list of hosts it is what the platform takes anyway.
    if image and not (ours and image == nodes.BOOT_IMAGE and given.flag(f"{GROUP}.requireHostsFile")):
        block["boot_image"] = image
    given.keep(f"{boot}.image", "google_batch.boot_image")
    if size := given.whole(f"{boot}.sizeGb", 1):
        block["boot_disk_gib"] = size
        given.left_out(f"{SPEC}.computeResource.bootDiskMib", "Batch takes bootDisk.sizeGb alone where both are said")
    given.keep(f"{boot}.sizeGb", "google_batch.boot_disk_gib")
    given.left_out(f"{boot}.type", "is chosen by the machine")
    given.left_out(f"{boot}.diskInterface", "is chosen by Batch for a boot disk")
    if given.has(f"{boot}.snapshot"):
        given.refuse(f"{boot}.snapshot", "is not supported by Batch for a boot disk; make an image of it (image)")
    devices = dict(storage.devices)
    found: list[Json] = []
    at: list[str] = []
    for path in given.items(f"{POLICY}.disks"):
        if disk := _disk(given, path, devices, storage):
            found.append(disk)
            at.append(path)
    for device in devices:
        given.report.refuse(f"{SPEC}.volumes", f"mount {device}, and no disk has that name")
    if found:
        block["disks"] = found
        names, types = [each["name"] for each in found], [each.get("type", "pd-balanced") for each in found]
        for finding in machines.disks(names, types, machine or ""):
            index = int(finding.field.partition("[")[2].partition("]")[0])
            name = f"{at[index]}.{'deviceName' if finding.field.endswith('name') else 'newDisk.type'}"
            given.report.findings(given.name(name), [finding])


def _disk(given: BatchFields, path: str, devices: dict[str, str], storage: Storage) -> Json | None:
    """Return a disk of a job file, or None if it is refused. Remove its path from `devices`."""
    name = given.text(f"{path}.deviceName")
    if name in storage.replaced:
        given.left_out(path, "something else was chosen with --mount for its volume")
        return None
    if given.has(f"{path}.existingDisk"):
        devices.pop(name or "", None)
        why = (
            "exists already, and a job file has new disks alone: copy what is on it into a bucket, and import with "
            "--mount <mountPath of its volume>=gs://<bucket>"
        )
        given.refuse(f"{path}.existingDisk", why)
        given.left_out(f"{path}.deviceName", "is of a disk that exists already")
        if given.has(f"{path}.newDisk"):
            given.refuse(f"{path}.newDisk", "is beside existingDisk, and a disk is one of the two")
        return None
    gib, kind = given.whole(f"{path}.newDisk.sizeGb", 1), given.text(f"{path}.newDisk.type")
    for source in ("image", "snapshot"):
        if given.has(f"{path}.newDisk.{source}"):
            why = "a job file has empty disks alone; put what is on it into a bucket, and mount that"
            given.refuse(f"{path}.newDisk.{source}", why)
    interface = given.text(f"{path}.newDisk.diskInterface")
    if interface and kind == "local-ssd" and interface.upper() != "NVME":
        given.settle(f"{path}.newDisk.diskInterface", "local disks of a job file are NVMe")
    else:
        given.left_out(f"{path}.newDisk.diskInterface", "is what Batch chooses by itself")
    if not name or not gib or name not in devices:
        given.refuse(path, "is no new disk with a size that a volume mounts")
        devices.pop(name or "", None)
        return None
    for each in ("deviceName", "newDisk.sizeGb", "newDisk.type"):
        given.keep(f"{path}.{each}", "google_batch.disks")
    if kind is None:
        # The API's own; a job file's is pd-balanced.
        given.report.keep(f"{path}.newDisk.type", "pd-standard", "Batch takes it where nothing is said")
    return {"name": name, "gib": gib, "path": devices.pop(name), "type": kind or "pd-standard"}


def _logs(given: BatchFields, values: Json, block: Json, storage: Storage) -> None:
    name, at = "logsPolicy.destination", "logsPolicy.logsPath"
    kind, path = given.text(name), given.text(at)
    given.left_out("logsPolicy.cloudLoggingOption", "is Batch's own here")
    if kind == "PATH":
        given.keep(name, "google_batch.logs_path")
        given.keep(at, "google_batch.logs_path")
        if not path:
            given.report.refuse(given.name(at), "is missing: PATH is a folder of a volume")
            return
        block["logs_path"] = path = _seen(path, storage)
        writable = [each["path"] for each in values.get("mounts", []) if not each.get("read_only")]
        given.report.findings(given.name(at), google_batch_runnables.logs_path(path, writable))
        return
    given.left_out(at, "is of the destination PATH alone")
    if kind == "CLOUD_LOGGING":
        given.keep(name, why="is where a job's logs go")
    elif kind == "DESTINATION_UNSPECIFIED":
        given.report.changed(given.name(name), "CLOUD_LOGGING", "the logs of a job are kept")
    elif kind:
        given.report.refuse(given.name(name), "must be CLOUD_LOGGING or PATH")


def _seen(path: str, storage: Storage) -> str:
    """Return the path at which a job sees a folder of the VM."""
    plain = path.rstrip("/") or "/"
    inside = [(host, to) for host, to in storage.places if plain == host or plain.startswith(host.rstrip("/") + "/")]
    if not inside:
        return path
    host, to = max(inside, key=lambda each: len(each[0]))
    return (to.rstrip("/") + plain[len(host.rstrip("/")) :]) or "/"

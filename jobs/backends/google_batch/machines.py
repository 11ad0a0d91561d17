"""The VMs that a job gets on Google Batch, and the zones that it may be in."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel.catalog import AmbiguousName, NotOffered, UnknownName, accelerator
from accel.catalog.gke_machines import boot_disks, series
from accel.catalog.machines import NoMachine
from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.batch import machines
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.gcp import zones as gcp_zones

from ...model.blocks_google import GoogleBatch
from ...model.job import Job
from . import sizes
from .sizes import Size

_FIELDS = {
    "machine_type": "google_batch.machine_type",
    "accelerator": "accelerator.type",
    "accelerator_count": "accelerator.count",
    "tasks_per_vm": "google_batch.tasks_per_vm",
    "compact_placement": "google_batch.compact",
    "install_drivers": "google_batch.install_drivers",
    "reservation": "google_batch.reservation",
}
"""The rules' names of fields, as a job file has them."""


@dataclass(frozen=True)
class BatchChoice:
    """What is asked for. `machine` is None where `template` says what it is; `attached` is the type of GPUs that are
    not built in; `gpus` those of a VM, `per_vm` its tasks; `zones` is empty where the whole region will do."""

    machine: str | None
    template: str | None
    gpus: int
    accelerator: str | None
    attached: str | None
    cpu_milli: int | None
    memory_mib: int | None
    per_vm: int | None
    zones: tuple[str, ...]
    capacity: str
    disk_type: str | None
    reservation: str | None

    @property
    def spot(self) -> bool:
        return self.capacity == "spot"


def choose(job: Job, target: GoogleBatchTarget, diagnostics: Diagnostics) -> BatchChoice | None:
    """None where `diagnostics` got the reason; others are added to it too."""
    block = job.google_batch or GoogleBatch()
    capacity = "flex-start" if block.provisioning else "spot" if job.spot else "on-demand"
    before = len(diagnostics.errors)
    diagnostics.add(machines.zones(block.zones, target.region))
    if block.zones and target.zones:
        outside = [zone for zone in block.zones if zone not in target.zones and zone.startswith(target.region)]
        diagnostics.errors += [
            f"google_batch.zones: {zone} is none of the target's: {', '.join(target.zones)}" for zone in outside
        ]
    if job.nodes > 1 and block.tasks_per_vm not in (None, 1):
        diagnostics.error(f"google_batch.tasks_per_vm: is {block.tasks_per_vm}, and each of {job.nodes} nodes is a VM")
    if template := _template(job, block, target):
        return _templated(job, block, target, template, diagnostics) if len(diagnostics.errors) == before else None
    candidates = _candidates(job, block, target, diagnostics)
    per_vm = _per_vm(job, block, candidates)
    found = _fitting(job, block, candidates, per_vm, target, diagnostics) if candidates else None
    if found is None or len(diagnostics.errors) > before:
        return None
    return _chosen(job, block, target, found, per_vm, capacity, diagnostics)


def field_name(field: str) -> str:
    """Return the job file's name for a field of the rules."""
    block = ("zones", "disks", "logs_path", "exit_codes", "runnables", "docker_options", "in_order", "boot_image")
    head = field.partition("[")[0].partition(".")[0]
    return f"google_batch.{field}" if head in block else _FIELDS.get(field, field)


def _template(job: Job, block: GoogleBatch, target: GoogleBatchTarget) -> str | None:
    """The target's, for a job that names no machine."""
    names = block.machine_type or (job.accelerator and job.accelerator.type)
    return None if names else target.instance_template


def _templated(
    job: Job, block: GoogleBatch, target: GoogleBatchTarget, template: str, diagnostics: Diagnostics
) -> BatchChoice | None:
    beside = {
        "spot": job.spot,
        "google_batch.provisioning": block.provisioning,
        "google_batch.reservation": block.reservation,
        "google_batch.driver_version": block.driver_version,
        "google_batch.boot_image": block.boot_image,
        "google_batch.disks": block.disks,
    }
    if not diagnostics.add_errors(machines.template(template, beside)):
        return None
    return BatchChoice(
        machine=None,
        template=template,
        gpus=job.accelerator.count if job.accelerator else 0,
        accelerator=None,
        attached=None,
        cpu_milli=job.cpus * 1000 if job.cpus else None,
        memory_mib=job.memory_mib,
        per_vm=1 if job.nodes > 1 else block.tasks_per_vm or (1 if job.accelerator else None),
        zones=tuple(block.zones or target.zones),
        capacity="on-demand",
        disk_type=None,
        reservation=None,
    )


def _candidates(job: Job, block: GoogleBatch, target: GoogleBatchTarget, diagnostics: Diagnostics) -> list[Size]:
    """The machines that have the job's GPUs, the smaller first."""
    wanted = job.accelerator
    if wanted and wanted.type:
        findings = gcp_gpus.accelerator_name(wanted.type)
        if not diagnostics.add(findings):
            return []
        if accelerator(wanted.type).is_tpu:
            diagnostics.error(f"accelerator.type: {wanted.type} is a TPU; submit to a target of kind tpu-vm or gke")
            return []
    if block.machine_type:
        found, findings, said = sizes.size_of_machine(
            block.machine_type,
            wanted.type if wanted else None,
            wanted.count if wanted else 0,
            block.tasks_per_vm or 1,
            target.machine_types,
        )
        diagnostics.add(findings)
        diagnostics.errors += said
        return [found] if found else []
    if wanted and wanted.type:
        try:
            having = sizes.with_gpus(wanted.type, wanted.count * (block.tasks_per_vm or 1))
        except (NoMachine, AmbiguousName, NotOffered, UnknownName) as error:
            diagnostics.error(f"accelerator.count: {error}")
            return []
        return _allowed(having, target, f"{wanted.count} {wanted.type}", diagnostics)
    if wanted and not target.machine_types:
        diagnostics.error(
            "accelerator.type: is missing, and so is google_batch.machine_type; the target has machines of every type"
        )
        return []
    having = sizes.of_target(target.machine_types) if target.machine_types else sizes.cpu_machines()
    fitting = [each for each in having if each.gpus == (wanted.count if wanted else 0)] or (
        having if not wanted else []
    )
    if not fitting:
        what = f"{wanted.count if wanted else 0} GPUs"
        diagnostics.error(f"accelerator: no machine of the target has {what}: {', '.join(target.machine_types)}")
    return fitting


def _allowed(having: list[Size], target: GoogleBatchTarget, what: str, diagnostics: Diagnostics) -> list[Size]:
    found = [each for each in having if not target.machine_types or each.name in target.machine_types]
    if not found:
        names = ", ".join(each.name for each in having[:6])
        diagnostics.error(f"accelerator: {what} are in {names}; the target has {', '.join(target.machine_types)}")
    return found


def _per_vm(job: Job, block: GoogleBatch, candidates: Sequence[Size]) -> int | None:
    """Tasks of a VM. Batch packs them by vCPUs and memory alone, so that two would share a GPU."""
    if job.nodes > 1:
        return 1
    return block.tasks_per_vm or (1 if any(each.gpus for each in candidates) else None)


def _fitting(
    job: Job,
    block: GoogleBatch,
    candidates: Sequence[Size],
    per_vm: int | None,
    target: GoogleBatchTarget,
    diagnostics: Diagnostics,
) -> Size | None:
    """The smallest that holds the job's tasks and something beside them, of those that the region is known to have if
    there are such."""
    tasks = per_vm or 1
    cpu_milli = (job.cpus or sizes.cpus(candidates[0], named=block.machine_type is not None)) * 1000 * tasks
    memory_mib = (job.memory_mib or 0) * tasks
    holding = [each for each in candidates if each.vcpus * 1000 >= cpu_milli and each.memory_mib >= memory_mib]
    if not holding:
        largest = max(candidates, key=lambda each: (each.memory_mib, each.vcpus))
        larger = [
            each for each in sizes.like(largest) if each.memory_mib >= memory_mib and each.vcpus * 1000 >= cpu_milli
        ]
        per_task = (job.cpus or 1) * 1000
        diagnostics.add(
            machines.fit(largest.name, largest.vcpus, largest.memory_mib, per_task, job.memory_mib or 1, tasks, larger)
        )
        return None
    roomy = [each for each in holding if machines.share(each.memory_mib, 1) >= memory_mib] or holding
    here = [each for each in roomy if target.region in each.places] or roomy
    return min(here, key=lambda each: (each.vcpus, _rank(each.name), each.memory_mib, -len(each.places)))


def _rank(machine: str) -> int:
    """Of machines as large, E2 is the first and N1 the last: a choice of ours, by what they cost."""
    return {"e2": -1, "n1": 1}.get(series(machine), 0)


def _chosen(
    job: Job,
    block: GoogleBatch,
    target: GoogleBatchTarget,
    found: Size,
    per_vm: int | None,
    capacity: str,
    diagnostics: Diagnostics,
) -> BatchChoice | None:
    tasks = per_vm or 1
    cpu_milli = job.cpus * 1000 if job.cpus else max(int(found.vcpus * 1000 // tasks), 1)
    memory_mib = job.memory_mib or machines.share(found.memory_mib, tasks)
    reservation = block.reservation or (target.reservation if capacity == "on-demand" else None)
    findings = machines.fit(found.name, found.vcpus, found.memory_mib, cpu_milli, memory_mib, tasks, ())
    if found.gpus:
        of_task = job.accelerator.count if job.accelerator else found.gpus
        findings += machines.gpus(found.name, found.gpus, of_task, tasks)
        findings += gcp_gpus.small_a3(found.name, capacity, "spot")
        findings += gcp_gpus.scarce(found.name, "reserved" if reservation else capacity, "spot")
    findings += vms.group(found.name, "on-demand", compact=block.compact)
    zones, said = _zones(found, block, target)
    findings += said + machines.reservation(reservation, zones, capacity, compact=block.compact)
    if reservation and (named := machines.RESERVATION_NAME.fullmatch(reservation)):
        zones = [named[2]]
    names, types = [disk.name for disk in block.disks], [disk.type for disk in block.disks]
    findings += machines.disks(names, types, found.name)
    if not diagnostics.add(findings):
        return None
    return BatchChoice(
        machine=found.name,
        template=None,
        gpus=found.gpus,
        accelerator=found.accelerator,
        attached=found.accelerator if found.attached else None,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        per_vm=per_vm,
        zones=tuple(zones),
        capacity=capacity,
        disk_type=_disk_type(found.name),
        reservation=reservation,
    )


def _zones(found: Size, block: GoogleBatch, target: GoogleBatchTarget) -> tuple[list[str], list[Finding]]:
    """Zones that a job names are asked, whatever the catalogue says of them; of the target's or the region's, those
    that have the machine: Batch fails where one does not. Source:
    https://github.com/nextflow-io/nextflow/issues/5550"""
    places = found.places
    if block.zones:
        known = [zone for zones in places.values() for zone in zones]
        said = [gcp_zones.zone(zone, found.name, known, field=f"zones[{i}]") for i, zone in enumerate(block.zones)]
        return list(dict.fromkeys(block.zones)), [finding for findings in said for finding in findings]
    if target.zones:
        return gpu_vm_jobs.zones(target.zones, found.name, places)
    if places and target.region not in places:
        message = f"are all of {target.region}, where {found.name} is not known to be"
        return [], [gpu_vm_jobs.ZONES.finding("zones", message, "make sure that it is, or ask for another machine")]
    return list(places.get(target.region, ())), []


def _disk_type(machine: str) -> str | None:
    """Batch's own, or one that the machine takes. Source: the discovery document of batch.v1 (Disk.type)."""
    allowed = boot_disks(machine)
    if not allowed or "pd-balanced" in allowed:
        return None
    return "hyperdisk-balanced" if "hyperdisk-balanced" in allowed else allowed[0]

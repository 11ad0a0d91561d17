"""Choice of a job's VMs on Google Batch, and of their zones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accel.catalog import Machine, accelerator
from accel.catalog.gke_machines import boot_disks, node_machine, series
from accel.catalog.gpu_attachments import n1
from accel.contract.google_jobs import GoogleBatchTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.batch import machines
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import zones as gcp_zones

from ...model.blocks_google import GoogleBatch
from ...model.job import Job
from .. import chooser, google_machines
from ..chooser import Requirement
from ..google_machines import Need, Offer

VCPUS = 2
"""vCPUs of a task, if a job does not say: Batch's own default of cpuMilli. Source: the discovery document of batch.v1
(ComputeResource.cpuMilli)."""
_CUSTOM = re.compile(r"([a-z0-9]+)-custom-(\d{1,3})-(\d{3,7})(-ext)?", re.ASCII)
_FIELDS = {
    "machine_type": "google_batch.machine_type",
    "accelerator": "accelerator.type",
    "accelerator_count": "accelerator.count",
    "tasks_per_vm": "google_batch.tasks_per_vm",
    "compact_placement": "google_batch.compact",
    "install_drivers": "google_batch.install_drivers",
    "reservation": "google_batch.reservation",
}
"""The job file's names for the rules' fields."""


@dataclass(frozen=True)
class BatchChoice:
    """VMs of a job. `machine` is None if `template` determines it; `attached` is the type of GPUs that are not built
    in; `gpus` are those of a VM, `per_vm` its tasks; `zones` is empty if the whole region will do."""

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
    """Add to `diagnostics` what rules machines out; return None if nothing is left."""
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
    need = Need(block.machine_type, job.accelerator, job.cpus, job.memory_mib, target.machine_types)
    offers = _offers(need, block.tasks_per_vm or 1, diagnostics)
    per_vm = _per_vm(job, block, offers)
    offer = _machine(need, offers, per_vm or 1, target.region, diagnostics) if offers else None
    if offer is None or len(diagnostics.errors) > before:
        return None
    return _choice(job, block, target, offer, per_vm, capacity, diagnostics)


def field_name(field: str) -> str:
    block = ("zones", "disks", "logs_path", "exit_codes", "runnables", "docker_options", "in_order", "boot_image")
    head = field.partition("[")[0].partition(".")[0]
    return f"google_batch.{field}" if head in block else _FIELDS.get(field, field)


def _template(job: Job, block: GoogleBatch, target: GoogleBatchTarget) -> str | None:
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
        "google_batch.boot_disk_gib": block.boot_disk_gib,
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


def _offers(need: Need, per_vm: int, diagnostics: Diagnostics) -> list[Offer]:
    if not google_machines.check_gpu(need, "tpu-vm or gke", diagnostics):
        return []
    if need.machine_type:
        return _by_name(need, need.machine_type, per_vm, diagnostics)
    if need.gpu:
        return google_machines.list_gpu_offers(need, (need.gpus or 1) * per_vm, diagnostics)
    if need.target_types:
        return google_machines.list_target_offers(need, offer_of, diagnostics)
    if need.gpus is not None:
        diagnostics.error(
            "accelerator.type: is missing, and so is google_batch.machine_type; the target has machines of every type"
        )
        return []
    return google_machines.cpu_offers()


def _by_name(need: Need, name: str, per_vm: int, diagnostics: Diagnostics) -> list[Offer]:
    count = need.gpus or 0
    if not google_machines.check_target_type(need, diagnostics):
        return []
    if not diagnostics.add(check_machine(name, need.gpu, count, per_vm)):
        return []
    offer = offer_by_name(name, need.gpu, count, per_vm)
    if offer is None:
        diagnostics.reject("machine_type", google_machines.unknown_type(name))
    elif count > offer.gpus and not n1(name):
        google_machines.reject_count(offer, need, diagnostics)
    else:
        return [offer]
    return []


def offer_by_name(name: str, kind: str | None, count: int, per_vm: int) -> Offer | None:
    """Return a machine type, on N1 with `count` GPUs for each of `per_vm` tasks; None if its size is unknown."""
    return google_machines.n1_offer(name, kind, count * per_vm) or offer_of(name)


def check_machine(name: str, kind: str | None, count: int, per_vm: int) -> list[Finding]:
    host = n1(name)
    findings = gcp_machines.machine(name, kind, count * per_vm if host and kind else None)
    offer = None if host or any(each.severity == "reject" for each in findings) else offer_of(name)
    if offer is None or not 0 < offer.gpus < count:
        return findings
    # The rule names the machines that have that many.
    return findings + gcp_machines.machine(name, kind, count)


def offer_of(name: str) -> Offer | None:
    if custom := _CUSTOM.fullmatch(name):
        return Offer(name, int(custom[2]), int(custom[3]))
    return google_machines.offer_of(name)


def like(offer: Offer) -> list[Machine]:
    """Return the machines with the same GPUs, or without GPUs the larger ones, smallest first."""
    if not offer.gpu:
        larger = [
            each
            for each in google_machines.cpu_offers()
            if each.memory_mib > offer.memory_mib or each.vcpus > offer.vcpus
        ]
    else:
        same = google_machines.gpu_offers(offer.gpu, offer.gpus)
        larger = sorted(same, key=lambda each: (each.memory_mib, each.vcpus))
    return [node_machine(each.name) for each in larger]


def _per_vm(job: Job, block: GoogleBatch, offers: Sequence[Offer]) -> int | None:
    """Return the number of tasks on a VM. Batch packs them by vCPUs and memory alone, so that two would share a GPU."""
    if job.nodes > 1:
        return 1
    return block.tasks_per_vm or (1 if any(each.gpus for each in offers) else None)


def _machine(need: Need, offers: Sequence[Offer], tasks: int, region: str, diagnostics: Diagnostics) -> Offer | None:
    """Return the smallest that holds a VM's tasks with some spare room, preferably one known to be in the region."""
    memory_mib = (need.memory_mib or 0) * tasks
    vm = replace(need, cpus=(need.cpus or 1) * tasks, memory_mib=memory_mib)
    cpus = (need.cpus or _task_cpus(need, offers[0])) * tasks

    def fault(left: Sequence[Offer]) -> list[Finding]:
        largest = max(left, key=lambda each: (each.memory_mib, each.vcpus))
        larger = [each for each in like(largest) if each.memory_mib >= memory_mib and each.vcpus >= cpus]
        task = (need.cpus or 1) * 1000, need.memory_mib or 1
        return machines.fit(largest.name, largest.vcpus, largest.memory_mib, *task, tasks, larger)

    def fast(offer: Offer) -> bool:
        return offer.vcpus >= cpus

    def roomy(offer: Offer) -> bool:
        return machines.share(offer.memory_mib, 1) >= memory_mib

    def near(offer: Offer) -> bool:
        return region in offer.places

    requirements = google_machines.of_target(need, "accelerator"), Requirement("cpus", vm.holds, fault)
    return chooser.choose(offers, requirements, (fast, roomy, near), _rank, diagnostics)


def _task_cpus(need: Need, offer: Offer) -> int:
    """Return the worthwhile vCPUs for a task that does not say. A machine named by the job is used as it is."""
    if need.machine_type:
        return 1
    return google_machines.VCPUS_A_GPU * offer.gpus if offer.attached else 1 if offer.gpus else VCPUS


def _rank(offer: Offer) -> tuple[int, ...]:
    """Rank machines of the same size, E2 first and N1 last: our choice, by price."""
    return offer.vcpus, {"e2": -1, "n1": 1}.get(series(offer.name), 0), offer.memory_mib, -len(offer.places)


def _choice(
    job: Job,
    block: GoogleBatch,
    target: GoogleBatchTarget,
    offer: Offer,
    per_vm: int | None,
    capacity: str,
    diagnostics: Diagnostics,
) -> BatchChoice | None:
    tasks = per_vm or 1
    cpu_milli = job.cpus * 1000 if job.cpus else max(int(offer.vcpus * 1000 // tasks), 1)
    memory_mib = job.memory_mib or machines.share(offer.memory_mib, tasks)
    reservation = block.reservation or (target.reservation if capacity == "on-demand" else None)
    findings = machines.fit(offer.name, offer.vcpus, offer.memory_mib, cpu_milli, memory_mib, tasks, ())
    if offer.gpus:
        of_task = job.accelerator.count if job.accelerator else offer.gpus
        findings += machines.gpus(offer.name, offer.gpus, of_task, tasks)
        findings += gcp_gpus.small_a3(offer.name, capacity, "spot")
        findings += gcp_gpus.scarce(offer.name, "reserved" if reservation else capacity, "spot")
    findings += vms.group(offer.name, "on-demand", compact=block.compact)
    zones, of_zones = _zones(offer, block, target)
    findings += of_zones + machines.reservation(reservation, zones, capacity, compact=block.compact)
    if reservation and (named := machines.RESERVATION_NAME.fullmatch(reservation)):
        zones = [named[2]]
    kind = accelerator(offer.gpu).gcp_type if offer.gpu else None
    names, types = [disk.name for disk in block.disks], [disk.type for disk in block.disks]
    findings += machines.disks(names, types, offer.name)
    if not diagnostics.add(findings):
        return None
    return BatchChoice(
        machine=offer.name,
        template=None,
        gpus=offer.gpus,
        accelerator=kind,
        attached=kind if offer.attached else None,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        per_vm=per_vm,
        zones=tuple(zones),
        capacity=capacity,
        disk_type=_disk_type(offer.name),
        reservation=reservation,
    )


def _zones(offer: Offer, block: GoogleBatch, target: GoogleBatchTarget) -> tuple[list[str], list[Finding]]:
    """Try all zones that a job names, whatever the catalogue says. Limit the target's or the region's to those that
    have the machine: Batch fails if one does not. Source: https://github.com/nextflow-io/nextflow/issues/5550"""
    places = offer.places
    if block.zones:
        known = [zone for zones in places.values() for zone in zones]
        said = [gcp_zones.zone(zone, offer.name, known, field=f"zones[{i}]") for i, zone in enumerate(block.zones)]
        return list(dict.fromkeys(block.zones)), [finding for findings in said for finding in findings]
    if target.zones:
        return gpu_vm_jobs.zones(target.zones, offer.name, places)
    if places and target.region not in places:
        message = f"are all of {target.region}, where {offer.name} is not known to be"
        return [], [gpu_vm_jobs.ZONES.finding("zones", message, "make sure that it is, or ask for another machine")]
    return list(places.get(target.region, ())), []


def _disk_type(machine: str) -> str | None:
    """Return a type that the machine accepts; None: Batch's own. Source: discovery document of batch.v1 (Disk.type)."""
    allowed = boot_disks(machine)
    if not allowed or "pd-balanced" in allowed:
        return None
    return "hyperdisk-balanced" if "hyperdisk-balanced" in allowed else allowed[0]

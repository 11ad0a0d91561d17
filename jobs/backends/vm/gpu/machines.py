"""The machine that a job gets, and the zones that it asks in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel.catalog import AmbiguousName, NotOffered, UnknownName, accelerator
from accel.catalog import machine as machine_named
from accel.catalog.attached import attached, n1
from accel.catalog.gke_machines import boot_disks
from accel.catalog.machines import Machine, NoMachine, hosts, machines, machines_for
from accel.catalog.places import where
from accel.contract.google_vms import GceTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import did_you_mean
from accel.rules import Finding
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import zones as gcp_zones

from ....model.blocks import Gce
from ....model.job import Job
from .. import agent_spec

VCPUS_A_GPU = 4
"""Of an N1 machine, where a job does not say: a choice of ours, a vCPU less than the smallest G2 has a GPU."""
_RESERVATION = re.compile(r"projects/([^/]+)/(?:zones|locations)/([^/]+)/reservations/([^/]+)")
_POLICY = re.compile(r"projects/[^/]+/regions/([^/]+)/resourcePolicies/([^/]+)")
FIELDS = {
    "machine_type": "gce.machine_type",
    "accelerator": "accelerator.type",
    "accelerator_count": "accelerator.count",
    "provisioning": "gce.provisioning",
    "notice_s": "gce.notice_s",
    "preemption_notice_s": "gce.notice_s",
    "max_run": "gce.max_run",
    "zones": "gce.zones",
}
"""The rules' names of fields, as a job file has them."""


@dataclass(frozen=True)
class VmChoice:
    """What is asked for. `attached` is the type of GPUs that are not built in."""

    machine: str
    gpus: int
    attached: str | None
    zones: Sequence[str]
    subnetworks: dict[str, str]
    capacity: str
    disk_type: str
    reservation: str | None
    placement: str | None

    @property
    def spot(self) -> bool:
        return self.capacity == "spot"


@dataclass(frozen=True)
class _Candidate:
    """A machine type, and the GPUs on it."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    attached: str | None = None

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The zones by region that are known to have it."""
        try:
            return where("gcp", f"n1+{self.attached}x{self.gpus}" if self.attached else self.name)
        except UnknownName:
            return {}


def choose(job: Job, target: GceTarget, diagnostics: Diagnostics) -> VmChoice | None:
    """None where `diagnostics` got the reason; others are added to it too."""
    block = job.gce or Gce()
    zones = agent_spec.zones("gce", block.zones, target, diagnostics)
    capacity = "flex-start" if block.provisioning else "spot" if job.spot else "on-demand"
    candidates = _candidates(job, block, target, diagnostics)
    found = _fitting(job, candidates, zones, diagnostics) if candidates else None
    if found is None or not zones:
        return None
    if found.gpus:
        diagnostics.add(gcp_gpus.small_a3(found.name, capacity, "spot"))
        diagnostics.add(gcp_gpus.scarce(found.name, "reserved" if target.reservation else capacity, "spot"))
    zones, said = _having(found, zones, block)
    diagnostics.add_warnings(said)
    reservation = target.reservation if capacity == "on-demand" else None
    zones, reservation = _of_reservation(reservation, target.project, zones, diagnostics)
    placement = target.placement if job.nodes > 1 else None
    diagnostics.add(vms.group(found.name, "on-demand", compact=placement is not None))
    zones, placement = _of_policy(placement, zones, diagnostics)
    return VmChoice(
        machine=found.name,
        gpus=found.gpus,
        attached=found.attached,
        zones=zones,
        subnetworks=agent_spec.subnetworks("gce", zones, target, diagnostics),
        capacity=capacity,
        disk_type=_disk_type(found.name, target, diagnostics),
        reservation=reservation,
        placement=placement,
    )


def _candidates(job: Job, block: Gce, target: GceTarget, diagnostics: Diagnostics) -> list[_Candidate]:
    """The machines that have the job's GPUs, the smaller first."""
    wanted = job.accelerator
    if wanted and wanted.type:
        findings = gcp_gpus.accelerator_name(wanted.type)
        if not diagnostics.add(findings):
            return []
        if accelerator(wanted.type).is_tpu:
            diagnostics.error(f"accelerator.type: {wanted.type} is a TPU; submit to a target of kind tpu-vm")
            return []
    if block.machine_type:
        return _given(job, block.machine_type, target, diagnostics)
    if wanted and wanted.type:
        return _with_gpus(wanted.type, wanted.count, target, diagnostics)
    if not target.machine_types:
        what = "accelerator.type" if wanted else "accelerator"
        diagnostics.error(f"{what}: is missing, and so is gce.machine_type; the target has machines of every type")
        return []
    sizes = {each.name: each for each in machines("gcp")}
    known = [_of(sizes[name]) for name in target.machine_types if name in sizes and not n1(name)]
    having = [each for each in known if each.gpus == (wanted.count if wanted else 0)]
    if not having and wanted is None:
        having = known  # a job that asks for no GPU gets what the machine has, as on a queue of AWS Batch
    found = sorted(having, key=lambda each: (each.vcpus, each.memory_mib))
    if not found:
        message = (
            f"no machine of the target has {wanted.count if wanted else 0} GPUs: {', '.join(target.machine_types)}"
        )
        diagnostics.error(f"accelerator: {message}")
    return found


def _given(job: Job, name: str, target: GceTarget, diagnostics: Diagnostics) -> list[_Candidate]:
    """The machine that the job names, with the GPUs that it asks for."""
    if target.machine_types and name not in target.machine_types:
        near = did_you_mean(name, target.machine_types)
        diagnostics.error(f'gce.machine_type: "{name}" is none of the target\'s machine types{near}')
        return []
    kind, count = (job.accelerator.type, job.accelerator.count) if job.accelerator else (None, None)
    if not diagnostics.add_errors(gcp_machines.machine(name, kind, count)):
        return []
    if size := n1(name):
        gpu = accelerator(kind).name if kind else None
        return [_Candidate(name, size.vcpus, int(size.memory_gib * 1024), (count or 0) if gpu else 0, gpu)]
    try:
        found = _of(machine_named("gcp", name))
    except UnknownName as unknown:
        diagnostics.error(f"gce.machine_type: {unknown}")
        return []
    if job.accelerator and found.gpus != job.accelerator.count:
        diagnostics.error(f"accelerator.count: is {job.accelerator.count}, and {name} has {found.gpus} GPUs")
        return []
    return [found]


def _with_gpus(kind: str, count: int, target: GceTarget, diagnostics: Diagnostics) -> list[_Candidate]:
    try:
        having = machines_for(kind, count, "gcp")
    except (NoMachine, AmbiguousName, NotOffered, UnknownName) as error:
        diagnostics.error(f"accelerator.count: {error}")
        return []
    found: list[_Candidate] = []
    for each in having:
        if not each.is_attachment:
            found.append(_of(each))
            continue
        limits = attached()[each.accelerator][count]
        found += [
            _Candidate(host.name, host.vcpus, host.memory_mib, count, each.accelerator)
            for host in hosts(each)
            if host.vcpus >= limits.vcpus_min and host.memory_mib >= limits.memory_gib_min * 1024
        ]
    allowed = [each for each in found if not target.machine_types or each.name in target.machine_types]
    if not allowed:
        diagnostics.error(
            f"accelerator: {count} {kind} are in {', '.join(each.name for each in found[:6])}; "
            f"the target has {', '.join(target.machine_types)}"
        )
    return allowed


def _of(machine: Machine) -> _Candidate:
    return _Candidate(machine.name, machine.vcpus, machine.memory_mib, machine.whole_accelerators)


def _fitting(job: Job, candidates: list[_Candidate], zones: list[str], diagnostics: Diagnostics) -> _Candidate | None:
    """The smallest that holds the job, of those that a zone is known to offer if there are such; of several as small
    the one that is to be had in most places: variants for the edge, or without local disks, are not."""
    found = [
        each
        for each in candidates
        if each.memory_mib >= (job.memory_mib or 0)
        and each.vcpus >= (job.cpus or (VCPUS_A_GPU * each.gpus if each.attached and not _names(job) else 0))
    ]
    if not found:
        largest = max(candidates, key=lambda each: (each.vcpus, each.memory_mib))
        asked = {"cpus": job.cpus, "memory_mib": job.memory_mib}
        diagnostics.add_errors(gpu_vm_jobs.fit(asked, largest.name, largest.vcpus, largest.memory_mib))
        return None
    offered = [each for each in found if any(gpu_vm_jobs.offers(each.places, zone) for zone in zones)]
    return min(offered or found, key=lambda each: (each.vcpus, each.memory_mib, -_spread(each)))


def _spread(candidate: _Candidate) -> int:
    return sum(max(1, len(zones)) for zones in candidate.places.values())


def _names(job: Job) -> bool:
    return bool(job.gce and job.gce.machine_type)


def _having(found: _Candidate, zones: list[str], block: Gce) -> tuple[list[str], list[Finding]]:
    """Zones that a job names are asked, whatever the catalogue says of them; of the target's, those that have it."""
    if not block.zones:
        return gpu_vm_jobs.zones(zones, found.name, found.places)
    offered = [zone for known in found.places.values() for zone in known]
    said = [gcp_zones.zone(zone, found.name, offered, field=f"gce.zones[{i}]") for i, zone in enumerate(zones)]
    return zones, [finding for findings in said for finding in findings]


def _of_reservation(
    given: str | None, project: str, zones: list[str], diagnostics: Diagnostics
) -> tuple[list[str], str | None]:
    """The zones of a reservation, which by its whole name is of one; and how an instance names it."""
    named = _RESERVATION.fullmatch(given or "")
    if named is None:
        return zones, given
    if named[2] not in zones:
        diagnostics.error(f"gce.zones: are {', '.join(zones)}, and the target's reservation is of {named[2]}")
    value = named[3] if named[1] == project else f"projects/{named[1]}/reservations/{named[3]}"
    return [named[2]], value


def _of_policy(given: str | None, zones: list[str], diagnostics: Diagnostics) -> tuple[list[str], str | None]:
    """The zones of a placement policy, which is of a region; and its name, as a template takes it."""
    named = _POLICY.fullmatch(given or "")
    if named is None:
        return zones, given
    inside = [zone for zone in zones if zone.rpartition("-")[0] == named[1]]
    if not inside:
        diagnostics.error(f"gce.zones: are {', '.join(zones)}, and the target's placement policy is of {named[1]}")
    return inside or zones, named[2]


def _disk_type(machine: str, target: GceTarget, diagnostics: Diagnostics) -> str:
    """The target's, or one that the machine takes."""
    allowed = boot_disks(machine)
    if not allowed or target.disk_type in allowed:
        return target.disk_type
    found = "hyperdisk-balanced" if "hyperdisk-balanced" in allowed else allowed[0]
    diagnostics.warning(f"disk_gib: {machine} takes no {target.disk_type} of the target; it gets {found}")
    return found

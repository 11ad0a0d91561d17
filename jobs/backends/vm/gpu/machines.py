"""Choice of a job's machine, and of the zones in which to request it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel.catalog.gke_machines import boot_disks
from accel.catalog.gpu_attachments import n1
from accel.catalog.machines import kinds
from accel.contract.google_vms import GceTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.gcp import gpu_vm_jobs, vms
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.gcp import machines as gcp_machines
from accel.rules.gcp import zones as gcp_zones

from ....model.blocks import Gce
from ....model.job import Job
from ... import chooser
from ... import google_machines as machines
from ...google_machines import Need, Offer
from .. import agent_spec

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
"""The job file's names for the rules' fields."""


@dataclass(frozen=True)
class VmChoice:
    """Machines and zones of a job. `attached` is the type of GPUs that are not built in."""

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


def choose(job: Job, target: GceTarget, diagnostics: Diagnostics) -> VmChoice | None:
    """Add to `diagnostics` what rules machines out; return None if nothing is left."""
    block = job.gce or Gce()
    zones = agent_spec.zones("gce", block.zones, target, diagnostics)
    capacity = "flex-start" if block.provisioning else "spot" if job.spot else "on-demand"
    need = Need(block.machine_type, job.accelerator, job.cpus, job.memory_mib, target.machine_types)
    offer = _machine(need, zones, diagnostics)
    if offer is None or not zones:
        return None
    if offer.gpus:
        diagnostics.add(gcp_gpus.small_a3(offer.name, capacity, "spot"))
        diagnostics.add(gcp_gpus.scarce(offer.name, "reserved" if target.reservation else capacity, "spot"))
    zones, findings = _having(offer, zones, block)
    diagnostics.add_warnings(findings)
    reservation = target.reservation if capacity == "on-demand" else None
    zones, reservation = _of_reservation(reservation, target.project, zones, diagnostics)
    placement = target.placement if job.nodes > 1 else None
    diagnostics.add(vms.group(offer.name, "on-demand", compact=placement is not None))
    zones, placement = _of_policy(placement, zones, diagnostics)
    return VmChoice(
        machine=offer.name,
        gpus=offer.gpus,
        attached=offer.gpu if offer.attached else None,
        zones=zones,
        subnetworks=agent_spec.subnetworks("gce", zones, target, diagnostics),
        capacity=capacity,
        disk_type=_disk_type(offer.name, target, diagnostics),
        reservation=reservation,
        placement=placement,
    )


def _machine(need: Need, zones: Sequence[str], diagnostics: Diagnostics) -> Offer | None:
    """Return the smallest machine that holds the job, preferably one that a zone is known to offer. Among machines of
    the same size, prefer the one with the most places: variants for the edge, or without local disks, have fewer."""

    def roomy(offer: Offer) -> bool:
        least = machines.VCPUS_A_GPU * offer.gpus if offer.attached else 0
        return bool(need.machine_type or need.cpus) or offer.vcpus >= least

    def near(offer: Offer) -> bool:
        return any(gpu_vm_jobs.offers(offer.places, zone) for zone in zones)

    def rank(offer: Offer) -> tuple[int, ...]:
        return offer.vcpus, offer.memory_mib, -sum(max(1, len(each)) for each in offer.places.values())

    offers = _offers(need, diagnostics)
    requirements = machines.of_target(need, "accelerator"), machines.large_enough(need)
    return chooser.choose(offers, requirements, (roomy, near), rank, diagnostics) if offers else None


def _offers(need: Need, diagnostics: Diagnostics) -> list[Offer]:
    if not machines.check_gpu(need, "tpu-vm", diagnostics):
        return []
    if need.machine_type:
        return _by_name(need, need.machine_type, diagnostics)
    if need.gpu:
        return machines.list_gpu_offers(need, need.gpus or 1, diagnostics)
    if not need.target_types:
        field = "accelerator" if need.gpus is None else "accelerator.type"
        diagnostics.error(f"{field}: is missing, and so is gce.machine_type; the target has machines of every type")
        return []
    return machines.list_target_offers(need, lambda name: None if n1(name) else _size_of(name), diagnostics)


def _by_name(need: Need, name: str, diagnostics: Diagnostics) -> list[Offer]:
    if not machines.check_target_type(need, diagnostics):
        return []
    if not diagnostics.add_errors(gcp_machines.machine(name, need.gpu, need.gpus)):
        return []
    if host := machines.n1_offer(name, need.gpu, need.gpus or 0):
        return [host]
    offer = _size_of(name)
    if offer is None:
        diagnostics.reject("machine_type", machines.unknown_type(name))
        return []
    if need.gpus is not None and offer.gpus != need.gpus:
        machines.reject_count(offer, need, diagnostics)
        return []
    return [offer]


def _size_of(name: str) -> Offer | None:
    """Return a machine type if it has a price, which GKE's sizes do not have."""
    return machines.offer_of(name) if name in kinds("gcp") else None


def _having(offer: Offer, zones: list[str], block: Gce) -> tuple[list[str], list[Finding]]:
    """Try all zones that a job names, whatever the catalogue says; limit the target's to those with the machine."""
    if not block.zones:
        return gpu_vm_jobs.zones(zones, offer.name, offer.places)
    offered = [zone for known in offer.places.values() for zone in known]
    said = [gcp_zones.zone(zone, offer.name, offered, field=f"gce.zones[{i}]") for i, zone in enumerate(zones)]
    return zones, [finding for findings in said for finding in findings]


def _of_reservation(
    given: str | None, project: str, zones: list[str], diagnostics: Diagnostics
) -> tuple[list[str], str | None]:
    """Return the zone of a reservation given by its full name, else all zones, and its name for an instance."""
    named = _RESERVATION.fullmatch(given or "")
    if named is None:
        return zones, given
    if named[2] not in zones:
        diagnostics.error(f"gce.zones: are {', '.join(zones)}, and the target's reservation is of {named[2]}")
    value = named[3] if named[1] == project else f"projects/{named[1]}/reservations/{named[3]}"
    return [named[2]], value


def _of_policy(given: str | None, zones: list[str], diagnostics: Diagnostics) -> tuple[list[str], str | None]:
    """Return the zones in the region of a placement policy, and the policy's name for a template."""
    named = _POLICY.fullmatch(given or "")
    if named is None:
        return zones, given
    inside = [zone for zone in zones if zone.rpartition("-")[0] == named[1]]
    if not inside:
        diagnostics.error(f"gce.zones: are {', '.join(zones)}, and the target's placement policy is of {named[1]}")
    return inside or zones, named[2]


def _disk_type(machine: str, target: GceTarget, diagnostics: Diagnostics) -> str:
    allowed = boot_disks(machine)
    if not allowed or target.disk_type in allowed:
        return target.disk_type
    found = "hyperdisk-balanced" if "hyperdisk-balanced" in allowed else allowed[0]
    diagnostics.warning(f"disk_gib: {machine} takes no {target.disk_type} of the target; it gets {found}")
    return found

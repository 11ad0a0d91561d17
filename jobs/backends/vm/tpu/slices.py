"""Choice of a job's slices, of their zones, and of their capacity: Spot, reserved, or neither."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from accel.catalog.tpu import NoSuchSlice, Slice, tpu
from accel.contract.google_vms import TpuVmTarget
from accel.diagnostics.collector import Diagnostics
from accel.rules.gcp import tpu as gcp_tpu
from accel.rules.gcp import tpu_jobs
from accel.rules.gcp import zones as gcp_zones

from ....model.blocks import TpuVm
from ....model.job import Job
from .. import agent_spec

FIELDS = {"accelerator_type": "accelerator.type", "topology": "tpu_vm.topology", "reserved": "tpu_vm.reserved"}
"""The job file's names for the rules' fields."""

ANY = "-"
"""Value for any fitting reservation of a project, which gcloud sends for --reserved. Source:
googlecloudsdk/command_lib/compute/tpus/queued_resources/util.py (CreateReservationName)."""
_RESERVATION = re.compile(r"projects/[^/]+/locations/([^/]+)/reservations/[^/]+")


@dataclass(frozen=True)
class SliceChoice:
    """Slices and zones of a job. `reservation` is a name, or None: none is used."""

    slice: Slice
    shaped: bool
    """Whether the job names a topology."""
    slices: int
    zones: Sequence[str]
    subnetworks: dict[str, str]
    spot: bool
    reservation: str | None

    @property
    def hosts(self) -> int:
        return self.slices * self.slice.hosts


def choose(job: Job, target: TpuVmTarget, diagnostics: Diagnostics) -> SliceChoice | None:
    """Add to `diagnostics` what rules slices out; return None if nothing is left."""
    block = job.tpu_vm or TpuVm()
    reservation = _reservation(job, block, target, diagnostics)
    found = _slice(job, block, target, diagnostics)
    zones = agent_spec.zones("tpu_vm", block.zones, target, diagnostics)
    if found is None or not zones:
        return None
    if job.accelerator:
        findings = tpu_jobs.hosts(found, block.slices, job.nodes, job.accelerator.count)
        diagnostics.add([*findings, *tpu_jobs.host_size(found, job.cpus, job.memory_mib)])
    zones = _having(found, zones, block, diagnostics)
    zones = _of_reservation(reservation, zones, diagnostics)
    subnetworks = agent_spec.subnetworks("tpu_vm", zones, target, diagnostics)
    return SliceChoice(found, block.topology is not None, block.slices, zones, subnetworks, bool(job.spot), reservation)


def _slice(job: Job, block: TpuVm, target: TpuVmTarget, diagnostics: Diagnostics) -> Slice | None:
    kind = job.accelerator.type if job.accelerator else None
    found, findings = gcp_tpu.resolve_slice(kind, block.topology)
    if not diagnostics.add(findings) or kind is None:
        return None
    try:
        found = found or replace(tpu(kind), topology=str(block.topology))
    except NoSuchSlice as error:  # a generation alone, in an unknown shape
        diagnostics.error(f"accelerator.type: {error}")
        return None
    if target.types and found.name not in target.types:
        diagnostics.error(f"accelerator.type: {found.name} is none of the target's types: {', '.join(target.types)}")
    return found


def _having(found: Slice, zones: list[str], block: TpuVm, diagnostics: Diagnostics) -> list[str]:
    """Try all zones that a job names, whatever the catalogue says; limit the target's to those with the slice."""
    if block.zones:
        offered = [zone for known in found.places.values() for zone in known]
        for i, zone in enumerate(zones):
            diagnostics.add_warnings(gcp_zones.zone(zone, found.name, offered, field=f"tpu_vm.zones[{i}]"))
        return zones
    having, findings = tpu_jobs.zones(zones, found)
    diagnostics.add_warnings(findings)
    return having


def _reservation(job: Job, block: TpuVm, target: TpuVmTarget, diagnostics: Diagnostics) -> str | None:
    spot, reserved = bool(job.spot), block.reserved
    for finding in gcp_tpu.provisioning(spot=spot, reserved=bool(reserved), field="tpu_vm.reserved"):
        diagnostics.error(f"{finding.field}: {finding.text}")
    if spot or reserved is False:
        return None
    return _spelt(target.reservation) or (ANY if reserved else None)


def _spelt(reservation: str | None) -> str | None:
    """Spell a reservation for the Cloud TPU API, which says locations where Compute Engine says zones."""
    return reservation.replace("/zones/", "/locations/") if reservation else None


def _of_reservation(reservation: str | None, zones: list[str], diagnostics: Diagnostics) -> list[str]:
    """Return the zone of a reservation given by its full name, else all zones."""
    named = _RESERVATION.fullmatch(reservation or "")
    if named is None or named[1] in zones:
        return [named[1]] if named else zones
    diagnostics.error(f"tpu_vm.zones: are {', '.join(zones)}, and the target's reservation is of {named[1]}")
    return zones

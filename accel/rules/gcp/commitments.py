"""Commitments of Compute Engine, which are paid for one or three years and cannot be cancelled."""

from collections.abc import Mapping, Sequence

from accel.catalog.gke_machines import series
from accel.catalog.nearest import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.gcp.capacity import CONSENT
from accel.rules.table import rule

PURCHASE = rule("gcp.commitment.purchase")
SERIES = rule("gcp.commitment.series")
RESOURCES = rule("gcp.commitment.resources")
ATTACHED = rule("gcp.commitment.reservation")

TYPES = {
    "a2": "ACCELERATOR_OPTIMIZED",
    "a3-highgpu": "ACCELERATOR_OPTIMIZED_A3",
    "a3-edgegpu": "ACCELERATOR_OPTIMIZED_A3",
    "a3-megagpu": "ACCELERATOR_OPTIMIZED_A3_MEGA",
    "a3-ultragpu": "ACCELERATOR_OPTIMIZED_A3_ULTRA",
    "a4": "ACCELERATOR_OPTIMIZED_A4",
    "g2": "GRAPHICS_OPTIMIZED",
    "g4": "GRAPHICS_OPTIMIZED_G4",
    "n1": "GENERAL_PURPOSE",
}
"""Type of a commitment by machine series: `type` of the API. It is inferred that a2 and g2 have the plain names, and
that a3-edgegpu counts as A3: no other name of the list could be theirs."""


def commitment_type(machine_type: str) -> str | None:
    return TYPES.get("-".join(machine_type.split("-")[:2])) or TYPES.get(series(machine_type))


def purchase(consent: bool, plan: str) -> list[Finding]:
    if consent:
        return []
    years = "three years" if plan == "THIRTY_SIX_MONTH" else "one year"
    return [PURCHASE.finding(CONSENT, f"is not true; this is paid for {years}, used or not", "write true")]


def commitment_series(machine_type: str | None, kind: str | None) -> list[Finding]:
    if machine_type is None:
        if kind in TYPES.values():
            return []
        message = f'is "{kind}"' if kind else "is missing, and so is machine_type"
        known = sorted(set(TYPES.values()))
        return [SERIES.finding("type", message, did_you_mean(nearest(kind or "", known), known))]
    own = commitment_type(machine_type)
    if own is None:
        message = f"is {machine_type}, for whose series Google sells no commitment"
        return [SERIES.finding("machine_type", message, f"use a machine of {', '.join(TYPES)}")]
    if kind not in (None, own):
        return [SERIES.finding("type", f"is {kind}, and {machine_type} is of {own}", "leave it out")]
    return []


def resources(count: int | None, given: Mapping[str, int | None], machine_type: str | None) -> list[Finding]:
    """Check resources. `given` has `vcpus` and `memory_mib` if there is no machine."""
    if machine_type:
        beside = next((name for name, value in given.items() if value), None)
        if beside:
            return [RESOURCES.finding(f"resources.{beside}", "is beside machine_type", "leave it out, or the machine")]
        return [] if count else [RESOURCES.finding("count", "is missing beside machine_type", "say how many")]
    if not any(given.values()):
        return [RESOURCES.finding("resources", "are missing, and so is machine_type", "name one of them")]
    if bool(given.get("vcpus")) != bool(given.get("memory_mib")):
        missing = "memory_mib" if given.get("vcpus") else "vcpus"
        return [RESOURCES.finding(f"resources.{missing}", "is missing beside the other", "commit to both")]
    memory = given.get("memory_mib") or 0
    if memory % 256:
        return [RESOURCES.finding("resources.memory_mib", f"is {memory}", f"write {memory - memory % 256}")]
    return []


def attached_reservation(reservation: str | None, *, needed: bool, field: str = "reservation") -> list[Finding]:
    if reservation or not needed:
        return []
    return [ATTACHED.finding(field, "is missing, of a commitment for GPUs or local SSDs", "name the reservation")]


def attached_region(region: str, zone: str, name: str, field: str) -> list[Finding]:
    if zone.rpartition("-")[0] == region:
        return []
    return [ATTACHED.finding(field, f"is {name}, in {zone}, and the commitment is of {region}", f"use one of {region}")]


def known_reservation(name: str, known: Sequence[str], field: str) -> list[Finding]:
    if name in known or "/" in name:
        return []
    fix = did_you_mean(nearest(name, known), known) if known else "write projects/<p>/zones/<z>/reservations/<name>"
    return [ATTACHED.finding(field, f'is "{name}", no key of reservations', fix)]

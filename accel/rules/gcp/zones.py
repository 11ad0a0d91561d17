"""Zones and regions of Google Cloud that have the accelerators of one job."""

from collections.abc import Mapping, Sequence

from accel.catalog import UnavailableName
from accel.catalog.places import check_region, nearest_places
from accel.diagnostics.findings import COMPUTE, Finding, Rule

_ZONES = f"{COMPUTE}gpus/gpu-regions-zones"

NONE_COMMON = Rule(
    "gcp.zones.none-common",
    "reject",
    "All accelerators of one job are in one zone, not only in one region",
    _ZONES,
)
UNKNOWN = Rule(
    "gcp.zones.unknown",
    "warn",
    "Where an accelerator is offered is not known, so a job with others may find no zone",
    _ZONES,
)
NOT_LISTED = Rule(
    "gcp.zones.not-listed",
    "warn",
    "The zone is not among those that are known to offer the accelerator; the list may be behind",
    _ZONES,
)
IS_ZONE = Rule(
    "gcp.region.is-zone",
    "reject",
    "Quotas and the location of managed jobs are by region, not by zone",
    "https://docs.cloud.google.com/compute/resource-usage#gpu_quota",
)

RULES = (NONE_COMMON, UNKNOWN, NOT_LISTED, IS_ZONE)


def intersect_zones(zones: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the zones that offer all of the accelerators whose zones are known, in alphabetical order."""
    known = [set(each) for each in zones.values() if each]
    return sorted(zone for zone in set[str]().union(*known) if all(zone in each for each in known))


def common_zones(zones: Mapping[str, Sequence[str]], field: str = "accelerators") -> list[Finding]:
    """Check that one zone has all accelerators of a job. `zones` are those of each accelerator in the job's region (an
    empty list: unknown)."""
    unsure = [accelerator for accelerator, offered in zones.items() if not offered]
    doubt: list[Finding] = []
    if unsure and len(zones) > 1:
        message = f"are together with {', '.join(unsure)}, for which no zone is known"
        doubt.append(UNKNOWN.finding(field, message, "look the zones up before relying on it"))
    known = {accelerator: sorted(offered) for accelerator, offered in zones.items() if offered}
    if len(known) < 2 or intersect_zones(zones):
        return doubt
    shown = "; ".join(f"{accelerator} in {', '.join(offered)}" for accelerator, offered in known.items())
    message = f"have no zone in common: {shown}"
    return [*doubt, NONE_COMMON.finding(field, message, "use one kind of accelerator, or split the job")]


def zone(name: str, accelerator: str, offered: Sequence[str], field: str = "zone") -> list[Finding]:
    """Check a zone against those known to offer an accelerator, a machine or a TPU. There is no finding if none is
    known."""
    if not offered or name in offered:
        return []
    near = nearest_places(name, tuple(offered))
    message = f"is {name}, where {accelerator} is not known to be offered"
    return [NOT_LISTED.finding(field, message, f"use {' or '.join(near)}, or make sure that it is")]


def region(name: str, field: str = "region") -> list[Finding]:
    """Check that a region is not a zone. Other unknown names are left to the cloud."""
    try:
        check_region("gcp", name)
    except UnavailableName as refused:
        return [IS_ZONE.finding(field, f"is {name}, which is a zone", f"use {' or '.join(refused.nearest)}")]
    except LookupError:
        return []
    return []

"""Zones and regions of Google Cloud that have the accelerators of one job."""

from collections.abc import Mapping, Sequence

from accel.catalog import UnavailableName
from accel.catalog.places import check_region, nearest_places
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

NONE_COMMON = rule("gcp.zones.none-common")
UNKNOWN = rule("gcp.zones.unknown")
NOT_LISTED = rule("gcp.zones.not-listed")
IS_ZONE = rule("gcp.region.is-zone")


def intersect_zones(zones: Mapping[str, Sequence[str]]) -> list[str]:
    """Return, in order, the zones that offer all of the accelerators whose zones are known."""
    known = [set(each) for each in zones.values() if each]
    return sorted(zone for zone in set[str]().union(*known) if all(zone in each for each in known))


def common_zones(zones: Mapping[str, Sequence[str]], field: str = "accelerators") -> list[Finding]:
    """Check that one zone has all. `zones` are each accelerator's in the job's region; empty: unknown."""
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
    """Check against the zones known to offer something; if none is known, there is no finding."""
    if not offered or name in offered:
        return []
    near = nearest_places(name, tuple(offered))
    message = f"is {name}, where {accelerator} is not known to be offered"
    return [NOT_LISTED.finding(field, message, f"use {' or '.join(near)}, or make sure that it is")]


def region(name: str, field: str = "region") -> list[Finding]:
    """Check that it is not a zone. Other unknown names are left to the cloud."""
    try:
        check_region("gcp", name)
    except UnavailableName as refused:
        return [IS_ZONE.finding(field, f"is {name}, which is a zone", f"use {' or '.join(refused.nearest)}")]
    except LookupError:
        return []
    return []

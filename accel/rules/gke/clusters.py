"""GKE clusters: locations and versions."""

import re
from collections.abc import Sequence

from accel.catalog.places import nearest_places, regions
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

LOCATION = rule("gcp.cluster.location")
REGION = rule("gcp.cluster.region")
REGION_UNKNOWN = rule("gcp.cluster.region-unknown")
ZONAL = rule("gcp.cluster.zonal")
NODE_LOCATIONS = rule("gcp.cluster.node-locations")
POOL_ZONES = rule("gcp.cluster.pool-zones")
POOL_ZONES_UNSAID = rule("gcp.cluster.pool-zones-unsaid")
NO_SYSTEM_POOL = rule("gcp.cluster.no-system-pool")
NO_CONTROLLER = rule("gcp.cluster.no-controller")
NAME_LENGTH = rule("gcp.cluster.name-length")
CHANNEL_RAPID = rule("gcp.cluster.channel-rapid")
VERSION = rule("gcp.cluster.version")
METRICS_VERSION = rule("gcp.cluster.metrics-version")

NAME_MOST = 32
"""Maximum characters of a cluster's key, so that the name stays within 40 with - and 7 random ones."""

_ZONE = re.compile(r"([a-z]+-[a-z]+\d+)-(?:ai\d+)?[a-z]")
_REGION = re.compile(r"[a-z]+-[a-z]+\d+")
_VERSION = re.compile(r"1\.(\d+)(?:\.(\d+)(?:-gke\.(\d+))?)?")
_METRICS = {"KUBELET": "1.29.3-gke.1093000", "CADVISOR": "1.29.3-gke.1093000", "JOBSET": "1.32.1-gke.1357001"}


def region_of(location: str) -> str:
    zone = _ZONE.fullmatch(location)
    return zone[1] if zone else location


def is_zone(location: str) -> bool:
    return _ZONE.fullmatch(location) is not None


def location(place: str, node_locations: Sequence[str], field: str = "location") -> list[Finding]:
    region = region_of(place)
    if not _REGION.fullmatch(region):
        near = " or ".join(nearest_places(place, regions("gcp"), 1))
        return [LOCATION.finding(field, f'is "{place}", which is no region and no zone', f"write one such as {near}")]
    found: list[Finding] = []
    if region not in regions("gcp"):
        message = f"is {place}, in a region that the data does not know"
        fix = f"use one such as {' or '.join(nearest_places(region, regions('gcp'), 2))}, or make sure that it is one"
        found.append(REGION_UNKNOWN.finding(field, message, fix))
    if is_zone(place):
        message = f"is {place}, a zone"
        found.append(ZONAL.finding(field, message, f"write {region} for a control plane in several zones"))
    for index, zone in enumerate(node_locations):
        at = f"node_locations[{index}]"
        if not is_zone(zone) or region_of(zone) != region:
            message = f'is "{zone}", which is no zone of {region}'
            found.append(NODE_LOCATIONS.finding(at, message, f"write one such as {region}-b"))
        elif zone == place:
            message = f"is {zone}, where the cluster is"
            found.append(NODE_LOCATIONS.finding(at, message, "leave it out; nodes are there in any case"))
        elif zone in node_locations[:index]:
            found.append(NODE_LOCATIONS.finding(at, f"is {zone}, a second time", "name each zone once"))
    return found


def in_region(place: str, region: str, field: str = "location") -> list[Finding]:
    if region_of(place) == region or not _REGION.fullmatch(region_of(place)):
        return []
    if region not in regions("gcp") and region_of(place) in regions("gcp"):
        message = f"is {place}, and the section's region is {region}, which the catalogue does not know"
        return [REGION.finding(field, message, f"write {region_of(place)} as the section's region")]
    return [REGION.finding(field, f"is {place}, and the section's region is {region}", f"write {region}")]


def pool_zones(zones: Sequence[str], region: str, field: str = "zones") -> list[Finding]:
    """Check a pool's zones. Empty: neither the pool nor the cluster names any."""
    if not zones:
        message = "is missing, and the zones of the cluster's nodes are not known here"
        fix = "name the zones that have the machine, here or as node_locations of a cluster that is made here"
        return [POOL_ZONES_UNSAID.finding(field, message, fix)]
    return [
        POOL_ZONES.finding(
            f"{field}[{i}]", f'is "{zone}", which is no zone of {region}', f"write {region}-a or its like"
        )
        for i, zone in enumerate(zones)
        if not is_zone(zone) or region_of(zone) != region
    ]


def system_pool(kept_nodes: int, field: str = "pools") -> list[Finding]:
    """Check for room for system pods. `kept_nodes`: always there, without accelerators and taints, in all pools."""
    if kept_nodes:
        return []
    message = "keep no node without an accelerator and without taints, on which GKE's own pods could run"
    return [NO_SYSTEM_POOL.finding(field, message, "add one such as system: {kind: cpu, min_nodes: 1, max_nodes: 3}")]


def controllers(releases: Sequence[tuple[str, bool, str | None]], field: str = "releases") -> list[Finding]:
    """Check controllers. `releases`: name, whether it is installed here, and who else installs it."""
    return [
        NO_CONTROLLER.finding(
            f"{field}[{index}].install",
            f"is false, and the cluster that is created here has no {name} before somebody installs it",
            "write sha256 in its place, or installed_by with who does it before the queues are made",
        )
        for index, (name, installed, by) in enumerate(releases)
        if not installed and not by
    ]


def key(name: str, field: str = "key") -> list[Finding]:
    if len(name) <= NAME_MOST:
        return []
    return [NAME_LENGTH.finding(field, f"has {len(name)} characters, of which {NAME_MOST} are taken", "shorten it")]


def version(channel: str, wanted: str | None, metrics: Sequence[str] = ()) -> list[Finding]:
    """Check channel, minimum version (None: the channel's own), and the metrics packages that need one."""
    found: list[Finding] = []
    if channel == "RAPID":
        message = "is RAPID, whose versions are not for production"
        found.append(CHANNEL_RAPID.finding("channel", message, "write REGULAR or STABLE"))
    if wanted is None:
        return found
    if not _VERSION.fullmatch(wanted):
        return [*found, VERSION.finding("version", f'is "{wanted}"', "write 1.33 or one such as 1.33.5-gke.1201000")]
    for index, package in enumerate(metrics):
        least = _METRICS.get(package)
        if least and not reaches(wanted, least):
            message = f"is {package}, which needs {least}; version is {wanted}"
            found.append(METRICS_VERSION.finding(f"metrics[{index}]", message, "raise version, or leave it out"))
    return found


def reaches(wanted: str, least: str) -> bool:
    """Return whether a version may be as new as another; 1.32 may be any 1.32."""
    have, need = _VERSION.fullmatch(wanted), _VERSION.fullmatch(least)
    assert have and need
    given = [int(part) for part in have.groups() if part is not None]
    return given >= [int(part or 0) for part in need.groups()][: len(given)]

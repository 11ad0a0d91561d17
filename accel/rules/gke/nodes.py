"""Nodes of a GKE pool: machine type, disks, placement, upgrades and initial size."""

import math
from collections.abc import Collection

from accel.catalog import UnknownName
from accel.catalog.gke_machines import (
    boot_disks,
    compact_placement,
    included_local_ssds,
    local_ssd_counts,
    node_machine,
    series,
)
from accel.catalog.places import where, zones
from accel.diagnostics.findings import Finding
from accel.rules import newer_types
from accel.rules.gcp import zones as gcp_zones
from accel.rules.table import rule

MACHINE = rule("gke.pool.machine")
KIND = rule("gke.pool.kind")
INITIAL = rule("gke.pool.initial-zones")
DISK_SIZE = rule("gke.pool.disk-size")
DISK_TYPE = rule("gke.pool.disk-type")
SSD_COUNT = rule("gke.pool.local-ssds")
SSD_NONE = rule("gke.pool.local-ssds-none")
PRELOADED = rule("gke.pool.preloaded")
COMPACT_SERIES = rule("gke.compact.series")
COMPACT_ZONE = rule("gke.compact.zone")
COMPACT_MOST = rule("gke.compact.nodes")
COMPACT_UPGRADE = rule("gke.compact.blue-green")
COMPACT_QUEUED = rule("gke.compact.queued")
COMPACT_FLEX = rule("gke.compact.flex-start")
SURGE = rule("gke.upgrade.surge")
BATCH = rule("gke.upgrade.batch")
NO_UPGRADE = rule("gke.pool.auto-upgrade")
UNUSED = rule("gke.pool.unused")

DISK_LEAST_GIB = 15
_DISKS = ("pd-balanced", "hyperdisk-balanced")
COMPACT_NODES_MOST = 1500
SURGE_MOST = 20


def machine(machine_type: str, kind: str, attached: bool = False) -> list[Finding]:
    """Check the type for a pool of a kind (`cpu`, `gpu`, `tpu`). `attached`: GPUs are attached to an N1 machine."""
    try:
        found = node_machine(machine_type)
    except UnknownName as unknown:
        if newer_types.gcp(machine_type):
            message = f'is "{machine_type}", {newer_types.doubt("gcp")}'
            return [MACHINE.finding("machine_type", message, newer_types.fix("gcp", unknown.nearest))]
        fix = f"use {' or '.join(unknown.nearest) or 'one such as e2-standard-4, g2-standard-8 or a2-highgpu-1g'}"
        fix = f"{fix}; {newer_types.REFRESHED}"
        return [MACHINE.finding("machine_type", f'is "{machine_type}", which is no known type', fix)]
    has = {"accelerator": "gpu", "tpu-host": "tpu"}.get(found.kind, "gpu" if attached else "cpu")
    if has == kind:
        return []
    what = {"cpu": "has no GPU", "gpu": "has GPUs", "tpu": "is a TPU host"}[has]
    fix = "name accelerator and accelerator_count" if found.family == "n1" else f"use a pool of kind {has}"
    return [KIND.finding("machine_type", f"is {machine_type}, which {what}, in a pool of kind {kind}", fix)]


def zone_offers(name: str, places: list[str] | None, field: str = "zones") -> list[Finding]:
    """Check zones for a machine type, or attached GPUs (`n1+nvidia-tesla-t4x2`)."""
    try:
        offered = where("gcp", name)
    except UnknownName:
        return []
    found: list[Finding] = []
    for index, place in enumerate(places or ()):
        region = place.rpartition("-")[0]
        known = zones("gcp", region, name) if region in offered else tuple(z for each in offered.values() for z in each)
        found += gcp_zones.zone(place, name.removeprefix("n1+"), known, f"{field}[{index}]")
    return found


def initial(initial_nodes: int, max_nodes: int, zone_count: int, *, min_nodes: int = 0) -> list[Finding]:
    """Check a size per zone. `min_nodes` and `max_nodes` are for all zones together."""
    together = initial_nodes * zone_count
    if zone_count < 2 or not initial_nodes or min_nodes <= together <= max_nodes:
        return []
    message = f"is {initial_nodes} in each of {zone_count} zones, {together} together"
    if together > max_nodes:
        return [INITIAL.finding("initial_nodes", message, f"write {max_nodes // zone_count}, or raise max_nodes")]
    message += f", and min_nodes is {min_nodes}"
    fix = f"write {math.ceil(min_nodes / zone_count)}, or lower min_nodes"
    return [INITIAL.finding("initial_nodes", message, fix)]


def unused_pool(pool: str, used: Collection[str], field: str = "pools") -> list[Finding]:
    if pool in used:
        return []
    message = "is in no queue and no target, so no job runs on its accelerators"
    return [UNUSED.finding(field, message, "name it in pools of a queue or a target, or leave it out")]


def disk(size_gib: int, kind: str | None, machine_type: str, field: str = "disk") -> list[Finding]:
    found: list[Finding] = []
    if size_gib < DISK_LEAST_GIB:
        message = f"must be at least {DISK_LEAST_GIB}, is {size_gib}"
        found.append(DISK_SIZE.finding(f"{field}.size_gib", message, "write 100"))
    known = boot_disks(machine_type)
    if kind and known and kind not in known:
        message = f"is {kind}, and {machine_type} takes {', '.join(known)}"
        found.append(DISK_TYPE.finding(f"{field}.type", message, f"leave it out, or write {known[0]}"))
    return found


def disk_type(machine_type: str) -> str | None:
    """Return None to leave it to GKE, whose pd-standard not every machine supports."""
    known = boot_disks(machine_type)
    return next((each for each in _DISKS if each in known), None)


def preloaded_images(image_streaming: bool, field: str = "preloaded_images") -> list[Finding]:
    if image_streaming:
        return []
    return [PRELOADED.finding(field, "are given, and image_streaming is false", "write image_streaming: true")]


def local_ssds(count: int, machine_type: str, field: str = "local_ssds.count") -> list[Finding]:
    known, name = local_ssd_counts(machine_type), series(machine_type)
    if (not known and name in ("e2", "n4", "t2a", "t2d")) or machine_type.startswith(("ct", "tpu7x")):
        message = f"is {count}, and {machine_type} takes none"
        return [SSD_NONE.finding(field, message, "leave local_ssds out, or use another series")]
    if not known or count in known:
        return []
    allowed = ", ".join(map(str, known))
    included = included_local_ssds(machine_type)
    fix = f"write {included}, which it has anyway" if included else f"use one of {allowed}"
    return [SSD_COUNT.finding(field, f"is {count}, and {machine_type} takes {allowed}", fix)]


_COMPACT_FLEX = ("a3-ultragpu-", "a4-", "h4d-")


def compact(
    machine_type: str,
    max_nodes: int,
    zone_count: int | None,
    *,
    upgrade: str | None = None,
    queued: bool = False,
    flex_start: bool = False,
) -> list[Finding]:
    """Check compact placement. `zone_count` None: unknown. `upgrade` is `surge`, `blue-green` or None."""
    field, found = "compact_placement", list[Finding]()
    able = compact_placement()
    if able.get(series(machine_type)) is False:
        others = ", ".join(name for name, takes in able.items() if takes)
        message = f"is true, and {machine_type} cannot be placed so"
        found.append(COMPACT_SERIES.finding(field, message, f"use a machine of {others}"))
    if zone_count is not None and zone_count != 1:
        found.append(COMPACT_ZONE.finding("zones", f"are {zone_count}, with compact_placement", "name one zone"))
    if max_nodes > COMPACT_NODES_MOST:
        message = f"is {max_nodes}, and a compact placement holds {COMPACT_NODES_MOST}"
        found.append(COMPACT_MOST.finding("max_nodes", message, f"write {COMPACT_NODES_MOST}, or make several pools"))
    if upgrade == "blue-green":
        found.append(COMPACT_UPGRADE.finding("upgrade", "is blue-green, with compact_placement", "use surge"))
    if queued:
        found.append(COMPACT_QUEUED.finding(field, "is true, with queued_provisioning", "keep one of the two"))
    elif flex_start and not machine_type.startswith(_COMPACT_FLEX):
        message = f"is true, for {machine_type} with capacity flex-start"
        fix = "leave it out, or use a3-ultragpu-8g, a4-highgpu-8g or another capacity"
        found.append(COMPACT_FLEX.finding(field, message, fix))
    return found


def surge(max_surge: int, max_unavailable: int, field: str = "max_surge") -> list[Finding]:
    if max_surge >= 0 and max_unavailable >= 0 and 1 <= max_surge + max_unavailable <= SURGE_MOST:
        return []
    message = f"must be 1 to {SURGE_MOST} together with max_unavailable, is {max_surge} and {max_unavailable}"
    return [SURGE.finding(field, message, "write max_surge: 0 and max_unavailable: 1 for scarce GPUs")]


def blue_green(batch_nodes: int | None, batch_percent: float | None, field: str = "batch_nodes") -> list[Finding]:
    """Check how many old nodes are drained at once; neither value: GKE's own default."""
    if batch_nodes is None or batch_percent is None:
        return []
    return [BATCH.finding(field, "is given beside batch_percent", "keep one of the two")]


def management(auto_upgrade: bool, auto_repair: bool | None) -> list[Finding]:
    fields = (("auto_upgrade", auto_upgrade), ("auto_repair", auto_repair))
    message, fix = "is false, which GKE refuses in a release channel", "leave it out, and exclude upgrades by a window"
    return [NO_UPGRADE.finding(field, message, fix) for field, on in fields if on is False]

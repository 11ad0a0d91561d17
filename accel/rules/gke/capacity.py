"""Provisioning of a GKE node pool's machines: on demand, Spot, flex-start, from a reservation, or queued."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

RESERVATION_MISSING = rule("gke.capacity.reservation-missing")
RESERVATION_BESIDE = rule("gke.capacity.reservation-beside")
RESERVATION_ZONE = rule("gke.capacity.reservation-zone")
FLEX_REPAIR = rule("gke.flex-start.auto-repair")
FLEX_LOCATION = rule("gke.flex-start.location-policy")
FLEX_UPGRADE = rule("gke.flex-start.upgrade")
FLEX_NODES = rule("gke.flex-start.nodes")
FLEX_HOURS = rule("gke.flex-start.duration")
FLEX_TPU = rule("gke.flex-start.tpu")
FLEX_SLICE = rule("gke.flex-start.slice")
FLEX_MACHINE = rule("gke.flex-start.machine")
FLEX_SERIES = rule("gke.flex-start.series")
DURATION_BESIDE = rule("gke.capacity.duration")
QUEUED_FLEX = rule("gke.queued.flex-start")
SPOT_BALANCED = rule("gke.spot.location-policy")

FLEX_SHORTEST_S, FLEX_LONGEST_S = 10 * 60, 7 * 24 * 3600
_NOT_FLEX = ("a3-edgegpu-8g", "a3-edgegpu-8g-nolssd")
_NOT_DESCRIBED = ("n1-", "a4x-")
"""Series with GPUs whose machines are no flex-start VMs by the page of gke.flex-start.series. It excludes G4 too, which
GKE has nevertheless: https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/6140"""
_NOT_FLEX_TPUS = ("ct3-", "ct3p-", "ct4p-")


def capacity(
    kind: str,
    *,
    machine_type: str,
    reservation: str | None = None,
    zones: int | None = None,
    location_policy: str | None = None,
    max_run_duration_s: int | None = None,
) -> list[Finding]:
    """Check a kind (`on-demand`, `spot`, `flex-start`, `reservation`) and what depends on it. `zones` None: unknown."""
    found: list[Finding] = []
    if kind == "reservation" and reservation is None:
        found.append(RESERVATION_MISSING.finding("reservation", "is missing beside capacity reservation", "name it"))
    if kind != "reservation" and reservation is not None:
        message = f"is {reservation}, and capacity is {kind}"
        found.append(RESERVATION_BESIDE.finding("reservation", message, "leave it out, or use capacity reservation"))
    if kind == "reservation" and zones is not None and zones > 1:
        message = f"are {zones}, and a reservation is in one"
        found.append(RESERVATION_ZONE.finding("zones", message, "name the reservation's zone alone"))
    if kind == "spot" and location_policy == "BALANCED" and zones != 1:
        message = "is BALANCED, and capacity is spot"
        found.append(SPOT_BALANCED.finding("location_policy", message, "write ANY, or leave it out"))
    if max_run_duration_s is not None and kind != "flex-start":
        message = f"is {max_run_duration_s}, and capacity is {kind}"
        found.append(DURATION_BESIDE.finding("max_run_duration_s", message, "leave it out, or use flex-start"))
    elif max_run_duration_s is not None and not FLEX_SHORTEST_S <= max_run_duration_s <= FLEX_LONGEST_S:
        message = f"must be {FLEX_SHORTEST_S} to {FLEX_LONGEST_S}, is {max_run_duration_s}"
        too_short = max_run_duration_s < FLEX_SHORTEST_S
        fix = f"write {FLEX_SHORTEST_S} for ten minutes" if too_short else f"write {FLEX_LONGEST_S} for seven days"
        found.append(FLEX_HOURS.finding("max_run_duration_s", message, fix))
    return found + (_flex_machine(machine_type) if kind == "flex-start" else [])


def _flex_machine(machine_type: str) -> list[Finding]:
    if machine_type in _NOT_FLEX:
        message = f"is {machine_type}, which flex-start has not"
        return [FLEX_MACHINE.finding("machine_type", message, "use a3-highgpu-8g, or capacity on-demand")]
    if machine_type.startswith(_NOT_DESCRIBED):
        message = f"is {machine_type}, for which Google does not describe flex-start"
        fix = "use a machine of A2, A3, A4, G2 or G4, or capacity on-demand, spot or reservation"
        return [FLEX_SERIES.finding("machine_type", message, fix)]
    if machine_type.startswith(_NOT_FLEX_TPUS):
        message = f"is {machine_type}, which flex-start has not"
        return [FLEX_TPU.finding("machine_type", message, "use ct5lp-hightpu-4t or ct6e-standard-4t, or on-demand")]
    return []


def flex_start(
    *,
    min_nodes: int,
    initial_nodes: int,
    auto_repair: bool | None,
    location_policy: str | None,
    upgrade: str | None,
    hosts: int = 1,
) -> list[Finding]:
    """Check a flex-start pool, queued or not. None: unset, which gives the value that flex-start needs."""
    found: list[Finding] = []
    for field, nodes in (("min_nodes", min_nodes), ("initial_nodes", initial_nodes)):
        if nodes:
            found.append(FLEX_NODES.finding(field, f"is {nodes}, and capacity is flex-start", "write 0"))
    if auto_repair:
        found.append(FLEX_REPAIR.finding("auto_repair", "is true, and capacity is flex-start", "leave it out"))
    if location_policy == "BALANCED":
        message = "is BALANCED, and capacity is flex-start"
        found.append(FLEX_LOCATION.finding("location_policy", message, "write ANY, or leave it out"))
    if upgrade is not None:
        found.append(FLEX_UPGRADE.finding("upgrade", f"is {upgrade}, and capacity is flex-start", "leave it out"))
    if hosts > 1:
        message = f"is a slice of {hosts} hosts, and capacity is flex-start"
        found.append(FLEX_SLICE.finding("topology", message, "make sure that GKE offers it there"))
    return found


def queued_provisioning(kind: str, field: str = "queued_provisioning") -> list[Finding]:
    """Check nodes by ProvisioningRequest, for GPUs only in GKE (https://github.com/AI-Hypercomputer/xpk/pull/900)."""
    if kind == "flex-start":
        return []
    return [QUEUED_FLEX.finding(field, f"is true, and capacity is {kind}", "use capacity flex-start")]

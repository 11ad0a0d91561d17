"""Provisioning of a GKE node pool's machines: on demand, Spot, flex-start, from a reservation, or queued."""

from accel.diagnostics.findings import GKE, Finding, Rule

_FLEX = f"{GKE}concepts/dws"
_QUEUED = f"{GKE}how-to/provisioningrequest"
_TOOLKIT = "https://github.com/GoogleCloudPlatform/cluster-toolkit/pull/4027"

RESERVATION_MISSING = Rule(
    "gke.capacity.reservation-missing",
    "reject",
    "Capacity out of a reservation names it",
    f"{GKE}how-to/consuming-reservations",
)
RESERVATION_BESIDE = Rule(
    "gke.capacity.reservation-beside", "reject", "On demand, Spot and flex-start do not use a reservation", _TOOLKIT
)
RESERVATION_ZONE = Rule(
    "gke.capacity.reservation-zone",
    "warn",
    "A reservation is in one zone, and a pool in others finds nothing there",
    "https://docs.cloud.google.com/compute/docs/instances/reservations-overview",
)
FLEX_REPAIR = Rule("gke.flex-start.auto-repair", "reject", "Flex-start nodes are not repaired", _TOOLKIT)
FLEX_LOCATION = Rule("gke.flex-start.location-policy", "reject", "Flex-start goes to any zone that has room", _QUEUED)
FLEX_UPGRADE = Rule(
    "gke.flex-start.upgrade",
    "reject",
    "GKE upgrades flex-start nodes by short-lived upgrades alone",
    f"{GKE}concepts/node-pool-upgrade-strategies",
)
FLEX_NODES = Rule(
    "gke.flex-start.nodes", "reject", "Flex-start and queued pools begin with no node, and keep none", _QUEUED
)
FLEX_HOURS = Rule("gke.flex-start.duration", "reject", "A flex-start node runs for seven days at most", _FLEX)
FLEX_TPU = Rule("gke.flex-start.tpu", "reject", "TPU v3 and v4 are not to be had by flex-start", _FLEX)
FLEX_SLICE = Rule("gke.flex-start.slice", "warn", "Google describes flex-start for TPU slices of one host", _FLEX)
FLEX_MACHINE = Rule(
    "gke.flex-start.machine",
    "reject",
    "Some machines are not to be had by flex-start",
    "https://github.com/GoogleCloudPlatform/cluster-autoscaler/blob/a181d5ac557aee2ad99b5531acf879f13d1bf9f9/pkg/"
    "cloudprovider/gke/machinetypes/deprecated_machine_types_config.go",
)
DURATION_BESIDE = Rule(
    "gke.capacity.duration", "reject", "Only flex-start nodes have a longest run of their own here", _FLEX
)
QUEUED_FLEX = Rule(
    "gke.queued.flex-start", "reject", "Queued provisioning is a way of flex-start, so both are set", _QUEUED
)
SPOT_BALANCED = Rule(
    "gke.spot.location-policy",
    "warn",
    "Spot nodes spread evenly over zones wait for the zone that has none",
    f"{GKE}concepts/cluster-autoscaler#location-policy",
)

RULES = (
    RESERVATION_MISSING, RESERVATION_BESIDE, RESERVATION_ZONE, FLEX_REPAIR, FLEX_LOCATION, FLEX_UPGRADE, FLEX_NODES,
    FLEX_HOURS, FLEX_TPU, FLEX_SLICE, FLEX_MACHINE, DURATION_BESIDE, QUEUED_FLEX, SPOT_BALANCED,
)  # fmt: skip

FLEX_LONGEST_S = 7 * 24 * 3600
_NOT_FLEX = ("a3-edgegpu-8g", "a3-edgegpu-8g-nolssd")
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
    """Check the capacity (`on-demand`, `spot`, `flex-start` or `reservation`) and the settings that depend on it;
    `zones` None: unknown."""
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
    elif max_run_duration_s is not None and not 0 < max_run_duration_s <= FLEX_LONGEST_S:
        message = f"must be 1 to {FLEX_LONGEST_S}, is {max_run_duration_s}"
        found.append(FLEX_HOURS.finding("max_run_duration_s", message, f"write {FLEX_LONGEST_S} for seven days"))
    return found + (_flex_machine(machine_type) if kind == "flex-start" else [])


def _flex_machine(machine_type: str) -> list[Finding]:
    if machine_type in _NOT_FLEX:
        message = f"is {machine_type}, which flex-start has not"
        return [FLEX_MACHINE.finding("machine_type", message, "use a3-highgpu-8g, or capacity on-demand")]
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
    """Check the requirements of a flex-start pool, queued or not. None: unset, which gives the value that flex-start
    needs."""
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
    """Check a pool whose nodes come by ProvisioningRequest only, which GKE supports for GPUs only
    (https://github.com/AI-Hypercomputer/xpk/pull/900)."""
    if kind == "flex-start":
        return []
    return [QUEUED_FLEX.finding(field, f"is true, and capacity is {kind}", "use capacity flex-start")]

"""Node pools of TPU slices, except for the shape, which gcp.tpu.pool() checks."""

from accel.diagnostics.findings import Finding
from accel.rules.gcp.tpu import resolve_pool
from accel.rules.table import rule

WHOLE = rule("gke.tpu.whole-slice")
ONE_ZONE = rule("gke.tpu.zone")
POLICY = rule("gke.tpu.policy")

_POLICY_SERIES = "tpu7x-"


def slice_pool(
    machine_type: str,
    topology: str,
    *,
    min_nodes: int,
    initial_nodes: int,
    zone_count: int | None,
    policy: str | None,
) -> list[Finding]:
    """Check sizes and placement. `zone_count` None: unknown."""
    found, _ = resolve_pool(machine_type, topology)
    if found is None or not found.multi_host:
        return []
    said: list[Finding] = []
    for field, nodes in (("min_nodes", min_nodes), ("initial_nodes", initial_nodes)):
        if nodes not in (0, found.hosts):
            message = f"is {nodes}, and topology {found.topology} is {found.hosts} nodes"
            said.append(WHOLE.finding(field, message, f"write 0 or {found.hosts}"))
    if zone_count is not None and zone_count != 1:
        message = f"are {zone_count}, and topology {found.topology} is one slice"
        said.append(ONE_ZONE.finding("zones", message, "name one zone, and make a pool for each slice"))
    if machine_type.startswith(_POLICY_SERIES) and policy is None:
        message = f"is missing for topology {found.topology} of {machine_type}"
        fix = "make a workload policy (type HIGH_THROUGHPUT) with this topology, and name it"
        said.append(POLICY.finding("placement_policy", message, fix))
    return said

"""GKE node pools with accelerators: size limits."""

from accel.diagnostics.findings import Finding
from accel.rules.table import rule

BOUNDS = rule("gcp.pool.bounds")


def bounds(min_nodes: int, max_nodes: int, initial_nodes: int | None = None) -> list[Finding]:
    """Check the sizes. `initial_nodes` None: the minimum."""
    found: list[Finding] = []
    if max_nodes < 1:
        found.append(BOUNDS.finding("max_nodes", f"must be at least 1, is {max_nodes}", "raise it"))
    if min_nodes < 0:
        found.append(BOUNDS.finding("min_nodes", f"must be at least 0, is {min_nodes}", "write 0 to pay for none"))
    if min_nodes > max_nodes:
        message = f"is {min_nodes}, more than max_nodes ({max_nodes})"
        found.append(BOUNDS.finding("min_nodes", message, "lower it, or raise max_nodes"))
    elif initial_nodes is not None and not min_nodes <= initial_nodes <= max_nodes:
        message = f"is {initial_nodes}, not within min_nodes and max_nodes ({min_nodes} to {max_nodes})"
        found.append(BOUNDS.finding("initial_nodes", message, f"write {min_nodes} to {max_nodes}, or leave it out"))
    return found

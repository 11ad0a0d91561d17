"""TPU slices: names, shapes, hosts and provisioning."""

from accel.catalog import UnknownName
from accel.catalog.tpu import NoSuchSlice, Slice, generation_of, tpu, tpu_pool
from accel.diagnostics.findings import Finding
from accel.rules.table import rule

TYPE_MISSING = rule("gcp.tpu.type-missing")
TYPE_UNKNOWN = rule("gcp.tpu.type-unknown")
NAME = rule("gcp.tpu.name")
SIZE = rule("gcp.tpu.size")
SHAPE_UNSURE = rule("gcp.tpu.shape-unsure")
NOT_PUBLISHED = rule("gcp.tpu.not-published")
GKE_ONLY = rule("gcp.tpu.gke-only")
NODE = rule("gcp.tpu.node-architecture")
SPOT_RESERVED = rule("gcp.tpu.spot-and-reserved")
POOL_TYPE = rule("gcp.tpu.pool-type")
POOL_NODES = rule("gcp.tpu.pool-nodes")


def resolve_slice(
    name: str | None, topology: str | None = None, *, api: str = "tpu", field: str = "accelerator_type"
) -> tuple[Slice | None, list[Finding]]:
    """Return the slice, or None, and the findings. `api="gke"`: for a node pool, not the Cloud TPU API."""
    if not name:
        return None, [TYPE_MISSING.finding(field, "is missing", "name one, such as v5litepod-8 or v6e-8")]
    try:
        found = tpu(name, topology)
    except UnknownName as unknown:
        near = " or ".join(unknown.nearest) or "a type such as v5litepod-8 or v6e-8"
        return None, [TYPE_UNKNOWN.finding(field, f'is "{name}", which is no TPU type', f"use {near}")]
    except NoSuchSlice as none:
        at = field if none.what == name else "topology"
        broken = SHAPE_UNSURE if at == "topology" and generation_of(name).recalled else SIZE
        return None, [broken.finding(at, f'is "{none.what}", which {none.why}', f"use {' or '.join(none.choices)}")]
    if found.api == "gke-only" and api == "tpu":
        message = f'is "{name}", which the Cloud TPU API does not have'
        fix = f"make a GKE node pool of {found.machine_type} with topology {found.topology}"
        return found, [GKE_ONLY.finding(field, message, fix)]
    return found, _name(found, field) + _published(found, field)


def find_slice(name: str | None) -> Slice | None:
    """Return None for one that accelerator_type() reports."""
    return resolve_slice(name)[0]


def accelerator_type(
    name: str | None, topology: str | None = None, *, field: str = "accelerator_type"
) -> list[Finding]:
    return resolve_slice(name, topology, field=field)[1]


def _name(found: Slice, field: str) -> list[Finding]:
    own = found.name if "-" in found.written.removeprefix("tpu-") else found.generation.prefix
    if found.written == own or found.api == "gke-only":
        return []
    message = f'is "{found.written}", which the Cloud TPU API calls {own}'
    return [NAME.finding(field, message, f"write {own}", own)]


def _published(found: Slice, field: str) -> list[Finding]:
    if found.published:
        return []
    most = found.generation.published_chips * found.generation.per_chip
    message = f'is "{found.written}", above {found.generation.prefix}-{most}, the largest in the published table'
    return [NOT_PUBLISHED.finding(field, message, "ask Google whether it can be had, or use several slices")]


def architecture(name: str, field: str = "architecture") -> list[Finding]:
    if name.lower().replace("_", "-") not in ("node", "tpu-node"):
        return []
    message = f'is "{name}", an architecture that Google has removed'
    return [NODE.finding(field, message, "leave it out: a TPU VM runs the program on the TPU's own host")]


def provisioning(*, spot: bool = False, reserved: bool = False, field: str = "reserved") -> list[Finding]:
    if not (spot and reserved):
        return []
    return [SPOT_RESERVED.finding(field, "is true beside spot", "keep one of the two")]


def resolve_pool(machine_type: str, topology: str) -> tuple[Slice | None, list[Finding]]:
    try:
        return tpu_pool(machine_type, topology), []
    except UnknownName as unknown:
        near = " or ".join(unknown.nearest) or "one such as ct5lp-hightpu-4t or ct6e-standard-4t"
        return None, [POOL_TYPE.finding("machine_type", f'is "{machine_type}", which is no TPU host', f"use {near}")]
    except NoSuchSlice as none:
        fix = f"use {' or '.join(none.choices)}"
        return None, [POOL_TYPE.finding("topology", f'is "{topology}", which {none.why}', fix)]


def pool(machine_type: str, topology: str, nodes: int | None = None) -> list[Finding]:
    """Check a pool of at most `nodes`. Pools of one-host slices scale by the node."""
    found, findings = resolve_pool(machine_type, topology)
    if found is None or nodes is None or not found.multi_host or nodes == found.hosts:
        return findings
    message = f"is {nodes}, and topology {found.topology} on {machine_type} is {found.hosts} nodes"
    return [POOL_NODES.finding("max_nodes", message, f"write {found.hosts}")]

"""A job for a GKE cluster: node pools that hold its pods, and limits of Kubernetes."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accel.catalog.tpu import Slice
from accel.diagnostics.findings import Finding
from accel.rules.jobs.variables import of_platform
from accel.rules.table import rule

FIT = rule("gke.job.fit")
NODES = rule("gke.job.nodes")
SLICE = rule("gke.job.tpu-slice")
LABEL = rule("gke.job.label")
LABEL_RESERVED = rule("gke.job.label-reserved")
TASKS = rule("gke.job.tasks")
GRACE = rule("gke.job.grace")
ENV_RESERVED = rule("gke.job.env-reserved")
SIZE = rule("gke.job.size")
LOST_ADDED = rule("gke.job.lost-retries")
ALONE = rule("gke.job.nodes-alone")

MAX_TASKS = 100_000
SPOT_GRACE_S = 15
MAX_ANNOTATIONS_BYTES = 256 * 1024
_OTHERS_BYTES = 8 * 1024
"""Bytes reserved for the other annotations: ours, Kueue's and JobSet's."""
RESERVED_VARIABLES = ("JOB_COMPLETION_INDEX", "TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID")
SHOWN = 6

_RESERVED_PREFIX = re.compile(r"([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|gke\.io|accel\.dev|cloud\.google\.com)/")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Size:
    """The request of one pod: thousandths of a vCPU, MiB, GPUs, TPU chips and GiB of disk."""

    cpu_m: int
    memory_mib: int
    gpus: int = 0
    chips: int = 0
    disk_gib: int = 0


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """The capacity that a node of a pool offers to pods (`disk_gib` 0: unknown), and the maximum number of nodes."""

    name: str
    node: Size
    max_nodes: int


_ASKED = (
    ("gpus", "accelerator.count", "GPUs"),
    ("chips", "accelerator.count", "TPU chips"),
    ("cpu_m", "cpus", "vCPUs"),
    ("memory_mib", "memory_mib", "MiB"),
    ("disk_gib", "disk_gib", "GiB of disk"),
)


def holds(place: PoolCapacity, size: Size) -> bool:
    node = place.node
    return (
        node.cpu_m >= size.cpu_m
        and node.memory_mib >= size.memory_mib
        and node.gpus >= size.gpus
        and node.chips >= size.chips
        and (not node.disk_gib or node.disk_gib >= size.disk_gib)
    )


def fit(size: Size, places: Sequence[PoolCapacity]) -> list[Finding]:
    if any(holds(place, size) for place in places) or not places:
        return []
    found: list[Finding] = []
    for name, field, unit in _ASKED:
        asked, most = getattr(size, name), max(places, key=lambda place: getattr(place.node, name))
        has = getattr(most.node, name)
        if asked > has and (name != "disk_gib" or has):
            message = f"is {_amount(name, asked)}, and a node has at most {_amount(name, has)} {unit} ({most.name})"
            found.append(FIT.finding(field, message, "ask for less, or use a target with larger nodes"))
    if found:
        return found
    shown = "; ".join(_shown(place) for place in places[:SHOWN])
    message = f"no pool's node has {_sizes(size)} together: {shown}"
    return [FIT.finding("cpus", message, "ask for less of one of them, or use a target with larger nodes")]


def _shown(place: PoolCapacity) -> str:
    return f"{place.name} {_sizes(place.node)}"


def _sizes(size: Size) -> str:
    return ", ".join(f"{_amount(name, getattr(size, name))} {unit}" for name, _, unit in _ASKED if getattr(size, name))


def _amount(name: str, value: int) -> str:
    return f"{value / 1000:g}" if name == "cpu_m" else str(value)


def nodes(wanted: int, places: Sequence[PoolCapacity]) -> list[Finding]:
    """Check for enough nodes. `places` are those that hold one of the job's pods."""
    most = sum(place.max_nodes for place in places)
    if wanted <= most or not places:
        return []
    shown = ", ".join(f"{place.name} {place.max_nodes}" for place in places[:SHOWN])
    message = f"is {wanted}, and the pools that hold a node of the job have at most {most} nodes: {shown}"
    return [NODES.finding("nodes", message, "ask for fewer, or raise max_nodes of a pool")]


def form(forms: Sequence[Slice], wanted_nodes: int, count: int) -> Slice | None:
    """Return the form of a slice (accel.catalog.tpu.forms()) with as many hosts as the job has nodes, and a host's
    chips as count; without nodes the first form, whose chips may also be counted together. Unset values are 1. None: no
    form."""
    first = forms[0]
    if wanted_nodes in (1, first.hosts) and count in (1, first.chips):
        return first
    named = [each for each in forms if wanted_nodes == each.hosts and count in (1, each.chips_per_host)]
    return named[0] if named else None


def tpu_slice(forms: Sequence[Slice], wanted_nodes: int, count: int) -> list[Finding]:
    if form(forms, wanted_nodes, count):
        return []
    first = forms[0]
    of_some = any(wanted_nodes in (1, each.hosts) for each in forms)
    field, value = ("accelerator.count", count) if of_some else ("nodes", wanted_nodes)
    shapes = " or ".join(hosts(each) for each in forms)
    ways = ["leave both out" if len(forms) == 1 else f"leave both out for {hosts(first)}"]
    ways += [f"write nodes: {each.hosts} and count: {each.chips_per_host}" for each in forms if each.multi_host]
    message = f"is {value}, and {first.written} is {shapes}"
    if len(forms) > 1 and field == "accelerator.count":
        message = f"is {count} with nodes: {wanted_nodes}, and {first.written} is {shapes}"
    return [SLICE.finding(field, message, ", or ".join(ways))]


def hosts(found: Slice) -> str:
    return hosts_text(found.hosts, found.chips_per_host)


def hosts_text(count: int, chips: int) -> str:
    return f"{count} host{'s' if count > 1 else ''} of {chips} chip{'s' if chips > 1 else ''}"


def labels(given: Mapping[str, str], field: str = "labels") -> list[Finding]:
    """Check without showing values, since they often contain secrets."""
    found: list[Finding] = []
    for key, value in sorted(given.items()):
        prefix, slash, name = key.rpartition("/")
        if _RESERVED_PREFIX.match(key):
            found.append(LABEL_RESERVED.finding(field, f'"{key}" has a reserved prefix', "use one of your own"))
        elif not _NAME.fullmatch(name) or (slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= 253)):
            message = f'"{key[:80]}" is no name of a label'
            fix = "write letters, digits, -, _ and ., 63 at most, after a domain and / if you like"
            found.append(LABEL.finding(field, message, fix))
        if value and not _NAME.fullmatch(value):
            fix = "write letters, digits, -, _ and ., 63 at most, with a letter or digit at both ends"
            found.append(LABEL.finding(f"{field}.{key[:80]}", "is no value of a label", fix))
    return found


def tasks(count: int) -> list[Finding]:
    if count <= MAX_TASKS:
        return []
    return [TASKS.finding("tasks", f"is {count}, of which Kubernetes takes {MAX_TASKS}", "submit several jobs")]


def grace(grace_s: int | None, spot: bool) -> list[Finding]:
    """Check the time between SIGTERM and SIGKILL, if Spot nodes may run the job."""
    if grace_s is None or not spot or grace_s <= SPOT_GRACE_S:
        return []
    message = f"is {grace_s}, and a preempted Spot node kills a pod after {SPOT_GRACE_S} s"
    return [GRACE.finding("gke.grace_s", message, "save checkpoints in less, or ask for on-demand nodes (spot: false)")]


def environment(variables: Mapping[str, object], field: str = "env") -> list[Finding]:
    return of_platform(ENV_RESERVED, [name for name in RESERVED_VARIABLES if name in variables], field)


def retries(failures: int | None, lost: int | None, nodes: int, jobset: bool) -> list[Finding]:
    """Check for retries that a Job cannot count as requested."""
    found: list[Finding] = []
    if failures and lost:
        message = f"is {lost} beside retries {failures}; they are added up to {failures + lost} for both kinds"
        found.append(
            LOST_ADDED.finding("lost_retries", message, "leave lost_retries out: what is lost is then replaced")
        )
    if nodes > 1 and not jobset and (failures or lost is None or lost):
        message = f"is {nodes}, and the cluster has no JobSet: a node that failed or was lost is started again alone"
        fix = "its command must be able to join the others again (torchrun with --max-restarts)"
        found.append(ALONE.finding("nodes", message, fix))
    return found


def size(request: object) -> list[Finding]:
    """Check the size of the job's copy in an annotation."""
    length = len(json.dumps(request, separators=(",", ":")).encode())
    most = MAX_ANNOTATIONS_BYTES - _OTHERS_BYTES
    if length <= most:
        return []
    message = f"has {length} bytes, of which Kubernetes keeps {most}"
    return [SIZE.finding("request", message, "put long arguments and values into a file")]

"""Choice of the node pools that hold a pod of a job, and how the pod selects them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accel.catalog import AmbiguousName, UnavailableName, UnknownName, accelerator
from accel.catalog.tpu import NoSuchSlice, Slice, forms
from accel.contract.gke import POOL_LABEL, GkePool, GkeTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import did_you_mean
from accel.rules.gke import jobs
from accel.rules.gke.jobs import PoolCapacity, Size

from ...model.job import Job
from ..chooser import Requirement, narrow

NODEPOOL = "cloud.google.com/gke-nodepool"
GPU_LABEL = "cloud.google.com/gke-accelerator"
TPU_LABEL = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
GPUS, CHIPS = "nvidia.com/gpu", "google.com/tpu"

GCSFUSE = Size(cpu_m=250, memory_mib=256, disk_gib=5)
"""Resources of the sidecar that mounts buckets, set by annotations of the pod."""

_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


@dataclass(frozen=True)
class PoolChoice:
    """Pools that hold a pod, the resources of the pod, and the job's TPU slice."""

    pools: tuple[GkePool, ...]
    size: Size
    nodes: int
    slice: Slice | None = None

    @property
    def spot(self) -> bool:
        return any(pool.capacity == "spot" for pool in self.pools)


def choose(job: Job, target: GkeTarget, diagnostics: Diagnostics) -> PoolChoice | None:
    """Return None with the reasons added to `diagnostics`."""
    before = len(diagnostics.errors)
    found = _slice(job, diagnostics)
    pools = _named(job, target, diagnostics)
    if len(diagnostics.errors) > before:
        return None
    pools = narrow(pools, _requirements(job, target, found), diagnostics)
    return _sized(job, pools, found, diagnostics) if pools else None


def _sized(job: Job, pools: list[GkePool], found: Slice | None, diagnostics: Diagnostics) -> PoolChoice | None:
    extra = GCSFUSE if any(mount.source.startswith("gs://") for mount in job.mounts) else Size(0, 0)
    size = _size(job, pools, found, extra, diagnostics)
    if size is None:
        return None
    whole = Size(
        size.cpu_m + extra.cpu_m,
        size.memory_mib + extra.memory_mib,
        size.gpus,
        size.chips,
        size.disk_gib + extra.disk_gib,
    )
    places = {pool.key: place(pool) for pool in pools}
    nodes = found.hosts if found else job.nodes
    requirement = Requirement[GkePool](
        "cpus",
        lambda pool: jobs.holds(places[pool.key], whole),
        lambda pools: jobs.fit(whole, [places[pool.key] for pool in pools]),
    )
    holding = narrow(pools, [requirement], diagnostics)
    if not holding or not diagnostics.add_errors(jobs.nodes(nodes, [places[pool.key] for pool in holding])):
        return None
    return PoolChoice(tuple(holding), size, nodes, found)


def place(pool: GkePool) -> PoolCapacity:
    node = Size(pool.cpu_m, pool.memory_mib, pool.gpus, pool.tpu_chips, pool.disk_gib)
    return PoolCapacity(pool.key, node, pool.max_nodes)


def _named(job: Job, target: GkeTarget, diagnostics: Diagnostics) -> list[GkePool]:
    wanted = job.gke.pools if job.gke else []
    for i, key in enumerate(wanted):
        if key not in target.pools:
            diagnostics.error(f'gke.pools[{i}]: unknown pool "{key}"{did_you_mean(key, list(target.pools))}')
    return [pool for key, pool in target.pools.items() if not wanted or key in wanted]


def _slice(job: Job, diagnostics: Diagnostics) -> Slice | None:
    """Return the TPU slice that the accelerator's type names, with as many hosts as `nodes` and `count` say."""
    kind = job.accelerator.type if job.accelerator else None
    if kind is None or job.accelerator is None or _is_gpu(kind):
        return None
    try:
        every = forms(kind)
    except UnknownName:
        return None  # not a TPU: the lookup of GPUs reports a wrong name
    except NoSuchSlice as error:
        diagnostics.error(f"accelerator.type: {error}")
        return None
    found = jobs.form(every, job.nodes, job.accelerator.count)
    findings = jobs.tpu_slice(every, job.nodes, job.accelerator.count)
    diagnostics.errors += [f"{finding.field}: {finding.text}" for finding in findings]
    if found and job.tasks > 1 and found.hosts > 1:
        diagnostics.error(f"tasks: {kind} has {found.hosts} hosts; a job has several tasks or several hosts")
    return found


def _is_gpu(kind: str) -> bool:
    try:
        return not accelerator(kind).is_tpu
    except (UnknownName, AmbiguousName, UnavailableName):
        return False


def _requirements(job: Job, target: GkeTarget, found: Slice | None) -> list[Requirement[GkePool]]:
    """Order them: the first that no pool meets is reported."""
    own = job.gke
    requirements = [_kind(job, found)]
    if job.accelerator and found is None:
        partition, sharing = (own.gpu_partition, own.gpu_sharing) if own else (None, None)
        requirements += [
            _same("gke.gpu_partition", "partitions", partition, lambda pool: pool.gpu_partition),
            _same("gke.gpu_sharing", "sharing", sharing, lambda pool: pool.gpu_sharing),
        ]
    if job.spot is not None:
        requirements.append(_capacity(bool(job.spot)))
    requirements.append(
        Requirement(
            "pools",
            lambda pool: target.queue is not None or not pool.queued,
            lambda pools: f"{_keys(pools)}: nodes come by ProvisioningRequest only, and the target has no queue",
        )
    )
    return requirements


def _kind(job: Job, found: Slice | None) -> Requirement[GkePool]:
    if job.accelerator is None:
        return Requirement(
            "accelerator",
            lambda pool: (not pool.gpus and not pool.tpu_chips) or bool(job.gke and job.gke.pools),
            lambda pools: f"is missing, and every pool has one: {_offered(pools)}",
        )
    if found is not None:
        return Requirement(
            "accelerator.type",
            lambda pool: (
                (pool.tpu_accelerator, pool.tpu_topology, pool.tpu_chips)
                == (found.gke_label, found.topology, found.chips_per_host)
            ),
            lambda pools: _no_slice(found, pools),
        )
    kind = job.accelerator.type
    if kind is None:
        return Requirement(
            "accelerator", lambda pool: pool.gpus > 0, lambda pools: f"no pool has GPUs: {_offered(pools)}"
        )
    try:
        label = accelerator(kind).gke_label
    except (UnknownName, AmbiguousName, UnavailableName) as error:
        said = str(error)
        return Requirement(
            "accelerator.type", lambda pool: False, lambda pools: f"{said}; the pools have {_offered(pools)}"
        )
    return Requirement(
        "accelerator.type",
        lambda pool: pool.accelerator == label and pool.gpus > 0,
        lambda pools: f"{kind} is on no pool; the pools have {_offered(pools)}",
    )


def _no_slice(found: Slice, pools: Sequence[GkePool]) -> str:
    wanted = f"{found.gke_label} {found.topology}"
    other = [pool for pool in pools if f"{pool.tpu_accelerator} {pool.tpu_topology}" == wanted]
    also = f"; for {other[0].key} write nodes: {other[0].hosts} and count: {other[0].tpu_chips}" if other else ""
    return f"{found.written} is {wanted}, {jobs.hosts(found)}; the pools have {_offered(pools)}{also}"


def _same(field: str, noun: str, wanted: str | None, has: Callable[[GkePool], str | None]) -> Requirement[GkePool]:
    def fault(pools: Sequence[GkePool]) -> str:
        offered = ", ".join(sorted({has(pool) or "none" for pool in pools}))
        return f"{'is missing' if wanted is None else f'is {wanted}'}; {noun} of the pools that fit: {offered}"

    return Requirement(field, lambda pool: has(pool) == wanted, fault)


def _capacity(spot: bool) -> Requirement[GkePool]:
    return Requirement(
        "spot",
        lambda pool: (pool.capacity == "spot") is spot,
        lambda pools: (
            f"{str(spot).lower()} asks for {'Spot' if spot else 'other than Spot'} nodes; the pools that fit are "
            + ", ".join(f"{pool.key} ({pool.capacity})" for pool in pools)
        ),
    )


def _keys(pools: Sequence[GkePool]) -> str:
    return ", ".join(pool.key for pool in pools)


def _offered(pools: Sequence[GkePool]) -> str:
    return ", ".join(dict.fromkeys(_accelerator(pool) for pool in pools))


def _accelerator(pool: GkePool) -> str:
    if pool.tpu_accelerator:
        return f"{pool.tpu_accelerator} {pool.tpu_topology} ({jobs.hosts_text(pool.hosts, pool.tpu_chips)})"
    return pool.accelerator or "none"


def _size(job: Job, pools: list[GkePool], found: Slice | None, extra: Size, diagnostics: Diagnostics) -> Size | None:
    """Default cpus and memory to the GPUs' share of the smallest node with that many, or a TPU host's whole node."""
    gpus = job.accelerator.count if job.accelerator and found is None else 0
    chips = found.chips_per_host if found else 0
    cpu_m = job.cpus * 1000 if job.cpus else None
    memory_mib = job.memory_mib
    if gpus or chips:
        # If no node has that many, `fit` reports it.
        shares = [_share(pool, gpus, chips, extra) for pool in pools if pool.gpus >= gpus] or [(1, 1)]
        cpu_m = cpu_m or min(share[0] for share in shares)
        memory_mib = memory_mib or min(share[1] for share in shares)
    for name, value in (("cpus", cpu_m), ("memory_mib", memory_mib)):
        if value is None:
            diagnostics.error(f"{name}: is missing, and a job without an accelerator has no share of a node")
    return Size(cpu_m, memory_mib, gpus, chips, job.disk_gib or 0) if cpu_m and memory_mib else None


def _share(pool: GkePool, gpus: int, chips: int, extra: Size) -> tuple[int, int]:
    part, whole = (chips, pool.tpu_chips) if chips else (gpus, pool.gpus)
    cpu_m = pool.cpu_m * part // whole - extra.cpu_m
    memory_mib = pool.memory_mib * part // whole - extra.memory_mib
    return max(cpu_m // 100 * 100, 1), max(memory_mib, 1)


def scheduling(choice: PoolChoice) -> dict[str, Any]:
    """Return the part of a pod's spec that selects these pools and tolerates their taints."""
    pools = choice.pools
    selector = {
        name: values.pop()
        for name in (GPU_LABEL, TPU_LABEL, TPU_TOPOLOGY)
        if len(values := {pool.labels.get(name, "") for pool in pools}) == 1 and values != {""}
    }
    keyed = all(POOL_LABEL in pool.labels for pool in pools)
    name = POOL_LABEL if keyed else NODEPOOL
    values = [pool.labels[POOL_LABEL] if keyed else pool.name for pool in pools]
    term = {"matchExpressions": [{"key": name, "operator": "In", "values": sorted(set(values))}]}
    found: dict[str, Any] = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}},
    }
    if selector:
        found["nodeSelector"] = selector
    if tolerations := _tolerations(pools):
        found["tolerations"] = tolerations
    return found


def _tolerations(pools: Sequence[GkePool]) -> list[dict[str, str]]:
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for taint in (taint for pool in pools for taint in pool.taints):
        effect = _EFFECTS[taint.effect]
        if taint.key in (GPUS, CHIPS):
            found[taint.key, "", effect] = {"key": taint.key, "operator": "Exists", "effect": effect}
        else:
            equal = {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": effect}
            found[taint.key, taint.value, effect] = equal
    return [found[key] for key in sorted(found)]

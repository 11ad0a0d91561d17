"""Cost of a job on a target, from catalogue prices, without a request to a cloud. A task counts as alone on its
instance; start-up and idle time of instances, volumes and data are left out. On VMs of its own, on Google Batch and on
Vertex AI the cost is read from the request that would be sent."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from accel import cost
from accel.catalog.accelerators import accelerator
from accel.catalog.node_prices import find_price, together, with_gpus
from accel.catalog.prices import Price
from accel.contract.gke import GkePool, GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.collector import Diagnostics

from ..backends.registry import of_target, platform_module
from ..model.job import Job
from ..model.keys import platform_name
from .cost_parts import Environment, JobCost, Rate, rate_of, unpriced_machines

FREE = "this machine, which nobody bills"


def of(job: Job, name: str, target: AnyTarget) -> JobCost:
    """Raise BadInputs where the target cannot run the job."""
    match target:
        case LocalTarget():
            attempts = (job.retries or 0) + 1
            return JobCost(name, "", (), job.timeout_s, attempts, job.tasks, None, False, (FREE,))
        case AwsBatchTarget():
            return _aws_batch(job, name, target)
        case GkeTarget():
            return _gke(job, name, target)
        case TpuVmTarget() | GceTarget():
            return _vms(job, name, target)
        case GoogleBatchTarget() | VertexTarget():
            return _google(job, name, target)


def _aws_batch(job: Job, name: str, target: AwsBatchTarget) -> JobCost:
    found = platform_module(target.kind, "price_rates").demand(job, target)
    environments = tuple(
        Environment(
            place.environment,
            place.capacity,
            tuple(_rate("aws", target.region, machine.name) for machine in place.machines),
            place.unknown,
        )
        for place in found.places
        if place.machines or place.unknown
    )
    notes = unpriced_machines(environments)
    unknown = dict.fromkeys(text for environment in environments for text in environment.unknown)
    notes += [f"{text}: not in the catalogue" for text in unknown]
    missing = bool(notes)
    if found.assumed:
        notes.append(
            f"attempts: {found.attempts} assumed: the definition says, and the target does not tell; retries would"
        )
    machines = job.tasks * job.nodes
    if job.nodes > 1:
        notes.append(f"{job.nodes} nodes: an instance each, and each is counted as a task")
    if found.timeout_s is None:
        notes.append("unbounded: neither the job nor its definition has a timeout_s")
    most = max((usd for each in environments if (usd := each.most) is not None), default=None)
    bounded = found.timeout_s is not None and most is not None
    worst = cost.attempts_usd(most or 0.0, found.timeout_s or 0, found.attempts, machines) if bounded else None
    return JobCost(
        name,
        target.region,
        environments,
        found.timeout_s,
        found.attempts,
        machines,
        worst,
        missing,
        tuple(notes),
        found.assumed,
    )


def _gke(job: Job, name: str, target: GkeTarget) -> JobCost:
    """Count each pool as an environment of one machine type, in the target's order, since GKE chooses the pool. The
    charge for the cluster itself is the stack's, not the job's."""
    diagnostics = Diagnostics()
    choice = platform_module(target.kind, "machines").choose(job, target, diagnostics)
    if choice is None:
        raise diagnostics.refusal()
    region = region_of(target.location)
    slice_name = choice.slice.name if choice.slice else None
    environments = tuple(_pool(region, pool, slice_name) for pool in choice.pools)
    notes = unpriced_machines(environments)
    missing = bool(notes)
    machines = job.tasks * (1 if slice_name else choice.nodes)
    if machines > job.tasks:
        notes.append(f"{choice.nodes} nodes: a machine each, and each is counted as a task")
    others = [pool.key for pool in choice.pools if pool.capacity in ("flex-start", "reservation")]
    if others:
        notes.append(f"{', '.join(others)}: counted at the on-demand price, though neither is paid so")
    again = job.lost_retries is None and choice.spot
    if again:
        notes.append("lost_retries: absent, so that a preempted job is run again however often, uncounted here")
    if job.timeout_s is None:
        notes.append("unbounded: the job has no timeout_s")
    attempts = 1 + (job.retries or 0) + (job.lost_retries or 0)
    most = max((usd for each in environments if (usd := each.most) is not None), default=None)
    worst = _worst(job, most, attempts, machines)
    return JobCost(name, region, environments, job.timeout_s, attempts, machines, worst, missing or again, tuple(notes))


def _worst(job: Job, most: float | None, attempts: int, machines: int) -> float | None:
    """Return the cost of all attempts at the highest price; None without a price, or where nothing bounds it."""
    if job.timeout_s is None or most is None:
        return None
    return cost.attempts_usd(most, job.timeout_s, attempts, machines)


def region_of(location: str) -> str:
    """Accept a region, or a zone such as us-central1-a."""
    return location if location.count("-") < 2 else location.rpartition("-")[0]


def _pool(region: str, pool: GkePool, slice_name: str | None) -> Environment:
    capacity = "spot" if pool.capacity == "spot" else "on-demand"
    if slice_name:
        return Environment(pool.key, capacity, (_rate("gcp", region, slice_name),))
    if pool.accelerator and pool.machine_type.startswith("n1-"):
        count = _attached(pool)
        found = with_gpus(region, pool.machine_type, pool.accelerator, count)
        return Environment(pool.key, capacity, (rate_of(f"{pool.machine_type}+{pool.accelerator}x{count}", found),))
    return Environment(pool.key, capacity, (_rate("gcp", region, pool.machine_type),))


def _attached(pool: GkePool) -> int:
    """Return 1 for a shared GPU, which is offered several times. GPUs that N1 machines take cannot be partitioned."""
    return pool.gpus if pool.gpu_sharing is None else 1


@lru_cache(maxsize=4096)
def _rate(cloud: str, region: str, machine: str) -> Rate:
    return rate_of(machine, find_price(cloud, region, machine))


def _vms(job: Job, name: str, target: TpuVmTarget | GceTarget) -> JobCost:
    """Count each zone as an environment of one machine type; leave out the boot disk and the bucket."""
    key = "0" * 64
    body = of_target(name, target).render(job, platform_name(job.name, key), key).body
    capacity = "spot" if body["spot"] else "on-demand"
    environments = tuple(Environment(zone, capacity, (_vm_rate(body, zone),)) for zone in body["zones"])
    notes = unpriced_machines(environments)
    missing = bool(notes)
    machines = int(body["machine"].get("slices", body["hosts"]))
    if machines > 1:
        notes.append(f"{machines} {'slices' if 'slices' in body['machine'] else 'machines'}: each is counted as a task")
    if target.reservation and not body["spot"]:
        notes.append("counted at the on-demand price, though a reservation is paid otherwise")
    timeout_s = body["timeout_s"]
    if timeout_s is None:
        notes.append("unbounded: the job has no timeout_s")
    attempts = 1 + int(body["retries"]) + int(body["lost_retries"])
    most = max((usd for each in environments if (usd := each.most) is not None), default=None)
    bounded = timeout_s is not None and most is not None
    worst = cost.attempts_usd(most or 0.0, timeout_s or 0, attempts, machines) if bounded else None
    region = str(body["zones"][0]).rpartition("-")[0]
    return JobCost(name, region, environments, timeout_s, attempts, machines, worst, missing, tuple(notes))


def _vm_rate(body: Mapping[str, Any], zone: str) -> Rate:
    region, machine = zone.rpartition("-")[0], str(body["type"])
    attached = body["machine"].get("properties", {}).get("guestAccelerators", [])
    if attached:
        kind, count = str(attached[0]["acceleratorType"]), int(attached[0]["acceleratorCount"])
        return rate_of(f"{machine}+{kind}x{count}", with_gpus(region, machine, kind, count))
    return rate_of(machine, find_price("gcp", region, machine))


FEE = "Compute Engine's prices; Vertex AI's own charge on top of them is not counted"
KEPT = "runs on machines of a persistent resource, which are paid whether the job runs or not"


def _google(job: Job, name: str, target: GoogleBatchTarget | VertexTarget) -> JobCost:
    """Count all machines of a job for as long as it runs; leave out disks and the bucket."""
    key = "0" * 64
    body = of_target(name, target).render(job, platform_name(job.name, key), key).body
    if isinstance(target, GoogleBatchTarget):
        return _batch(job, name, target, body["job"])
    return _vertex(job, name, target, body["customJob"]["jobSpec"])


def _batch(job: Job, name: str, target: GoogleBatchTarget, made: Mapping[str, Any]) -> JobCost:
    (group,) = made["taskGroups"]
    (instances,) = made["allocationPolicy"]["instances"]
    policy: Mapping[str, Any] = instances.get("policy", {})
    attempts = 1 + int(group["taskSpec"].get("maxRetryCount", 0))
    machines = math.ceil(int(group["taskCount"]) / int(group.get("taskCountPerNode", 1)))
    notes: list[str] = []
    if "machineType" not in policy:
        notes.append("the target's instance template says which machine, and it is not read here")
    parts = [(str(policy["machineType"]), policy.get("accelerators", []), 1)] if "machineType" in policy else []
    spot = policy.get("provisioningModel") == "SPOT"
    return _cost(job, name, target, parts, spot=spot, attempts=attempts, machines=machines, notes=notes)


def _vertex(job: Job, name: str, target: VertexTarget, spec: Mapping[str, Any]) -> JobCost:
    parts: list[tuple[str, Sequence[Mapping[str, Any]], int]] = []
    for pool in spec["workerPoolSpecs"]:
        if machine := pool.get("machineSpec"):
            kind, count = machine.get("acceleratorType"), machine.get("acceleratorCount")
            gpus = [{"type": kind, "count": count}] if kind else []
            parts.append((str(machine["machineType"]), gpus, int(pool["replicaCount"])))
    kept = "persistentResourceId" in spec
    spot = spec.get("scheduling", {}).get("strategy") == "SPOT"
    attempts = 1 + (job.retries or 0) + (job.lost_retries or 0)
    return _cost(job, name, target, parts, spot=spot, attempts=attempts, machines=1, notes=[KEPT if kept else FEE])


def _cost(
    job: Job,
    name: str,
    target: GoogleBatchTarget | VertexTarget,
    parts: Sequence[tuple[str, Sequence[Mapping[str, Any]], int]],
    *,
    spot: bool,
    attempts: int,
    machines: int,
    notes: list[str],
) -> JobCost:
    """Take as `parts` the machine type, accelerators and number of each kind of machine that a task has."""
    known_as = [_priced(target.region, machine, gpus) for machine, gpus, _ in parts]
    counts = [count for _, _, count in parts]
    words = [f"{n} x {machine}" if n > 1 else machine for (machine, _), n in zip(known_as, counts, strict=True)]
    every = [price for (_, price), n in zip(known_as, counts, strict=True) for _ in range(n)]
    rates = (rate_of(" + ".join(words), together(*every)),) if every else ()
    environments = (Environment(target.region, "spot" if spot else "on-demand", rates),)
    notes = unpriced_machines(environments) + notes
    if target.reservation and not spot:
        notes.append("counted at the on-demand price, though a reservation is paid otherwise")
    if job.timeout_s is None:
        notes.append("unbounded: the job has no timeout_s")
    most = environments[0].most
    worst = _worst(job, most, attempts, machines)
    return JobCost(
        name, target.region, environments, job.timeout_s, attempts, machines, worst, most is None, tuple(notes)
    )


def _priced(region: str, machine: str, gpus: Sequence[Mapping[str, Any]]) -> tuple[str, Price]:
    """Return a machine in words, and its price. Only on N1 machines do GPUs have a price of their own."""
    if gpus and machine.startswith("n1-"):
        kind, count = accelerator(str(gpus[0]["type"])).name, int(gpus[0]["count"])
        return f"{machine}+{kind}x{count}", with_gpus(region, machine, kind, count)
    return machine, find_price("gcp", region, machine)

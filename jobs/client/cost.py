"""What a job costs on a target, from catalogue prices: no cloud is asked.

A task is taken to have its instance to itself; start-up and idle time of instances, volumes and data are left out.
"""

from functools import lru_cache

from accel import cost
from accel.catalog.node_prices import find_price, with_gpus
from accel.contract.gke import GkePool, GkeTarget
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget
from accel.contract.google_vms import GceTarget, TpuVmTarget
from accel.contract.targets import AnyTarget, AwsBatchTarget, LocalTarget
from accel.diagnostics.collector import Diagnostics

from ..model.job import Job
from .cost_parts import Environment, JobCost, Rate, rate_of, unpriced

FREE = "this machine, which nobody bills"


def of(job: Job, name: str, target: AnyTarget) -> JobCost:
    """The cost of a job on a target that can run it. Raises BadInputs where it cannot."""
    match target:
        case LocalTarget():
            attempts = (job.retries or 0) + 1
            return JobCost(name, "", (), job.timeout_s, attempts, job.tasks, None, False, (FREE,))
        case AwsBatchTarget():
            return _aws_batch(job, name, target)
        case GkeTarget():
            return _gke(job, name, target)
        case TpuVmTarget() | GceTarget():
            from .cost_vm import of as of_vms

            return of_vms(job, name, target)
        case GoogleBatchTarget() | VertexTarget():
            from .cost_google import of as of_google

            return of_google(job, name, target)


def _aws_batch(job: Job, name: str, target: AwsBatchTarget) -> JobCost:
    from ..backends.aws_batch.price_rates import demand

    found = demand(job, target)
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
    notes = unpriced(environments)
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
    """A pool is an environment with one machine type. GKE chooses the pool, so that their order is that of the target;
    the charge for the cluster itself is the stack's, not the job's."""
    from ..backends.gke.machines import choose

    diagnostics = Diagnostics()
    choice = choose(job, target, diagnostics)
    if choice is None:
        raise diagnostics.refusal()
    region = region_of(target.location)
    slice_name = choice.slice.name if choice.slice else None
    environments = tuple(_pool(region, pool, slice_name) for pool in choice.pools)
    notes = unpriced(environments)
    missing = bool(notes)
    machines = job.tasks * (1 if slice_name else choice.nodes)
    if machines > job.tasks:
        notes.append(f"{choice.nodes} nodes: a machine each, and each is counted as a task")
    others = [pool.key for pool in choice.pools if pool.capacity in ("flex-start", "reservation")]
    if others:
        notes.append(f"{', '.join(others)}: counted at the on-demand price, though neither is paid so")
    again = job.lost_retries is None and choice.spot
    if again:
        notes.append("lost_retries: absent, so that what Spot takes away is run again however often, uncounted here")
    if job.timeout_s is None:
        notes.append("unbounded: the job has no timeout_s")
    attempts = 1 + (job.retries or 0) + (job.lost_retries or 0)
    most = max((usd for each in environments if (usd := each.most) is not None), default=None)
    bounded = job.timeout_s is not None and most is not None
    worst = cost.attempts_usd(most or 0.0, job.timeout_s or 0, attempts, machines) if bounded else None
    return JobCost(name, region, environments, job.timeout_s, attempts, machines, worst, missing or again, tuple(notes))


def region_of(location: str) -> str:
    """The region of a location of Google Cloud, which is a region or a zone such as us-central1-a."""
    return location if location.count("-") < 2 else location.rpartition("-")[0]


def _pool(region: str, pool: GkePool, slice_name: str | None) -> Environment:
    """With GPUs that are attached to its machine, if it has such; TPUs are priced by the slice."""
    capacity = "spot" if pool.capacity == "spot" else "on-demand"
    if slice_name:
        return Environment(pool.key, capacity, (_rate("gcp", region, slice_name),))
    if pool.accelerator and pool.machine_type.startswith("n1-"):
        count = _attached(pool)
        found = with_gpus(region, pool.machine_type, pool.accelerator, count)
        return Environment(pool.key, capacity, (rate_of(f"{pool.machine_type}+{pool.accelerator}x{count}", found),))
    return Environment(pool.key, capacity, (_rate("gcp", region, pool.machine_type),))


def _attached(pool: GkePool) -> int:
    """GPUs of a node; none that N1 machines take can be partitioned, and shared ones are offered several times."""
    return pool.gpus if pool.gpu_sharing is None else 1


@lru_cache(maxsize=4096)
def _rate(cloud: str, region: str, machine: str) -> Rate:
    return rate_of(machine, find_price(cloud, region, machine))

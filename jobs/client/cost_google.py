"""What a job costs on Google Batch and on Vertex AI, from the request that would be sent."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from accel import cost
from accel.catalog.accelerators import accelerator
from accel.catalog.node_prices import find_price, together, with_gpus
from accel.catalog.prices import Price
from accel.contract.google_jobs import GoogleBatchTarget, VertexTarget

from ..backends.registry import of_target
from ..model.job import Job
from ..model.keys import platform_name
from .cost_parts import Environment, JobCost, rate_of, unpriced

FEE = "Compute Engine's prices; Vertex AI's own charge on top of them is not counted"
KEPT = "runs on machines of a persistent resource, which are paid whether the job runs or not"


def of(job: Job, name: str, target: GoogleBatchTarget | VertexTarget) -> JobCost:
    """The machines of a job, all of them for as long as it runs; disks and the bucket are not counted. Raises BadInputs
    for a job that the target cannot run."""
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
    """`parts`: machine type, accelerators and number of each kind of machine that a task has."""
    known_as = [_priced(target.region, machine, gpus) for machine, gpus, _ in parts]
    counts = [count for _, _, count in parts]
    words = [f"{n} x {machine}" if n > 1 else machine for (machine, _), n in zip(known_as, counts, strict=True)]
    every = [price for (_, price), n in zip(known_as, counts, strict=True) for _ in range(n)]
    rates = (rate_of(" + ".join(words), together(*every)),) if every else ()
    environments = (Environment(target.region, "spot" if spot else "on-demand", rates),)
    notes = unpriced(environments) + notes
    if target.reservation and not spot:
        notes.append("counted at the on-demand price, though a reservation is paid otherwise")
    if job.timeout_s is None:
        notes.append("unbounded: the job has no timeout_s")
    most = environments[0].most
    bounded = job.timeout_s is not None and most is not None
    worst = cost.attempts_usd(most or 0.0, job.timeout_s or 0, attempts, machines) if bounded else None
    return JobCost(
        name, target.region, environments, job.timeout_s, attempts, machines, worst, most is None, tuple(notes)
    )


def _priced(region: str, machine: str, gpus: Sequence[Mapping[str, Any]]) -> tuple[str, Price]:
    """A machine in words, and its price. GPUs have prices of their own on N1 machines alone; others have theirs
    inside."""
    if gpus and machine.startswith("n1-"):
        kind, count = accelerator(str(gpus[0]["type"])).name, int(gpus[0]["count"])
        return f"{machine}+{kind}x{count}", with_gpus(region, machine, kind, count)
    return machine, find_price("gcp", region, machine)

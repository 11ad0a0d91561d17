"""What a job costs on machines of its own, from the request that would be sent."""

from collections.abc import Mapping
from typing import Any

from accel import cost
from accel.catalog.node_prices import find_price, with_gpus
from accel.contract.google_vms import GceTarget, TpuVmTarget

from ..backends.registry import of_target
from ..model.job import Job
from ..model.keys import platform_name
from .cost_parts import Environment, JobCost, Rate, rate_of, unpriced


def of(job: Job, name: str, target: TpuVmTarget | GceTarget) -> JobCost:
    """A zone is an environment with one type of machine; the boot disk and the bucket are not counted. Raises BadInputs
    for a job that the target cannot run."""
    key = "0" * 64
    body = of_target(name, target).render(job, platform_name(job.name, key), key).body
    capacity = "spot" if body["spot"] else "on-demand"
    environments = tuple(Environment(zone, capacity, (_rate(body, zone),)) for zone in body["zones"])
    notes = unpriced(environments)
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


def _rate(body: Mapping[str, Any], zone: str) -> Rate:
    region, machine = zone.rpartition("-")[0], str(body["type"])
    attached = body["machine"].get("properties", {}).get("guestAccelerators", [])
    if attached:
        kind, count = str(attached[0]["acceleratorType"]), int(attached[0]["acceleratorCount"])
        return rate_of(f"{machine}+{kind}x{count}", with_gpus(region, machine, kind, count))
    return rate_of(machine, find_price("gcp", region, machine))

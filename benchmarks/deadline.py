"""`spot: prefer` against always Spot and always on demand: the same jobs meet the same seeded schedules of reclaims and
stockouts. Machines cost what the catalogue has for MACHINE."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from accel.catalog.prices import price
from benchmarks.reclaim_schedules import (
    ALWAYS_SPOT,
    KINDS,
    NEVER_ENDS,
    Outcome,
    Policy,
    Task,
    on_demand,
    prefer,
    run,
    schedule,
    task,
)
from jobs.model.deadline import decide

from .measure import Failed, Line

COUNT = 1000
MACHINE = ("aws", "us-east-1", "p4d.24xlarge")
POLICIES: dict[str, Policy] = {"always Spot": ALWAYS_SPOT, "spot: prefer": prefer, "on demand": on_demand}
DECISIONS = 100_000
DECISION_LIMIT_US = 50


def measure(scratch: Path) -> Iterator[Line]:
    """Allow no missed deadline, and at most one checkpoint interval of work done again for each reclaim and move."""
    paid = price(*MACHINE)
    if paid.spot is None or paid.on_demand is None:
        raise Failed(f"{MACHINE[2]}: {paid.why_unknown}")
    jobs = [task(seed) for seed in range(COUNT)]
    found = {name: _runs(jobs, policy) for name, policy in POLICIES.items()}
    late = {name: sum(_late(*each) for each in zip(jobs, runs, strict=True)) for name, runs in found.items()}
    usd = {name: sum(each.usd(paid.spot, paid.on_demand) for each in runs) for name, runs in found.items()}
    ours = found["spot: prefer"]
    yield Line(f"deadlines missed in {COUNT} schedules, spot: prefer", late["spot: prefer"], "", limit=0)
    yield Line("the same, always Spot", late["always Spot"], "")
    yield Line("the same, on demand from the start", late["on demand"], "", limit=0)
    name = f"cost of all, spot: prefer ({MACHINE[2]}, {paid.spot:.4g} and {paid.on_demand:.4g} USD an hour)"
    yield Line(name, usd["spot: prefer"], "USD", "on demand", usd["on demand"], limit=usd["on demand"])
    yield Line("the same", usd["spot: prefer"], "USD", "always Spot, which misses deadlines", usd["always Spot"])
    dearer = [
        each.usd(paid.spot, paid.on_demand) / other.usd(paid.spot, paid.on_demand)
        for each, other in zip(ours, found["on demand"], strict=True)
    ]
    yield Line("schedules in which it cost more than on demand", sum(ratio > 1 for ratio in dearer), "")
    yield Line("the dearest of them, as a share of on demand", max(dearer), "")
    yield Line("schedules in which it stayed on Spot to the end", sum(not each.moved for each in ours), "")
    yield Line("reclaims", sum(each.reclaims for each in ours), "")
    redone = [_redone(*each) for each in zip(jobs, ours, strict=True)]
    yield Line("work done again for a reclaim or move, in checkpoint intervals, at most", max(redone), "", limit=1)
    started = time.perf_counter()
    for number in range(DECISIONS):
        decide(number, 1e9, 1.0, 900.0)
    took_us = 1e6 * (time.perf_counter() - started) / DECISIONS
    yield Line("one decision", took_us, "us", limit=DECISION_LIMIT_US)


def _runs(jobs: list[Task], policy: Policy) -> list[Outcome]:
    return [
        run(job, schedule(KINDS[seed % len(KINDS)], seed, NEVER_ENDS * job.work_s), policy, seed)
        for seed, job in enumerate(jobs)
    ]


def _late(job: Task, found: Outcome) -> bool:
    return found.ended_s > job.deadline_s


def _redone(job: Task, found: Outcome) -> float:
    times = found.reclaims + found.moved
    return found.redone_s / (times * job.checkpoint_s) if times else 0.0

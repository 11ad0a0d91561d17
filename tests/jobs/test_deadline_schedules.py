"""A thousand seeded schedules of reclaims: the deadline is kept in each, at a cost between Spot and on demand."""

from __future__ import annotations

import pytest

from benchmarks.reclaim_schedules import (
    ALWAYS_SPOT,
    KINDS,
    NEVER_ENDS,
    Kind,
    Outcome,
    Policy,
    Schedule,
    Task,
    on_demand,
    prefer,
    run,
    schedule,
    task,
)
from jobs.model import deadline

COUNT = 1000
SPOT_USD, ON_DEMAND_USD = 1.0, 3.0


@pytest.mark.parametrize("kind", KINDS)
def test_every_deadline_is_kept_at_a_cost_between(kind: Kind) -> None:
    usd = dict.fromkeys(("spot", "prefer", "on-demand"), 0.0)
    late, moved = 0, 0
    for seed in range(COUNT // len(KINDS)):
        job = task(seed)
        events = schedule(kind, seed, NEVER_ENDS * job.work_s)
        policies: dict[str, Policy] = {"spot": ALWAYS_SPOT, "prefer": prefer, "on-demand": on_demand}
        found = {name: run(job, events, each, seed) for name, each in policies.items()}
        assert found["prefer"].ended_s <= job.deadline_s, (kind, seed)
        for name, each in found.items():
            assert each.redone_s <= (each.reclaims + each.moved) * job.checkpoint_s, (kind, seed, name)
            usd[name] += each.usd(SPOT_USD, ON_DEMAND_USD)
        late += found["spot"].ended_s > job.deadline_s
        moved += found["prefer"].moved
    assert usd["spot"] < usd["prefer"] < usd["on-demand"], usd
    assert late > 0 and 0 < moved < COUNT // len(KINDS), "schedules that ask nothing of a policy prove nothing"


def test_the_law_is_broken_by_a_policy_that_waits_too_long() -> None:
    def careless(now: float, saved_s: float, job: Task) -> bool:
        return now + job.work_s - saved_s >= job.deadline_s

    late = [
        seed
        for seed in range(30)
        if run(job := task(seed), schedule("bursty", seed, NEVER_ENDS * job.work_s), careless, seed).ended_s
        > job.deadline_s
    ]
    assert late


def test_spot_that_never_comes_costs_nothing_and_the_job_ends_in_time() -> None:
    job = Task(3600, deadline.shortest_deadline_s(3600, 600) + 7200, 600, 60, 500, 600)
    found = run(job, Schedule((), ((0.0, 1e9),)), prefer, 1)
    assert found.moved and found.spot_s == 0 and found.ended_s <= job.deadline_s


def test_spot_that_stays_is_used_to_the_end() -> None:
    job = Task(3600, deadline.shortest_deadline_s(3600, 600) + 7200, 600, 60, 500, 600)
    found = run(job, Schedule((), ()), prefer, 1)
    assert not found.moved and found.on_demand_s == 0 and 3600 <= found.spot_s <= 4100
    assert found == Outcome(found.ended_s, found.spot_s)


def test_a_seed_is_one_schedule() -> None:
    assert schedule("poisson", 7, 1e6) == schedule("poisson", 7, 1e6) != schedule("poisson", 8, 1e6)
    assert task(7) == task(7)

"""What is held for a job, and what one that has ended has cost: plain values."""

from dataclasses import replace
from typing import Any

import pytest

from accel.contract.allowances import Allowance, Allowances
from accel.diagnostics.errors import BadInput, OverLimit
from jobs.backends.base import JobRef
from jobs.client.allowances.price import Price, bill, fitting, micro, price, team_of, usd
from jobs.client.allowances.reservation import MICRO
from jobs.client.cost_parts import Environment, JobCost, Rate
from jobs.model.job import Job
from tests.jobs.spend.books import ended, hold

REF = JobRef("fake", "", "a")
JOB = Job(name="train", timeout_s=3600)
RATE = Rate("g5.xlarge", 1.006, 0.4, 0.3, ("2026-01-01",), "high")
COST = JobCost("gpu", "us-east-1", (Environment("spot", "spot", (RATE,)),), 3600, 2, 4, 8.048, False, ())


def test_the_worst_case_is_held_and_the_price_of_the_capacity_settles() -> None:
    found = price(replace_job(tasks=4), COST, "research", Allowance(usd=10))
    assert found == Price(8_048_000, 400_000, 4, 4, 2, 3600)
    dear = replace(COST, environments=(*COST.environments, Environment("steady", "on-demand", (RATE,))))
    assert price(JOB, dear, "research", Allowance(usd=10)).usd_hour == 1_006_000


def replace_job(**values: Any) -> Job:
    return JOB.model_copy(update=values)


def test_a_job_that_nothing_bounds_is_refused_whatever_is_configured() -> None:
    unbounded = replace(COST, timeout_s=None, worst=None)
    for unpriced in ("refuse", "warn"):
        with pytest.raises(OverLimit, match="nothing bounds what a job without timeout_s costs") as refused:
            price(JOB, unbounded, "research", Allowance(usd=10, unpriced=unpriced))
        assert refused.value.exit_code == 5


def test_a_price_that_is_not_known() -> None:
    unknown = replace(COST, worst=None, at_least=True, notes=("p9.huge: no price is known",))
    with pytest.raises(OverLimit, match=r"what the job costs at most is not known: p9.huge: no price is known"):
        price(JOB, unknown, "research", Allowance(usd=10))
    found = price(JOB, unknown, "research", Allowance(usd=10, unpriced="warn"))
    assert found.usd == 0 and "nothing of it is held: p9.huge" in found.warnings[0]
    partly = replace(COST, at_least=True, notes=("p9.huge: no price is known",))
    with pytest.raises(OverLimit):
        price(JOB, partly, "research", Allowance(usd=10))
    assert "$8.05 of it is held" in price(JOB, partly, "r", Allowance(usd=10, unpriced="warn")).warnings[0]


def test_who_pays() -> None:
    teams = Allowances(teams={"research": Allowance(usd=1), "vision": Allowance(usd=1)}, default_team="research")
    assert team_of(JOB, teams) == "research"
    assert team_of(replace_job(labels={"team": "vision"}), teams) == "vision"
    with pytest.raises(BadInput, match=r"labels.team: .*visoin.* has no allowance.*vision"):
        team_of(replace_job(labels={"team": "visoin"}), teams)
    with pytest.raises(BadInput, match=r"labels.team: is missing: who pays for train\? .*: research, vision"):
        team_of(JOB, teams.model_copy(update={"default_team": None}))


@pytest.mark.parametrize(
    "changes, status, wanted, why",
    [
        ({}, ended(REF, 1800), 5, ""),
        ({}, ended(REF, 7200), 10, ""),
        ({}, ended(REF, 0, started=None, attempts=0), 0, "it never started"),
        ({}, ended(REF, 0, started=None), 10, "counted whole: its platform does not say when it ran"),
        ({}, ended(REF, 0, stopped=None), 10, "counted whole: its platform does not say when it ran"),
        # Attempts before the last one count whole, but never for longer than the job was there.
        ({"attempts": 3, "usd": 30 * MICRO}, ended(REF, 1800, attempts=2, created=None), 15, ""),
        ({"attempts": 3, "usd": 30 * MICRO}, ended(REF, 1800, attempts=2), 5, ""),
        ({"machines": 4, "usd": 40 * MICRO}, ended(REF, 900), 10, ""),
        # A clock that was set back.
        ({}, ended(REF, -5), 0, ""),
    ],
)
def test_what_an_ended_job_has_cost(changes: dict[str, Any], status: Any, wanted: float, why: str) -> None:
    assert bill(replace(hold("a"), **changes), status) == (wanted * MICRO, why)


def test_amounts() -> None:
    assert (micro(0.1), micro(1e-7), micro(0), micro(1.0000001)) == (100_000, 1, 0, 1_000_001)
    assert [usd(n) for n in (0, 1, 1_234_500_000, -10_000, 8_048_000)] == [
        "$0.00", "$0.000001", "$1,234.50", "-$0.01", "$8.05"
    ]  # fmt: skip


def test_what_would_fit() -> None:
    found = Price(40 * MICRO, 10 * MICRO, 4, 4, 1, 3600)
    assert fitting([found], 30 * MICRO) == "timeout_s of at most 2700 would fit (it has 3600), or 3 of its 4 tasks"
    assert fitting([found], 0) == fitting([found], -5) == fitting([found], 1) == "nothing of it fits"
    assert [fitting([found] * 3, free * MICRO) for free in (-1, 39, 40, 119, 120)] == [
        f"{many} of them would fit" for many in (0, 0, 1, 2, 3)
    ]

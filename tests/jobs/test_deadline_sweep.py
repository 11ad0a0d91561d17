"""A sweep with a deadline: each task is a job that moves to on demand by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import Result

from accel.contract.targets import write
from accel.contract.variables import PLAN
from accel.diagnostics.errors import BadInput
from jobs.backends.base import Backend
from jobs.backends.registry import of_target
from jobs.client import spot_fallback
from jobs.client.deadline.plan import Plan, plan_job, plan_of, second
from jobs.model import sweep_tasks
from jobs.model.keys import platform_name
from tests.jobs.test_deadline_follow import HOUR, KEY, KNOWN, REF, TARGETS, Sent, World, follower, preferring

Invoke = Callable[..., Result]
GRID = {"grid": {"RATE": ["0.1", "0.2"], "SIZE": ["1", "2", "3"]}}


@pytest.fixture
def submit(invoke: Invoke, tmp_path: Path) -> Callable[..., Result]:
    def run(*more: str, **fields: Any) -> Result:
        (tmp_path / "targets.json").write_text(json.dumps(write(TARGETS)))
        job = preferring().model_dump(exclude_defaults=True) | {"sweep": GRID, **fields}
        (tmp_path / "job.yaml").write_text(json.dumps(job))
        common = ("--targets", str(tmp_path / "targets.json"), "submit", str(tmp_path / "job.yaml"))
        return invoke(*common, "--key", "k", *more)

    return run


@pytest.mark.parametrize("to", [("--to", "batch"), ("--to", "gke"), ("--to", "spot", "--then-to", "steady")])
def test_each_task_is_a_job_with_a_plan_and_parameters_of_its_own(submit: Callable[..., Result], to: Any) -> None:
    fields = {"accelerator": {"type": "a100-40gb"}} if "gke" in to else {}
    done = submit(*to, "--dry-run", **fields)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [each["name"].rpartition("-")[0] for each in found] == [f"a-{index}" for index in range(6)]
    assert len({each["key"] for each in found}) == 6
    for index, each in enumerate(found):
        told = {name: sweep_tasks.variable(each["body"], name) for name in ("RATE", "SIZE", PLAN, "ACCEL_SWEEP_ONLY")}
        assert told == {
            "RATE": ["0.1", "0.2"][index // 3], "SIZE": str(index % 3 + 1), PLAN: "***", "ACCEL_SWEEP_ONLY": str(index),
        }  # fmt: skip
        sweep = sweep_tasks.find_sweep(each["body"])
        assert sweep is not None and list(sweep.places) == [index] and sweep.params(index)["RATE"] == told["RATE"]


def test_the_job_on_demand_is_the_same_task() -> None:
    (_, _, third, *_) = sweep_tasks.apart(preferring(sweep=GRID), "aws-batch")
    ready = plan_job(third, "spot", TARGETS["spot"], "steady", KNOWN)
    sent = of_target("spot", TARGETS["spot"]).render(ready, platform_name(third.name, KEY), KEY)
    plan = plan_of(cast(Backend, Sent(sent)), REF)
    assert plan == Plan(third, "steady")
    _, request = second(plan, KNOWN, KEY)
    sweep = sweep_tasks.find_sweep(request.body)
    assert sweep is not None and list(sweep.places) == [2] and sweep_tasks.variable(request.body, "SIZE") == "3"


def test_what_cannot_be_is_refused_in_a_line(submit: Callable[..., Result]) -> None:
    for more, fields, said in (
        (("--wait",), {}, "each task of the sweep is a job of its own there, 6 in all: submit them without waiting"),
        ((), {"parallelism": 2}, "parallelism: is 2; with spot: prefer each of the 6 tasks is a job of its own"),
        ((), {"sweep": {"grid": {"N": [str(each) for each in range(1001)]}}}, "sweep: has 1001 tasks, each a job that"),
    ):
        done = submit("--to", "batch", "--no-quota", *more, **fields)
        assert done.exit_code == 2 and said in done.stderr, done.output
    with pytest.raises(BadInput, match="vertex each of the 6"):
        sweep_tasks.apart(preferring(sweep=GRID, parallelism=2).model_copy(update={"spot": True}), "vertex")


def test_many_are_named_by_their_target(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = sweep_tasks.apart(preferring(sweep=GRID), "google-batch")
    pairs: list[Any] = [
        (job.model_copy(update={"env": {**job.env, PLAN: "x"}}), (None, type("R", (), {"target": "batch"})))
        for job in jobs
    ]
    spot_fallback.alone(pairs, [f"ref-{each}" for each in range(6)])  # pyright: ignore[reportArgumentType]
    told = capsys.readouterr().err.strip()
    assert told.endswith("them to on demand unless `accel-jobs tend --to batch --every 30s` runs")
    spot_fallback.alone(pairs[:2], ["ref-0", "ref-1"])  # pyright: ignore[reportArgumentType]
    assert "unless `accel-jobs tend ref-0 ref-1 --every 30s` runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("between", "slack", "moved"),
    [(30, 300, False), (400, 300, True), (10 * HOUR, 1000, False)],
    ids=["seldom", "slow", "slept"],
)
def test_looks_that_take_long_move_a_job_earlier(between: int, slack: int, moved: bool) -> None:
    """One who slept does not take the next look for as late as this one."""
    world = World(now=1000 + 40 * HOUR - 2 * HOUR - 900 - slack - between)
    looks = follower(world, deadline="40h")
    looks.look()
    assert world.reason is None
    world.now += between
    looks.look()
    assert bool(world.reason) is moved

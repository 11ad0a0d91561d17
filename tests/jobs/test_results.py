"""`results`, and `retry` of a sweep: tasks that really run on this machine."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from accel.diagnostics.errors import CloudSilent, NotFound
from jobs.backends.base import JobRef, LogLine, Phase, Request, Status
from jobs.backends.tasks import TaskStatus
from jobs.client import results
from jobs.client.results import find_jobs, rank, read, rows
from jobs.runtime import lines
from tests.support.sweeping import sweep

Invoke = Callable[..., Result]
ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def submitted(home: Path, invoke: Invoke) -> Callable[..., str]:
    """Submits a job file of the given fields, and waits for its end."""
    (home / ".accel").mkdir()
    (home / ".accel" / "targets.json").write_text(json.dumps({"here": {"kind": "local", "schema": 1, "root": ROOT}}))

    def run(*more: str, code: int = 0, **fields: Any) -> str:
        (home / "job.yaml").write_text(yaml.safe_dump(fields))
        done = invoke("submit", "job.yaml", "--to", "here", "--wait", *more)
        assert done.exit_code == code, done.output
        return done.stdout.strip()

    return run


def table(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_sweep_its_failed_tasks_again_and_the_results_of_both(
    submitted: Callable[..., str], home: Path, invoke: Invoke
) -> None:
    mended = home / "mended"
    first = submitted(code=125, **sweep(mended))
    found = table(invoke("results", first, "-o", "json"))
    assert [each["task"] for each in found] == [5, 3, 4, 1, 2, 0]
    assert found[0]["params"] == {"RATE": "0.3", "SIZE": "2"}
    assert found[0]["metrics"] == {"accuracy": pytest.approx(1.2), "loss": pytest.approx(1 / 0.3)}
    assert {each["task"]: (each["state"], each["exit_code"]) for each in found if each["exit_code"]} == {
        2: ("FAILED", 3),
        3: ("FAILED", 3),
    }

    mended.touch()
    again = invoke("retry", first, "--key", "k")
    assert again.exit_code == 0 and "2 of 6 tasks run again: 2-3" in again.stderr
    second = again.stdout.strip()
    assert invoke("retry", first, "--key", "k").stdout.strip() == second
    assert invoke("wait", second).exit_code == 0
    # Its tasks are the sweep's second and third, by their numbers there.
    assert {line.partition("] ")[2] for line in invoke("logs", second).stdout.splitlines() if " of " in line} == {
        "task 2 of 6",
        "task 3 of 6",
    }
    whole = table(invoke("results", second, "-o", "json"))
    assert [each["task"] for each in whole] == [5, 3, 4, 1, 2, 0]
    assert {each["state"] for each in whole} == {"SUCCEEDED"}
    assert {each["task"]: each["job"] for each in whole} == {
        index: second if index in (2, 3) else first for index in range(6)
    }
    assert table(invoke("results", first, second, "-o", "json")) == whole

    none = invoke("retry", second)
    assert none.exit_code == 2 and "none of its 2 tasks has failed" in none.stderr
    every = invoke("retry", second, "--all")
    assert every.exit_code == 0
    assert invoke("wait", every.stdout.strip()).exit_code == 0


def test_forms_of_the_table(submitted: Callable[..., str], home: Path, invoke: Invoke) -> None:
    (home / "mended").touch()
    ref = submitted(**sweep(home / "mended"))
    head, first, *rest = invoke("results", ref).stdout.splitlines()
    assert head.split() == ["TASK", "RATE", "SIZE", "STATE", "ATTEMPTS", "ACCURACY", "LOSS"]
    assert first.split() == ["5", "0.3", "2", "SUCCEEDED", "1", "1.2", "3.33333"]
    assert len(rest) == 5
    written = list(csv.DictReader(StringIO(invoke("results", ref, "-o", "csv").stdout)))
    assert [each["task"] for each in written] == ["5", "3", "4", "1", "2", "0"]
    assert float(written[0]["loss"]) == pytest.approx(1 / 0.3) and written[0]["job"] == ref
    assert invoke("results", ref, "-o", "id", "--by", "loss", "--min").stdout.split() == ["4", "5", "2", "3", "0", "1"]
    assert invoke("results", ref, "-o", "id", "--min").stdout.split() == ["0", "1", "2", "4", "3", "5"]
    for arguments, said in {
        ("--by", "loss"): "--by loss: is the highest best, or the lowest?",
        ("--by", "los", "--max"): "metric los: no task reported it; did you mean loss?",
        ("-o", "cvs"): "unknown value cvs; did you mean csv",
    }.items():
        wrong = invoke("results", ref, *arguments)
        assert wrong.exit_code == 2 and said in wrong.stderr


def test_a_job_without_a_sweep_or_metrics_has_its_tasks(
    submitted: Callable[..., str], home: Path, invoke: Invoke
) -> None:
    ref = submitted(name="plain", command=["sh", "-c", "echo hello"], tasks=3)
    assert [each["metrics"] for each in table(invoke("results", ref, "-o", "json"))] == [{}, {}, {}]
    done = invoke("results", ref, "--by", "loss", "--min")
    assert done.exit_code == 0 and "no task has reported metrics" in done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()[1:]] == [
        ["0", "SUCCEEDED"], ["1", "SUCCEEDED"], ["2", "SUCCEEDED"],
    ]  # fmt: skip
    # Without a sweep no part of it can run again: all of it does, as before.
    assert invoke("retry", ref).exit_code == 0


def test_names_that_meet_are_told_apart(submitted: Callable[..., str], home: Path, invoke: Invoke) -> None:
    text = """echo '@accel {"at": 1, "step": 4, "metrics": {"step": 7, "loss": 2}}'"""
    ref = submitted(name="odd", command=["sh", "-c", text], sweep={"grid": {"loss": ["l2"], "job": ["night"]}})
    (row,) = csv.DictReader(StringIO(invoke("results", ref, "-o", "csv").stdout))
    assert (row["step"], row["step (metric)"], row["loss"], row["loss (metric)"]) == ("4", "7", "l2", "2")
    assert (row["job"], row["job (parameter)"]) == (ref, "night")


def test_the_sample_program_is_tuned(submitted: Callable[..., str], home: Path, invoke: Invoke) -> None:
    """What a sweep exports is what examples/train.py reads."""
    fields = yaml.safe_load(Path(ROOT, "examples/jobs/digits-sweep.yaml").read_text())
    ref = submitted("--set", "env.EPOCHS=1", "--set", "sweep.grid.LEARNING_RATE=[0.3, 0.03]", **fields)
    log = invoke("logs", ref).stdout
    for task, rate in ((0, "0.3"), (1, "0.03")):
        assert f"LEARNING_RATE={rate}" in "".join(line for line in log.splitlines(True) if f"[task {task}]" in line)
    assert {each["params"]["LEARNING_RATE"]: each["state"] for each in table(invoke("results", ref, "-o", "json"))} == {
        "0.3": "SUCCEEDED",
        "0.03": "SUCCEEDED",
    }


class Cloud:
    """A backend of one array, whose logs come late, or not at all."""

    def __init__(self, count: int, body: dict[str, Any]) -> None:
        self.count, self.body = count, body
        self.at_once = self.most = self.asked = 0

    def resubmit_request(self, ref: JobRef, key: str) -> Request:
        return Request(ref.kind, "t", ref.id, key, self.body)

    def status(self, ref: JobRef) -> Status:
        if ref.id == "gone":
            raise NotFound(f"{ref}: no such job")
        return Status(ref, "s", Phase.SUCCEEDED, "done", tasks={"done": self.count})

    def tasks(self, ref: JobRef) -> list[TaskStatus]:
        self.status(ref)
        return [TaskStatus(index, Phase.SUCCEEDED, "done", 1) for index in range(self.count)]

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        self.asked += 1
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        time.sleep(0.01)
        self.at_once -= 1
        if task == 7:
            raise CloudSilent("nobody answers")
        at = datetime.now(UTC)
        for metrics in ({"loss": 9.0}, {"loss": float(task or 0), "odd": True}, {"other": 1}):
            text = lines.format_line(step=1, metrics=metrics)
            yield LogLine(at, f"[rank0] {text}" if task == 3 else text)
        yield LogLine(at, '@accel {"at": 1, "metrics": "none"}')
        yield LogLine(at, '@accel {"at": 1, "metrics": {"loss": "low"}}')


def test_many_logs_are_read_side_by_side_within_bounds() -> None:
    cloud, ref = Cloud(200, {}), JobRef("aws-batch", "r", "a")
    seen = find_jobs([ref], lambda ref: cloud, lambda text: None)  # pyright: ignore[reportArgumentType, reportReturnType]
    found, counts = rows(seen), list[int]()
    read(found, seen, counts.append)
    assert cloud.asked == 200 and 2 <= cloud.most <= results.AT_ONCE
    assert counts == list(range(1, 201))
    in_order = rank(found, "loss", "min")
    assert [row.index for row in in_order[:4]] == [0, 1, 2, 3] and in_order[-1].index == 7
    assert in_order[0].metrics == {"loss": 0.0, "other": 1}
    assert in_order[-1].unread == "nobody answers" and in_order[-1].metrics == {}


def test_a_first_job_that_is_forgotten_leaves_its_tasks_out() -> None:
    spec = json.dumps({"grid": {"A": ["x", "y", "z"]}})
    old, new = JobRef("aws-batch", "r", "gone"), JobRef("aws-batch", "r", "new")
    clouds = {
        new: Cloud(1, {"env": {"ACCEL_SWEEP": spec, "ACCEL_SWEEP_ONLY": "2", "ACCEL_SWEEP_OF": str(old)}}),
        old: Cloud(3, {"env": {"ACCEL_SWEEP": spec}}),
    }
    said: list[str] = []

    def backend_of(ref: JobRef) -> Any:
        clouds[ref].status(ref)
        return clouds[ref]

    seen = find_jobs([new], backend_of, said.append)
    assert [(row.index, row.params) for row in rows(seen)] == [(2, {"A": "z"})]
    assert said == [f"{new} ran tasks of {old} again, of which nothing is left: {old}: no such job"]
    with pytest.raises(NotFound):
        find_jobs([old], backend_of, said.append)

"""`results` of as many tasks as an array has, of tasks that were taken away, and of tasks that told nothing."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from click.testing import Result

from accel.diagnostics.errors import CloudRefused
from jobs.backends.base import JobRef, LogLine, Phase
from jobs.backends.tasks import TaskStatus
from jobs.client import results
from jobs.runtime import lines
from jobs.runtime.sweep import params
from tests.jobs.test_results import Cloud

Invoke = Callable[..., Result]
MANY = 10_000
SPEC: dict[str, Any] = {
    "random": {"LR": {"log": ["1e-4", "1e-1"]}},
    "count": MANY,
    "seed": 3,
    "objective": {"metric": "loss", "best": "min"},
}
TAKEN, SILENT, WAITS, TWICE = 4, 5, 6, 7
"""Tasks: taken away for good, without metrics, without a machine so far, and taken away once."""
SCOPES = {"aws-batch": "aws-batch:us-east-1", "google-batch": "google-batch:acme.us-east1", "gke": "gke:a.b.c.d"}
AT = datetime(2026, 11, 22, tzinfo=UTC)


class Array(Cloud):
    """A sweep of ten thousand tasks: of each the loss is its index, and half of that once more has been done."""

    def tasks(self, ref: JobRef) -> list[TaskStatus]:
        host = "Host EC2 (instance i-0) terminated."
        odd = {
            TAKEN: TaskStatus(TAKEN, Phase.FAILED, "FAILED", 4, None, host),
            WAITS: TaskStatus(WAITS, Phase.QUEUED, "RUNNABLE"),
            TWICE: TaskStatus(TWICE, Phase.SUCCEEDED, "SUCCEEDED", 2, 0),
        }
        done = (TaskStatus(index, Phase.SUCCEEDED, "SUCCEEDED", 1, 0) for index in range(self.count))
        return [odd.get(each.index, each) for each in done]

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        self.asked += 1
        for index in range(self.count) if task is None else (task,):
            for line in self.printed(index):
                yield LogLine(AT, line, f"task {index}" if task is None else "")

    @staticmethod
    def printed(index: int) -> Iterator[str]:
        assert index != WAITS, "nothing has run, so there is no log to read"
        yield "12:00 an ordinary line"
        if index == SILENT:
            return
        yield lines.format_line(step=1, metrics={"loss": float(index), "early": 1.0})
        if index == TWICE:
            yield lines.format_line(event="resume", step=1)
        if index != TAKEN:
            yield lines.format_line(step=2, metrics={"loss": index / 2})


class MarkedArray(Array):
    """One whose marked lines can be had at once."""

    refuses = False

    def progress_lines(self, ref: JobRef, tasks: Sequence[int]) -> Iterator[tuple[int, LogLine]]:
        if self.refuses:
            raise CloudRefused("logs:FilterLogEvents: not allowed")
        self.asked += 1
        return ((index, LogLine(AT, line)) for index in tasks for line in self.printed(index))


class Refusing(MarkedArray):
    """One that allows each log alone."""

    refuses = True


EACH = MANY - 1
"""Of those that have run."""


@pytest.mark.parametrize(
    ("kind", "made", "reads"),
    [("gke", Array, EACH), ("google-batch", Array, 1), ("aws-batch", MarkedArray, 1), ("aws-batch", Refusing, EACH)],
)
def test_ten_thousand_tasks_are_one_table(
    kind: str, made: type[Array], reads: int, invoke: Invoke, home: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = made(MANY, {"env": {"ACCEL_SWEEP": json.dumps(SPEC)}})
    if kind in results.TOGETHER:
        monkeypatch.setattr(Array, "printed", staticmethod(together(Array.printed)))
    monkeypatch.setattr(results, "of_ref", lambda ref: array)
    done = invoke("results", f"{SCOPES[kind]}/tuned", "-o", "csv")
    assert done.exit_code == 0, done.output
    assert "reading the logs of 10,000 tasks" in done.stderr
    assert array.asked == reads
    found = list(csv.DictReader(StringIO(done.stdout)))
    assert len(found) == MANY
    by_task = {int(each["task"]): each for each in found}
    assert by_task[TAKEN]["loss"] == "4.0" and by_task[TWICE]["loss"] == "3.5" and by_task[TWICE]["attempts"] == "2"
    assert (by_task[TAKEN]["state"], by_task[TAKEN]["reason"]) == ("FAILED", "Host EC2 (instance i-0) terminated.")
    # 7 tells 3.5, 4 was taken away at 4.0 as 8 is, and 9 tells 4.5.
    assert [int(each["task"]) for each in found[:8]] == [0, 1, 2, 3, TWICE, TAKEN, 8, 9]
    assert [int(each["task"]) for each in found[-2:]] == [SILENT, WAITS], "those that have told nothing, by number"
    assert all(by_task[index]["loss"] == by_task[index]["early"] == "" for index in (SILENT, WAITS))
    assert [by_task[index]["LR"] for index in (0, 9_999)] == [params(SPEC, index)["LR"] for index in (0, 9_999)]


def together(printed: Callable[[int], Iterator[str]]) -> Callable[[int], Iterator[str]]:
    """Of a log of all tasks: one that has not run has no lines in it."""
    return lambda index: iter(()) if index == WAITS else printed(index)

"""The marked lines of an array's tasks: from moto's CloudWatch Logs, and from one that answers as AWS's may."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from jobs.backends.aws_batch import logs as aws_logs
from jobs.backends.tasks import ProgressLines
from jobs.runtime import lines
from tests.jobs.backends.aws_batch_cloud import Cloud, running
from tests.jobs.backends.aws_batch_target import LOG_GROUP
from tests.jobs.backends.test_aws_batch_observe import ID, REF, FakeBatch, Missing, backend_of, detail

COUNT, TWICE, SILENT, UNMADE = 120, 7, 8, 9
"""Tasks of an array: one with two attempts, one whose attempt never wrote, and one that never began."""


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    yield from running()


def array() -> tuple[FakeBatch, dict[str, list[str]]]:
    """Its tasks, and what each attempt printed."""
    tasks: list[dict[str, Any]] = []
    printed: dict[str, list[str]] = {}
    for task in range(COUNT):
        names = [f"s/{task}/{number}" for number in range(2 if task == TWICE else 1)]
        attempts = [{"container": {"logStreamName": name}} for name in names]
        ended: dict[str, Any] = {"attempts": attempts, "container": {"logStreamName": names[-1]}}
        waits = task == UNMADE
        tasks.append(detail(f"{ID}:{task}", "RUNNABLE" if waits else "FAILED", **({} if waits else ended)))
        for number, name in enumerate([] if task in (SILENT, UNMADE) else names):
            printed[name] = ["12:00 ordinary", lines.format_line(step=number + 1, metrics={"loss": float(task)})]
    return FakeBatch(*tasks), printed


WANTED = sorted([(task, 1) for task in range(COUNT) if task not in (SILENT, UNMADE)] + [(TWICE, 2)])


def found(batch: FakeBatch, logs: Any) -> list[tuple[int, Any]]:
    backend = backend_of(batch, logs)
    assert isinstance(backend, ProgressLines)
    return [(task, (lines.read(line.text) or {})["step"]) for task, line in backend.progress_lines(REF, range(COUNT))]


def test_on_moto(cloud: Cloud) -> None:
    batch, printed = array()
    logs, now = cloud.client("logs"), int(1000 * time.time()) - 60_000
    if not logs.describe_log_groups(logGroupNamePrefix=LOG_GROUP)["logGroups"]:
        logs.create_log_group(logGroupName=LOG_GROUP)
    for name, texts in printed.items():
        logs.create_log_stream(logGroupName=LOG_GROUP, logStreamName=name)
        events = [{"timestamp": now + number, "message": text} for number, text in enumerate(texts)]
        logs.put_log_events(logGroupName=LOG_GROUP, logStreamName=name, logEvents=events)
    seen = found(batch, logs)
    assert sorted(seen) == WANTED and batch.calls["describe"] == 2
    assert [step for task, step in seen if task == TWICE] == [1, 2]


class AsAws:
    """A hundred streams at most, none of which may be missing; pages that are empty though there is more."""

    class exceptions:  # noqa: N801
        ResourceNotFoundException = Missing

    def __init__(self, printed: dict[str, list[str]]) -> None:
        self.printed, self.calls = printed, 0

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        self.calls += 1
        names = asked["logStreamNames"]
        assert len(names) <= 100 and asked["logGroupName"] == LOG_GROUP and asked["filterPattern"] == aws_logs.PATTERN
        if any(name not in self.printed for name in names):
            raise Missing("The specified log stream does not exist.")
        told = [(name, text) for name in names for text in self.printed[name] if "@accel" in text]
        kind, at = asked.get("nextToken", "empty/0").split("/")
        if kind == "empty":
            return {"events": [], "nextToken": f"full/{at}"}
        after = int(at) + 40
        page = [{"logStreamName": name, "message": text, "timestamp": 1} for name, text in told[int(at) : after]]
        return {"events": page, **({"nextToken": f"empty/{after}"} if after < len(told) else {})}


def test_a_stream_that_is_missing_and_pages_that_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_logs, "CALLS_PER_S", 1000)
    batch, printed = array()
    logs = AsAws(printed)
    assert sorted(found(batch, logs)) == WANTED
    assert logs.calls < 60

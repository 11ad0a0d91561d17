"""Waiting, on a backend that is told what to say and a clock that only sleep moves."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from accel.clouds.pauses import FIRST_S, Pauses
from accel.diagnostics.errors import (
    CloudSilent,
    Interrupted,
    JobFailed,
    JobsError,
    NoCredentials,
    NotFound,
    WaitedTooLong,
)
from jobs.backends.base import Backend, JobRef, Phase, Status
from jobs.client.waiting import Waiting, describe_status, end, wait_for
from tests.support.gathering import until_there
from tests.support.terminal import Terminal, plain
from tests.support.waiting import until

from .conftest import ROOT, command

REF = JobRef("aws-batch", "us-east-1", "1")
SILENT = CloudSilent("DescribeJobs: timed out")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


class Told:
    """Says each phase once and the last for ever; raises the errors among them."""

    def __init__(self, *says: Phase | JobsError | KeyboardInterrupt) -> None:
        self.says = list(says)

    def status(self, ref: JobRef) -> Status:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, BaseException):
            raise said
        return Status(ref, "a", said, said.lower())


def wait(*backends: Told, timeout_s: float | None = None, clock: Clock | None = None) -> list[Status]:
    clock = clock or Clock()
    jobs = [(JobRef("aws-batch", "us-east-1", str(n)), cast(Backend, backend)) for n, backend in enumerate(backends)]
    return wait_for(jobs, timeout_s, sleep=clock.sleep, clock=lambda: clock.now)


def phases(statuses: Iterable[Status]) -> list[Phase]:
    return [status.phase for status in statuses]


def test_until_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    told = Told(Phase.QUEUED, Phase.QUEUED, Phase.STARTING, Phase.RUNNING, Phase.RUNNING, Phase.SUCCEEDED)
    assert phases(wait(told)) == [Phase.SUCCEEDED]
    said = capsys.readouterr()
    assert said.out == ""
    assert [line.rpartition(" ")[2] for line in said.err.splitlines()] == [
        "QUEUED",
        "STARTING",
        "RUNNING",
        "SUCCEEDED",
    ]


def test_several_keep_their_order() -> None:
    both = wait(Told(Phase.RUNNING, Phase.RUNNING, Phase.FAILED), Told(Phase.SUCCEEDED))
    assert phases(both) == [Phase.FAILED, Phase.SUCCEEDED]


@pytest.mark.parametrize("silences", [1, 50])
def test_cannot_see_is_never_failed(silences: int, capsys: pytest.CaptureFixture[str]) -> None:
    told = Told(Phase.RUNNING, *[SILENT] * silences, Phase.SUCCEEDED)
    assert phases(wait(told)) == [Phase.SUCCEEDED]
    assert capsys.readouterr().err.count("cannot be seen just now") == 1


def test_silence_for_ever_ends_with_the_timeout() -> None:
    with pytest.raises(WaitedTooLong, match="it goes on"):
        wait(Told(SILENT), timeout_s=100)


@pytest.mark.parametrize("timeout_s", [0.0, 1.0, 7.5, 1000.0])
def test_the_timeout_is_kept(timeout_s: float) -> None:
    clock = Clock()
    with pytest.raises(WaitedTooLong):
        wait(Told(Phase.RUNNING), timeout_s=timeout_s, clock=clock)
    assert clock.now == pytest.approx(timeout_s)


def test_the_cloud_is_asked_seldom() -> None:
    clock = Clock()
    with pytest.raises(WaitedTooLong):
        wait(Told(Phase.RUNNING), timeout_s=3600, clock=clock)
    assert len(clock.slept) < 400 and max(clock.slept) <= 10


@pytest.mark.parametrize("error", [NotFound("gone"), NoCredentials("expired")])
def test_what_is_certain_is_raised(error: JobsError) -> None:
    with pytest.raises(type(error)):
        wait(Told(Phase.RUNNING, error))


def test_interrupted() -> None:
    with pytest.raises(Interrupted, match="goes on") as caught:
        wait(Told(Phase.RUNNING, KeyboardInterrupt()))
    assert "get aws-batch:us-east-1/0" in (caught.value.hint or "")


ARRAY = (
    {"SUBMITTED": 4},
    {"RUNNABLE": 2, "RUNNING": 2},
    {"RUNNABLE": 2, "RUNNING": 2},
    {"RUNNING": 2, "SUCCEEDED": 2},
    {"SUCCEEDED": 4},
)


class Array(Told):
    """An array of four, by the counts of its tasks."""

    def __init__(self) -> None:
        super().__init__(Phase.QUEUED)
        self.counts = list(ARRAY)

    def status(self, ref: JobRef) -> Status:
        tasks = self.counts.pop(0)
        phase = Phase.RUNNING if self.counts else Phase.SUCCEEDED
        return Status(ref, "a", phase, phase.lower(), tasks=tasks)


def test_an_array_tells_each_change_of_its_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    wait(Array(), clock=clock)
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "RUNNING, tasks: 4 SUBMITTED",
        "RUNNING, tasks: 2 RUNNABLE, 2 RUNNING",
        "RUNNING, tasks: 2 RUNNING, 2 SUCCEEDED",
        "SUCCEEDED",
    ]
    assert clock.slept == sorted(clock.slept), "tasks that come and go are no reason to ask more often"


class Blocked(Told):
    """An endpoint that does not answer: the first look takes as long as an API's own patience."""

    def __init__(self, *says: Phase | JobsError, blocked_s: float) -> None:
        super().__init__(*says)
        self.blocked_s = blocked_s

    def status(self, ref: JobRef) -> Status:
        time.sleep(self.blocked_s)
        self.blocked_s = 0.0
        return super().status(ref)


def test_no_wait_is_silent_for_long(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither while an endpoint blocks, nor while nothing changes."""
    ref = JobRef("local", "", "1")
    gone = cast(Backend, Blocked(SILENT, blocked_s=1.2))
    with pytest.raises(WaitedTooLong):
        wait_for([(ref, gone)], 2.5, quiet_s=0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"{ref}: has not been seen yet; still waiting after ")
    assert sum("has not been seen yet" in line for line in lines) >= 3
    with pytest.raises(WaitedTooLong):
        wait_for([(ref, cast(Backend, Told(Phase.RUNNING)))], 1.8, quiet_s=0.5)
    assert f"{ref}: RUNNING; still waiting after " in capsys.readouterr().err
    several = [(JobRef("local", "", str(n)), cast(Backend, Told(phase))) for n, phase in enumerate(
        [Phase.RUNNING, Phase.RUNNING, Phase.QUEUED, Phase.SUCCEEDED])]  # fmt: skip
    with pytest.raises(WaitedTooLong):
        wait_for(several, 1.8, quiet_s=0.5)
    assert "1 of 4 jobs have ended, 1 QUEUED, 2 RUNNING; still waiting after " in capsys.readouterr().err


def test_what_was_seen_and_is_not_seen_any_more_is_said() -> None:
    clock, told = Clock(), list[str]()
    waiting = Waiting([(REF, cast(Backend, Told(Phase.RUNNING, SILENT)))], None, told.append, lambda: clock.now)
    waiting.look()
    clock.sleep(90)
    waiting.look()
    assert waiting.so_far.text == f"{REF}: RUNNING, last seen 1m30s ago; still waiting after 1m30s"


def test_a_bar_at_a_terminal(home: Path, tmp_path: Path) -> None:
    """Of tasks that have ended; state and time beside it, and lines only for what changes."""
    gate = tmp_path / "gate"
    script = f"test $ACCEL_TASK_INDEX -lt 3 || {until_there(gate)}"
    (home / "j.yaml").write_text(json.dumps({"name": "sweep", "command": ["sh", "-c", script], "tasks": 4}))
    ref = command("submit", "j.yaml", "-o", "id").stdout.strip()
    line = [sys.executable, "-P", "-m", "jobs", "wait", ref]
    terminal = Terminal(line, home, os.environ | {"PYTHONPATH": str(ROOT)}, 80, 24)
    try:
        until(lambda: "3 of 4 tasks" in terminal.written)
        bar = next(each for each in terminal.written.split("\r\x1b[K") if "3 of 4 tasks" in each)
        assert re.match(r"█+░+  3 of 4 tasks  RUNNING  \d+s", bar), bar
        gate.touch()
        assert terminal.process.wait(60) == 0
        until(lambda: "SUCCEEDED" in terminal.written)
    finally:
        terminal.end()
    assert terminal.written.endswith(f"{ref}: SUCCEEDED\r\n")
    assert "tasks:" not in plain(terminal.written), "the bar counts them"


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"phase": Phase.FAILED, "reason": "exit code 3", "exit_code": 3}, "FAILED, exit code 3"),
        (
            {"phase": Phase.FAILED, "reason": "Host EC2 terminated", "exit_code": None},
            "FAILED, Host EC2 terminated",
        ),
        (
            {"phase": Phase.FAILED, "reason": "OutOfMemory", "exit_code": 137},
            "FAILED, OutOfMemory, exit code 137",
        ),
        ({"phase": Phase.SUCCEEDED, "reason": "done", "exit_code": 0}, "SUCCEEDED"),
    ],
)
def test_the_end_in_words(fields: dict[str, Any], words: str) -> None:
    status = Status(REF, "a", native="x", **fields)
    assert describe_status(status) == words
    if status.phase is Phase.FAILED:
        with pytest.raises(JobFailed, match=words):
            end([status])
    else:
        end([status])


def test_a_wait_pauses_longer_and_longer_until_its_time_is_over() -> None:
    now = [1000.0]
    pauses = Pauses(20, lambda: now[0])
    waited: list[float] = []
    while (pause_s := pauses.next_s(4)) is not None:
        waited.append(pause_s)
        now[0] += pause_s
    assert waited == sorted(waited[:-1]) + waited[-1:] and waited[0] == FIRST_S and max(waited) == 4
    assert now[0] == 1020 and pauses.left_s == 0 and pauses.waited_s == 20


def test_after_a_change_a_wait_looks_soon_again() -> None:
    pauses = Pauses()
    first = [pauses.next_s(10) for _ in range(3)]
    pauses.restart()
    assert [pauses.next_s(10) for _ in range(3)] == first and pauses.next_s(10, least_s=20) == 20

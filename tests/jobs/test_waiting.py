"""Waiting, on a backend that is told what to say and a clock that only sleep moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import pytest

from jobs.backend import Backend, JobRef, Phase, Status
from jobs.cli.waiting import described, end, wait_for
from jobs.errors import CloudSilent, Interrupted, JobFailed, JobsError, NoCredentials, NotFound, WaitedTooLong

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
    assert described(status) == words
    if status.phase is Phase.FAILED:
        with pytest.raises(JobFailed, match=words):
            end([status])
    else:
        end([status])

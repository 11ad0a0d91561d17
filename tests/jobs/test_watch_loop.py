"""`watch` itself: threads, the screen, a real terminal, and local jobs that really run."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from accel.console.screen import Screen
from accel.console.terminal_text import Style
from accel.diagnostics.errors import CloudRefused, CloudSilent, Interrupted, JobsError, NoCredentials, WaitedTooLong
from jobs.backends.base import Attempt, Backend, Explanation, JobRef, LogLine, Phase, Status
from jobs.client.wait_reasons import APART_S, FIRST_S, JOBS_MAX, Pending
from jobs.runtime.lines import format_line
from jobs.views.watch.loop import Watching

from .conftest import ROOT
from .test_watch import REF, at, status, strip

SCRIPT = """
import os, sys, time
sys.path.insert(0, {root!r})
from jobs.runtime.lines import format_line
for step in range(1, 5):
    print(format_line(step=step, steps=4, metrics={{"loss": 1 / step}}), flush=True)
    print("\\x1b]0;owned\\x07\\x1b[2Jhostile", flush=True)
while os.path.exists({gate!r}):
    time.sleep(0.05)
sys.exit({code})
"""


class Cloud:
    """Says each status once and the last for ever; its log ends when its last status was said."""

    def __init__(self, *says: Status | JobsError, lines: tuple[str, ...] = ()) -> None:
        self.says = list(says)
        self.lines = lines
        self.ended = threading.Event()

    def status(self, ref: JobRef) -> Status:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, JobsError):
            raise said
        if said.phase.ended:
            self.ended.set()
        return said

    def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        assert follow
        for text in self.lines:
            yield LogLine(at(0), text)
        self.ended.wait(20)

    def attempts(self, ref: JobRef) -> list[Attempt]:
        return [Attempt(1, started=at(0), stopped=at(1800), lost=True), Attempt(2, started=at(3600), stopped=at(7200))]


LINES = tuple(format_line(step=step, steps=4, metrics={"loss": 1.0 / step}) for step in (1, 2, 3, 4))


def watching(cloud: Cloud, **fields: Any) -> Watching:
    backend = cast(Backend, cast(Any, cloud))
    return Watching([(REF, backend)], **{"frame_s": 0.05, "backend_of": lambda ref: backend, **fields})


def test_plain_lines_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    done = status(Phase.SUCCEEDED, started=at(0), stopped=at(60), exit_code=0)
    (last,) = watching(Cloud(status(Phase.QUEUED, native="RUNNABLE"), status(), done, lines=LINES)).run()
    out = capsys.readouterr().out.splitlines()
    assert last is done and f"{REF}: SUCCEEDED" in out
    assert not any("\x1b" in line for line in out)


@pytest.mark.parametrize(("lines", "waits"), [(LINES, False), (LINES[:3], True), ((), True)])
def test_a_watch_waits_for_last_lines_unless_all_progress_was_heard(lines: tuple[str, ...], waits: bool) -> None:
    class Open(Cloud):
        """Its log stays open for last lines, for a while."""

        closed = False

        def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
            yield from super().logs(ref, task=task, follow=follow)
            enough.wait(1 if waits else 5)
            self.closed = True

    enough = threading.Event()
    cloud = Open(status(), status(Phase.SUCCEEDED, started=at(0), stopped=at(60), exit_code=0), lines=lines)
    watching(cloud).run()
    assert cloud.closed == waits
    enough.set()


def test_a_screen_is_written_over_and_ends_with_the_last_state() -> None:
    shown = io.StringIO()
    screen = Screen(shown, (100, 20))
    cloud = Cloud(status(), status(), status(Phase.FAILED, stopped=at(9), reason="OutOfMemory"), lines=LINES)
    watching(cloud, screen=screen, style=Style(True, True)).run()
    frames = shown.getvalue().split("\x1b[J")
    assert len(frames) > 2 and frames[1].startswith("\x1b[3A\r"), "the header, the titles and one row"
    last = strip(frames[-2])
    assert "FAILED" in last and "OutOfMemory" in last and "loss 0.25" in last


def test_what_cannot_be_seen_is_told_and_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    silent = CloudSilent("DescribeJobs: timed out")
    done = status(Phase.SUCCEEDED, started=at(0), stopped=at(60), attempts=2, lost=1)
    watching(Cloud(silent, silent, done)).run()
    assert capsys.readouterr().err.count("cannot be seen just now") == 1
    shown = io.StringIO()
    watching(Cloud(silent, done), screen=Screen(shown, (100, 20))).run()
    assert "cannot be seen just now" in shown.getvalue(), "a table has it below"


def test_a_log_that_cannot_be_read_does_not_end_the_watch(capsys: pytest.CaptureFixture[str]) -> None:
    class Refused(Cloud):
        def logs(self, ref: JobRef, *, task: int | None = None, follow: bool = False) -> Iterator[LogLine]:
            raise CloudRefused("logs:GetLogEvents: not allowed")

    watching(Refused(status(), status(Phase.SUCCEEDED))).run()
    assert "its log cannot be read: logs:GetLogEvents" in capsys.readouterr().err


def test_what_is_certain_ends_it_and_too_long_is_said() -> None:
    with pytest.raises(NoCredentials):
        watching(Cloud(NoCredentials("expired"))).run()
    with pytest.raises(WaitedTooLong, match="it goes on"):
        watching(Cloud(status(Phase.QUEUED)), timeout_s=0.1).run()


def test_an_interrupt_says_that_the_job_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watching(Cloud(status()))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_show", interrupt)
    with pytest.raises(Interrupted, match="goes on"):
        watch.run()


def test_jobs_that_turn_up_are_watched_too(capsys: pytest.CaptureFixture[str]) -> None:
    other = JobRef("aws-batch", "us-east-1", "b2")
    second = cast(Backend, cast(Any, Cloud(status(Phase.SUCCEEDED, other))))
    first = Cloud(status(Phase.SUCCEEDED))
    by_ref = {REF: cast(Backend, cast(Any, first)), other: second}
    watch = watching(first, more=lambda: [(other, second)], backend_of=by_ref.__getitem__)
    assert len(watch.run()) == 2


class Waits:
    """Explains itself by the next of these words."""

    def __init__(self, *words: str | JobsError) -> None:
        self.words = list(words)
        self.asked = 0

    def explain(self, ref: JobRef, *, elsewhere: object = tuple) -> Explanation:
        self.asked += 1
        said = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        if isinstance(said, JobsError):
            raise said
        return Explanation(said, f"there is {said}", (), "look at `accel-jobs get REF`")


def test_why_it_waits_is_said_after_some_time_and_when_it_changes() -> None:
    now = [0.0]
    told: list[str] = []
    pending = Pending(told.append, lambda: now[0])
    cause = cast(Any, Waits("no-capacity", "no-capacity", "no-quota", CloudRefused("not allowed")))
    for _ in range(60):
        pending.look(REF, cause, status(Phase.QUEUED))
        now[0] += 10
    assert [line.split("waits: ")[1].split(";")[0] for line in told] == [
        "there is no-capacity", "there is no-quota", "why it waits cannot be told: not allowed"
    ]  # fmt: skip
    assert told[0].endswith(f"next: look at `accel-jobs get {REF}`")
    assert cause.asked == 1 + (590 - FIRST_S) // APART_S
    pending.look(REF, cause, status(Phase.RUNNING))
    assert pending.look(REF, cause, status(Phase.QUEUED)) is None, "from the beginning"


def test_of_many_jobs_a_few_are_asked_about() -> None:
    now = [0.0]
    told: list[str] = []
    pending = Pending(told.append, lambda: now[0])
    cause = cast(Any, Waits("no-capacity"))
    for _ in range(10):
        for number in range(100):
            pending.look(JobRef("aws-batch", "r", str(number)), cause, status(Phase.QUEUED))
        now[0] += 10
    assert len(told) == JOBS_MAX == cause.asked


def job_file(home: Path, gate: Path, code: int = 0) -> str:
    script = SCRIPT.format(root=str(ROOT), gate=str(gate), code=code)
    command = [sys.executable, "-c", script]
    (home / "job.yaml").write_text(yaml.safe_dump({"name": "train", "command": command, "tasks": 2}))
    (home / "targets.json").write_text(f'{{"here": {{"kind": "local", "schema": 1, "root": "{home}"}}}}')
    return str(home / "job.yaml")


def test_a_local_job_without_a_terminal(home: Path, tmp_path: Path, invoke: Any) -> None:
    file = job_file(home, tmp_path / "none", code=7)
    ref = invoke("submit", file, "--to", "here", "--targets", "targets.json", "-o", "id").stdout.strip()
    seen = invoke("watch", ref)
    assert seen.exit_code == 125 and "2 of 2 tasks failed" in seen.stderr
    assert "FAILED" in seen.stdout and "\x1b" not in seen.output
    nothing = invoke("watch", "--target", "here", "--name", "other-*", "--targets", "targets.json")
    assert nothing.exit_code == 0 and "no job" in nothing.stderr
    both = invoke("watch", ref, "--name", "x")
    assert both.exit_code == 2 and "either JOBs" in both.stderr
    again = invoke("watch", ref, "-o", "jsonl")
    assert again.exit_code == 125 and again.stdout.count('"phase": "FAILED"') == 1


def test_a_local_job_at_a_terminal_and_an_interrupt(home: Path, tmp_path: Path, invoke: Any) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    file = job_file(home, gate)
    ref = invoke("submit", file, "--to", "here", "--targets", "targets.json", "-o", "id").stdout.strip()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-P", "-m", "jobs", "watch", "--name", "train-*", "--targets", "targets.json"]
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    seen = b""
    # Both tasks have told of their last step, and run on behind the gate.
    while b"tasks: 2 RUNNING" not in seen or b"100%" not in seen:
        assert select.select([ours], [], [], 60)[0], seen
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    threading.Thread(target=_drained, args=(ours,), daemon=True).start()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and b"goes on" in err
    assert re.search(rb"\x1b\[\d+A\r", seen), "written over"
    assert b"owned" not in seen and b"hostile" not in seen
    gate.unlink()
    assert invoke("wait", ref).exit_code == 0


def _drained(ours: int) -> None:
    try:
        while os.read(ours, 4096):
            pass
    except OSError:  # the other side is closed
        return

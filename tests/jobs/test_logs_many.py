"""`logs` of several tasks: whose line it is, which are shown, and what a terminal gets of them."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from .conftest import ROOT

SCRIPT = """
import os, sys
sys.path.insert(0, {root!r})
from jobs.runtime.lines import format_line
me = os.environ[os.environ["ACCEL_TASK_INDEX_FROM"]]
print("begin", me)
print(format_line(step=3, steps=4, metrics={{"loss": 0.5}}))
print("\\x1b[2J\\x1b[31mred\\x1b[0m \\x1b]0;owned\\x07", me)
"""


@pytest.fixture
def ref(home: Path, invoke: Any) -> str:
    """An array of three that has ended."""
    command = [sys.executable, "-c", SCRIPT.format(root=str(ROOT))]
    (home / "job.yaml").write_text(yaml.safe_dump({"name": "train", "command": command, "tasks": 3}))
    (home / "targets.json").write_text(f'{{"here": {{"kind": "local", "schema": 1, "root": "{home}"}}}}')
    made = invoke("submit", "job.yaml", "--to", "here", "--targets", "targets.json", "-o", "id", "--wait")
    assert made.exit_code == 0, made.output
    return made.stdout.strip()


def test_progress_is_short_raw_or_left_out(ref: str, invoke: Any) -> None:
    short = invoke("logs", ref).stdout
    assert short.count("] step 3/4 (75%)  loss 0.5\n") == 3 and "@accel" not in short
    assert invoke("logs", ref, "--progress", "raw").stdout.count('@accel {"at":') == 3
    none = invoke("logs", ref, "--progress", "none").stdout
    assert "@accel" not in none and "loss" not in none and none.count("begin") == 3
    rows = [json.loads(line) for line in invoke("logs", ref, "-o", "jsonl").stdout.splitlines()]
    assert sum(row["text"].startswith("@accel ") for row in rows) == 3, "whoever reads JSON gets what was printed"


@pytest.mark.parametrize("follow", [[], ["-f"]])
def test_some_tasks_and_some_lines(ref: str, invoke: Any, follow: list[str]) -> None:
    some = invoke("logs", ref, *follow, "--task", "0", "--task", "2", "--grep", "^begin")
    assert some.exit_code == 0
    assert sorted(some.stdout.splitlines()) == ["[task 0] begin 0", "[task 2] begin 2"]
    one = invoke("logs", ref, *follow, "--task", "1", "--grep", "step 3")
    assert one.stdout.splitlines() == ["[task 1] step 3/4 (75%)  loss 0.5"]


@pytest.mark.parametrize("follow", [[], ["-f"]])
def test_lines_since(ref: str, invoke: Any, follow: list[str], home: Path) -> None:
    (old,) = home.parent.glob("state/accel/local/*/tasks/1/1/output.log")
    before = time.time() - 7200
    os.utime(old, (before, before))
    assert sorted(invoke("logs", ref, *follow, "--since", "1h", "--grep", "begin").stdout.splitlines()) == [
        "[task 0] begin 0",
        "[task 2] begin 2",
    ]
    assert len(invoke("logs", ref, *follow, "--since", "3h", "--grep", "begin").stdout.splitlines()) == 3
    assert (
        invoke("logs", ref, "--task", "1", "--task", "2", "--since", "90m", "--grep", "begin").stdout.split()[-1] == "2"
    )
    bad = invoke("logs", ref, "--since", "yesterday")
    assert bad.exit_code == 2 and "--since: must be" in bad.stderr


@pytest.mark.parametrize("follow", [[], ["-f"]])
def test_the_last_lines_of_a_job_and_of_each_task_that_is_named(ref: str, invoke: Any, follow: list[str]) -> None:
    assert len(invoke("logs", ref, *follow, "--tail", "2").stdout.splitlines()) == 2
    some = invoke("logs", ref, *follow, "--task", "0", "--task", "2", "--tail", "2", "--progress", "short").stdout
    assert sorted(line.split("] ")[0] for line in some.splitlines()) == ["[task 0", "[task 0", "[task 2", "[task 2"]
    assert "begin" not in some
    none = invoke("logs", ref, "--task", "1", "--tail", "2", "--grep", "begin")
    assert (none.stdout, none.exit_code) == ("", 0), "the last lines are taken before those that match"
    bad = invoke("logs", ref, "--tail", "0")
    assert bad.exit_code == 2 and "--tail" in bad.stderr


def test_what_cannot_be_is_said_in_a_line(ref: str, invoke: Any) -> None:
    bad = invoke("logs", ref, "--grep", "(")
    assert bad.exit_code == 2 and "--grep: '(': is no regular expression" in bad.stderr
    word = invoke("logs", ref, "--progress", "shor")
    assert word.exit_code == 2 and "did you mean short" in word.stderr
    many = invoke("logs", ref, *[part for number in range(33) for part in ("--task", str(number))])
    assert many.exit_code == 2 and "at most 32" in many.stderr
    gone = invoke("logs", ref, "-f", "--task", "0", "--task", "9")
    assert gone.exit_code == 6 and "no task 9" in gone.stderr


@pytest.mark.parametrize("no_color", [False, True])
def test_at_a_terminal_each_task_has_a_colour_and_nothing_is_obeyed(ref: str, no_color: bool) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "NO_COLOR": "1" if no_color else ""}
    command = [sys.executable, "-P", "-m", "jobs", "logs", ref]
    process = subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # the other side is closed
        pass
    assert process.wait(60) == 0
    assert b"\x1b[2J" not in seen and b"owned" not in seen and b"red" in seen
    assert (b"\x1b[31mred" in seen) is not no_color
    assert (b"\x1b[36m[task 0] \x1b[0mbegin 0" in seen) is not no_color
    assert (b"\x1b[35m[task 1] " in seen) is not no_color


def test_elsewhere_it_is_as_it_was_printed(ref: str, invoke: Any) -> None:
    printed = "[task 1] \x1b[2J\x1b[31mred\x1b[0m \x1b]0;owned\x07 1"
    assert invoke("logs", ref, "--task", "1").stdout.splitlines()[2] == printed

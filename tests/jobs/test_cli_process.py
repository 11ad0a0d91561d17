"""The command as a process: its exit codes, its signals, its pipes, and what it imports."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.jobs.conftest import ROOT, command, start

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(autouse=True)
def file(home: Path) -> None:
    (home / "j.yaml").write_text("name: hello\ncommand: [sh, -c, 'echo hi; exit ${CODE:-0}']\n")
    (home / "slow.yaml").write_text("name: slow\ncommand: [sh, -c, 'echo begun; sleep 60']\n")


@pytest.mark.parametrize(
    "arguments, code",
    [
        ("targets", 0),
        ("submit j.yaml --wait", 0),
        ("submit j.yaml --set cpus=x", 2),
        ("get local:/gone", 6),
        ("submit slow.yaml --timeout 1", 124),
        ("submit j.yaml --wait -e CODE=1", 125),
    ],
)
def test_exit_codes(arguments: str, code: int) -> None:
    assert command(*arguments.split()).returncode == code


def interrupted(process: subprocess.Popen[str], said: Callable[[], bool]) -> tuple[int, str, str]:
    end = time.monotonic() + 90
    while not said():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.parametrize("how", ["--wait", "--follow"])
def test_an_interrupted_wait_is_130_and_the_job_goes_on(how: str, tmp_path: Path) -> None:
    with (tmp_path / "err").open("w") as err:
        process = start("submit", "slow.yaml", how, stderr=err)
        assert process.stdout
        ref = process.stdout.readline().strip()
        code, _, _ = interrupted(process, lambda: _running(tmp_path))
    said = (tmp_path / "err").read_text()
    assert code == 130
    assert said.count("error: ") == 1 and f"{ref} goes on" in said and f"get {ref}" in said
    assert "Traceback" not in said
    assert json.loads(command("get", ref, "-o", "json").stdout)["phase"] == "RUNNING"
    assert command("cancel", ref, "--yes").returncode == 0


def _running(tmp_path: Path) -> bool:
    time.sleep(0.3)  # so that it is in the wait, not on the way there
    return any((tmp_path / "state" / "accel" / "local").glob("*/tasks/0/1/output.log"))


def test_a_job_outlives_its_client(tmp_path: Path) -> None:
    process = start("submit", "slow.yaml", "--wait", start_new_session=True)
    end = time.monotonic() + 90
    while not _running(tmp_path):
        assert time.monotonic() < end
    os.killpg(process.pid, signal.SIGKILL)  # as a terminal that is closed, only harder
    ref = process.communicate()[0].strip() or command("ls", "-o", "id").stdout.strip()
    assert json.loads(command("get", ref, "-o", "json").stdout)["phase"] == "RUNNING"
    command("cancel", ref, "--yes")


@pytest.mark.parametrize("arguments", ["submit j.yaml --dry-run", "--help", "targets", "doctor"])
def test_a_closed_pipe_is_quiet(arguments: str) -> None:
    listening, telling = os.pipe()
    os.close(listening)
    process = start(*arguments.split(), stdout=telling)
    os.close(telling)
    said = process.communicate(timeout=90)[1]
    assert process.returncode == 141
    assert "error" not in said and "Exception" not in said and "Traceback" not in said


def test_a_closed_stderr_is_quiet() -> None:
    listening, telling = os.pipe()
    os.close(listening)
    process = start("get", "local:/gone", stderr=telling)
    os.close(telling)
    assert process.communicate(timeout=90)[0] == ""
    assert process.returncode in (6, 141)


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("targets >&-", 0, ""),
        ("submit j.yaml --wait >&- <&-", 0, "submitted hello"),
        ("submit - <&-", 2, "error: stdin:1: is empty"),
        ("import slurm - <&-", 2, "error: stdin: is no Slurm script"),
        ("cancel local:/gone <&-", 2, "error: cancel local:/gone: cannot be confirmed without a terminal"),
        ("targets 2>&-", 0, ""),
        ("get local:/gone 2>&-", 6, ""),
        ("get local:/gone 2>/dev/full", 6, ""),
        ("targets >/dev/full", 1, "error: the output cannot be written: No space left on device"),
        ("submit j.yaml >/dev/full", 1, "hint: what the command did before is done"),
        ("--help >/dev/full", 1, "error: the output cannot be written: No space left on device"),
    ],
)
def test_a_stream_that_is_closed_or_full_is_no_bug(line: str, code: int, told: str) -> None:
    shell = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -m jobs {line}"], env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert shell.returncode == code, shell.stderr
    assert told in shell.stderr
    assert "unexpected" not in shell.stderr and "Traceback" not in shell.stderr


@pytest.mark.parametrize("no_color", [False, True])
def test_colour_at_a_terminal_only(no_color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    process = start("get", "local:/gone", stderr=theirs)
    process.wait(timeout=90)
    os.close(theirs)
    assert (b"\x1b[" in os.read(ours, 4096)) is not no_color
    os.close(ours)
    assert "\x1b[" not in command("get", "local:/gone").stderr


def test_a_trace_with_debug_only() -> None:
    process = start("get", "local:/gone", "--debug")
    assert "Traceback" in process.communicate(timeout=90)[1]


def test_two_processes_with_one_key(home: Path) -> None:
    processes = [start("submit", "j.yaml", "--key", "k", "-o", "id") for _ in range(3)]
    assert len({process.communicate(timeout=90)[0] for process in processes}) == 1


def test_a_terminal_that_cannot_show_every_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    result = command("submit", "-", "--follow", text="name: a\ncommand: [echo, grün]\n")
    assert result.returncode == 0 and "gr" in result.stdout


# --- start-up

HEAVY = {"boto3", "botocore", "pydantic", "yaml", "pulumi", "google", "moto", "paramiko", "cryptography", "websocket"}


def imported(*arguments: str) -> set[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = [sys.executable, "-X", "importtime", "-P", "-m", "jobs", *arguments]
    answer = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines() if "import time:" in line}


@pytest.mark.parametrize(
    "arguments, allowed",
    [
        ("--help", set[str]()),
        ("--version", set[str]()),
        ("submit --help", set[str]()),
        ("exec --help", set[str]()),
        ("completion bash", set[str]()),
        ("validate j.yaml", {"pydantic", "yaml"}),
        ("submit j.yaml --dry-run", {"pydantic", "yaml"}),
        ("targets", {"pydantic"}),
        ("ls", {"pydantic"}),
    ],
)
def test_what_is_imported(arguments: str, allowed: set[str]) -> None:
    found = imported(*arguments.split())
    assert {name.partition(".")[0] for name in found} & HEAVY <= allowed
    if not allowed:
        assert "accel.contract.targets" not in found and "jobs.backends.base" not in found

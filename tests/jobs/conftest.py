"""A home of its own for every test, and the command line in this process and in one of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from jobs.cli.main import jobs
from tests.jobs.backends.gke_cluster import Cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder with state and cache beside it; what still runs there is killed afterwards."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("ACCEL_TARGETS", "AWS_PROFILE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    yield work
    for path in (tmp_path / "state" / "accel" / "local").glob("*/supervisor.json"):
        # Its runners end with it. A test may have spoilt the file.
        found = re.search(r'"pid": (\d+)', path.read_text())
        command = Path("/proc", found[1], "cmdline") if found else None
        if found and command and command.exists() and b"supervisor" in command.read_bytes():
            os.kill(int(found[1]), signal.SIGKILL)


@pytest.fixture
def quiet(home: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Whatever the test does in this process, nothing is printed and signals are as they were."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    yield
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """The command in this process: `invoke("get", "x")`."""

    def call(*arguments: str, text: str | bytes | None = None) -> Result:
        result = CliRunner().invoke(jobs, arguments, input=text, prog_name="jobs")
        assert "Traceback" not in result.output, result.output
        return result

    return call


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command in a process of its own, in the working folder of the test."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "jobs", *arguments]
    defaults: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **(defaults | options))


def command(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, to its end."""
    process = start(*arguments, stdin=subprocess.PIPE)
    out, err = process.communicate(text, timeout=60)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    """For tests of GKE that have no other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = Cluster()
    yield made
    made.stop()

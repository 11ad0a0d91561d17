"""`jobs explain` of jobs of this machine, and the hint that leads to it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result

from jobs.backends.aws_batch import AwsBatchBackend
from jobs.backends.base import Explain
from jobs.backends.local import LocalBackend

Invoke = Callable[..., Result]


@pytest.fixture
def run(invoke: Invoke, home: Path) -> Callable[..., str]:
    """Runs a command as a local job to its end; its reference."""

    def call(script: str, *more: str) -> str:
        (home / "j.yaml").write_text(json.dumps({"name": "j", "command": ["sh", "-c", script]}))
        return invoke("submit", "j.yaml", "--wait", "-o", "id", *more).stdout.strip()

    return call


def told(invoke: Invoke, ref: str) -> dict[str, object]:
    result = invoke("explain", ref, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_both_backends_can() -> None:
    assert isinstance(LocalBackend.of_scope(""), Explain)
    assert isinstance(AwsBatchBackend.of_scope("us-east-1"), Explain)


@pytest.mark.parametrize(
    ("script", "more", "cause"),
    [
        ("exit 3", (), "exit-code"),
        ("echo 'torch.OutOfMemoryError: CUDA out of memory.'; exit 1", (), "cuda-out-of-memory"),
        ("kill -9 $$", (), "killed"),
        ("no-such-command", (), "command-not-found"),
        ("sleep 60", ("--set", "timeout_s=1"), "timeout"),
        ("true", (), "succeeded"),
        ("test $ACCEL_TASK_INDEX -ne 1 || { echo wrong; exit 4; }", ("--set", "tasks=3"), "exit-code"),
    ],
)
def test_how_it_ended(invoke: Invoke, run: Callable[..., str], script: str, more: tuple[str, ...], cause: str) -> None:
    row = told(invoke, run(script, *more))
    assert row["cause"] == cause
    if "wrong" in script:
        assert row["evidence"] == ["wrong"]


def test_what_ended_it_from_outside(invoke: Invoke, home: Path, tmp_path: Path) -> None:
    (home / "j.yaml").write_text("name: j\ncommand: [sleep, '60']\n")
    ref = invoke("submit", "j.yaml", "-o", "id").stdout.strip()
    assert told(invoke, ref)["cause"] == "running"
    invoke("cancel", ref, "--yes")
    invoke("wait", ref)
    assert told(invoke, ref)["cause"] == "stopped"
    lost = invoke("submit", "j.yaml", "-o", "id").stdout.strip()
    folder = tmp_path / "state" / "accel" / "local" / lost.removeprefix("local:/")
    os.kill(json.loads((folder / "supervisor.json").read_text())["pid"], signal.SIGKILL)
    invoke("wait", lost)
    assert told(invoke, lost)["cause"] == "host-lost"


def test_a_job_that_waits_for_long_gets_a_hint(invoke: Invoke, run: Callable[..., str], tmp_path: Path) -> None:
    ref = run("true")
    assert "explain" not in invoke("get", ref).stderr
    folder = tmp_path / "state" / "accel" / "local" / ref.removeprefix("local:/")
    # As an interrupted submit leaves it.
    for name in ("supervisor.json", "status.json"):
        (folder / name).unlink()
    for ago, hinted in ((timedelta(minutes=5), False), (timedelta(minutes=11), True)):
        request = json.loads((folder / "request.json").read_text())
        (folder / "request.json").write_text(json.dumps(request | {"created": (datetime.now(UTC) - ago).isoformat()}))
        assert (f"`accel-jobs explain {ref}` says why it waits" in invoke("get", ref).stderr) is hinted
    row = told(invoke, ref)
    assert (row["cause"], "interrupted" in str(row["reason"])) == ("not-started", True)


def test_a_local_job_that_is_not_there(invoke: Invoke) -> None:
    assert invoke("explain", "local:/gone").exit_code == 6

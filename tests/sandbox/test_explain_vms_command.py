"""`jobs explain` of jobs on TPU VMs and GPU VMs as a user runs it, against the sandbox."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import write
from tests.jobs.backends.vms_cloud import targets, variables
from tests.support import commands
from tests.support.google_fake import Fake
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus", "tests.jobs.backends.vms_cloud"]

ROOT = Path(__file__).parents[2]
Shell = Callable[..., str]


@pytest.fixture
def shell(clouds: Fake, tmp_path: Path) -> Shell:
    """Runs `jobs`; what it printed."""
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(write(targets())))
    foreign = ("AWS_", "ACCEL_", "CLOUDSDK_", "GOOGLE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    folders = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environ = {**kept, **variables(clouds), **folders, "ACCEL_TARGETS": str(path), "PYTHONPATH": str(ROOT)}

    def call(*arguments: str, code: int = 0) -> str:
        done = commands.run("jobs", *arguments, cwd=tmp_path, env=environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


@pytest.fixture
def submit(shell: Shell, tmp_path: Path) -> Shell:
    def call(to: str, *more: str, **fields: Any) -> str:
        (tmp_path / "job.json").write_text(json.dumps({"name": "digits", **fields}))
        return shell("submit", "job.json", "--to", to, "-o", "id", *more).strip()

    return call


def test_a_job_on_a_tpu_that_waits(clouds: Fake, shell: Shell, submit: Shell) -> None:
    clouds.fault(stockout=["v5litepod-16"])
    ref = submit("tpus", accelerator={"type": "v5litepod-16"}, command=["true"], spot=True)
    until(lambda: "WAITING_FOR_RESOURCES" in shell("explain", ref))
    lines = shell("explain", ref).splitlines()
    reason = "us-central1-a has no such machines for it just now: its request is in Google's queue"
    assert lines[0] == f"why       {reason} (waiting-for-capacity)"
    assert lines[1].startswith("evidence  v5litepod-16, Spot in us-central1-a: WAITING_FOR_RESOURCES for ")
    assert lines[-1].startswith("next      wait; quicker may be: ")
    shell("cancel", ref, "--yes")
    row = json.loads(shell("explain", ref, "-o", "json"))
    assert (row["ref"], row["cause"], row["not_read"]) == (ref, "stopped", [])
    assert row["next_step"] == f"`accel-jobs retry {ref}` runs it again"


def test_a_job_on_a_gpu_that_failed(shell: Shell, submit: Shell) -> None:
    ref = submit("gpus", accelerator={"type": "l4"}, command=["sh", "-c", "echo epoch 1; exit 3"])
    shell("wait", ref, code=125)
    assert shell("explain", ref).splitlines() == [
        "why       the command ended by itself with exit code 3 (exit-code)",
        "evidence  epoch 1",
        f"next      the last lines are the program's own words; `accel-jobs logs {ref}` shows them all",
    ]
    assert shell("explain", "gce:acme-jobs/none-0123456789ab", "-o", "id") == "unknown-job\n"

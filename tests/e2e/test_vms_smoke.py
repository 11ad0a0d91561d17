"""The smoke program of TPU slices as a job of its job file, on a machine of the sandbox that runs the agent."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.environment import environment as variables_of
from sandbox.processes import stop
from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, start
from tests.support.project import Stack, google_sections
from tests.support.soak import soak_only

from .conftest import Shell, shell_on


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Of a user of the sandbox's own environment, without a cluster."""
    home = tmp_path / "home"
    start(home, WITHOUT_KUBERNETES)
    try:
        sandbox = Sandbox(home, variables_of(home))
        stack = Stack(tmp_path / "stack", sandbox, google_sections("network", "vms"), stack="smoke")
        stack.up_targets()
        yield shell_on(sandbox, stack.folder / "targets.json", tmp_path)
    finally:
        stop(home, wipe=True)


@soak_only
def test_jax_computes_on_a_slice(shell: Shell) -> None:
    ref = shell.jobs("submit", "examples/jobs/tpu-smoke-jax.yaml", "--to", "tpu", "--wait", "-o", "id")
    status = json.loads(shell.jobs("get", ref, "-o", "json"))
    assert (status["phase"], status["exit_code"]) == ("SUCCEEDED", 0)
    lines = shell.jobs("logs", ref).splitlines()
    assert "process 0 of 1: 1 of 1 devices, cpu (cpu)" in lines
    assert "process 0 of 1: matmul 256.0, expected 256" in lines and "process 0 of 1: psum 1, expected 1" in lines
    followed = shell.jobs("logs", "-f", ref).splitlines()
    assert followed == lines, "it ends with the last line, and has nothing twice"

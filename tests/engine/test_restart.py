"""A sandbox that was killed: its cloud forgets everything, Pulumi's state does not."""

import json
from pathlib import Path

import psutil
import pytest

from sandbox.environment import environment as variables
from sandbox.processes import stop
from tests.support.engine import Sandbox, start
from tests.support.project import Stack, environment
from tests.support.soak import soak_only


@soak_only
@pytest.mark.slow
def test_what_a_killed_cloud_forgot_is_made_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    start(home)
    try:
        stack = Stack(tmp_path / "program", Sandbox(home, variables(home)), environment("sandbox"))
        made = stack.up().counts["create"]

        cloud = psutil.Process(json.loads((home / "cloud.json").read_text())["pid"])
        cloud.kill()
        cloud.wait()
        start(home)
        stack.variables.update(variables(home))
        again = stack.up("--refresh")
        assert {step.op for step in again.steps if step.type.startswith("aws:") and step.op != "refresh"} == {"create"}
        assert len([step for step in again.steps if step.op == "create"]) >= 40
        assert made >= 40
        assert stack.up("--refresh", "--expect-no-changes").exit_code == 0
        stack.destroy()
    finally:
        stop(home)

"""The guide's commands, in its order, in one shell, against the sandbox's own stack."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from sandbox.environment import project
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment

from .conftest import Shell

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_guide_runs(shell: Shell, sandbox: Sandbox, tmp_path: Path) -> None:
    # The guide speaks of the stack "sandbox" in the checkout; here it is one of the test's own, in a folder of its own.
    stack = Stack(tmp_path / "checkout", sandbox, environment("sandbox"), stack="sandbox")
    shutil.copytree(project() / "examples", stack.folder / "examples")
    (stack.folder / ".accel").mkdir()
    try:
        (stack.folder / ".accel" / "targets.json").write_text(json.dumps(stack.up().outputs["targets"]))
        script = "set -eux\n" + "\n".join(BLOCK.findall((project() / "docs" / "guide.md").read_text()))
        targets = str(stack.folder / ".accel" / "targets.json")
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=stack.folder,
            env={**stack.variables, **shell.variables, "ACCEL_TARGETS": targets},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("epoch 1/") >= 1
    finally:
        stack.destroy()

"""The commands of the guide's pages, each page in one shell, against the sandbox's own stack; their outputs too."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from sandbox.environment import project
from tests.support import programs
from tests.support.engine import Sandbox
from tests.support.pages import blocks, pages, script_of, unlike
from tests.support.project import Stack, environment

from .conftest import shell_on

TELL = 'print("trained"); print(\'@accel {"at":1,"metrics":{"loss":0.3,"accuracy":0.9}}\')'
JOB = {"name": "digits", "image": "local/examples", "command": ["python", "-c", TELL], "timeout_s": "10m"}
"""The reader's own job.yaml and tune.yaml: quick, since nothing is shown of how they train."""
SWEEP = {"grid": {"LEARNING_RATE": [0.1, 0.01]}, "objective": {"metric": "accuracy", "best": "max"}}
RUN = [page for page in pages() if any(block.runs for block in blocks(page))]


@dataclass(frozen=True)
class Checkout:
    """A folder like a checkout after `make up`: the stack "sandbox" is deployed, and a job has ended."""

    stack: Stack
    ref: str
    commands: Path
    """The folder of `accel-jobs` and `stacks`."""

    def variables(self, folder: Path) -> dict[str, str]:
        targets = self.stack.folder / ".accel" / "targets.json"
        # Unbuffered, so that what a command says and what it prints come in the order of a terminal.
        own = {**shell_on(self.stack.sandbox, targets, folder).variables, "PYTHONUNBUFFERED": "1"}
        found = {**self.stack.variables, **own}
        return {**found, "PATH": f"{self.commands}{os.pathsep}{found['PATH']}"}


@pytest.fixture(scope="module")
def checkout(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("docs")
    stack = Stack(folder / "checkout", sandbox, environment("sandbox"), stack="sandbox")
    shutil.copytree(project() / "examples", stack.folder / "examples")
    (stack.folder / ".accel").mkdir()
    try:
        (stack.folder / ".accel" / "targets.json").write_text(json.dumps(stack.up().outputs["targets"]))
        for name, fields in {"job.yaml": JOB, "tune.yaml": {**JOB, "name": "tune", "sweep": SWEEP}}.items():
            (stack.folder / name).write_text(yaml.safe_dump(fields, sort_keys=False))
        (stack.folder / "requirements.txt").write_text("PyYAML\n")  # the reader's own, which the image has
        shutil.copy(project() / ".gitignore", stack.folder)
        subprocess.run(["git", "init", "-q", str(stack.folder)], check=True)
        submit = "accel-jobs submit job.yaml --to gpu --wait -o id 2>/dev/null"
        commands = programs.scripts(folder / "commands")
        yield Checkout(stack, _bash(submit, Checkout(stack, "", commands), folder).strip(), commands)
    finally:
        stack.destroy()


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(project()).with_suffix("")))
def test_every_command_of_a_page_runs(page: Path, checkout: Checkout, tmp_path: Path) -> None:
    script, wanted = script_of([block for block in blocks(page) if block.runs], {"REF": checkout.ref})
    assert unlike(wanted, _bash(script, checkout, tmp_path)) == ""


def _bash(script: str, checkout: Checkout, folder: Path) -> str:
    """What a script printed, both streams in one."""
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=checkout.stack.folder,
        env=checkout.variables(folder) | {"HOME": os.environ.get("HOME", "/")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}"
    return done.stdout.replace("\r\n", "\n")

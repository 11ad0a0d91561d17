"""`stacks report` names the jobs on Google Cloud that a change ends, on each of its platforms."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.kubernetes import until
from tests.support.project import Stack, environment, put
from tests.support.soak import sampled

from .conftest import Shell
from .google import shell_on, started, status

LASTS = ["python", "-c", "import time; time.sleep(600)"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory, "reported")


def sections(*names: str) -> dict[str, Any]:
    values = environment("sandbox", cloud="gcp")
    values["gcp"] = {name: values["gcp"][name] for name in ("project", "region", "network", *names)}
    return values


@pytest.fixture(scope="module")
def ground(alone: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Every platform but GKE, deployed."""
    stack = Stack(tmp_path_factory.mktemp("ground"), alone, sections("vms", "batch", "vertex"), stack="ground")
    (stack.folder / "targets.json").write_text(json.dumps(stack.up().outputs["targets"]))
    yield stack
    stack.write_environment(sections("vms", "batch", "vertex"))
    stack.destroy()


def report(stack: Stack, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = commands.run(
        "stacks", "report", stack.stack, "-o", "json", *arguments, cwd=stack.folder, env=stack.variables
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def shell(ground: Stack, alone: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(alone, ground.folder / "targets.json", tmp_path)


@pytest.fixture
def running(shell: Shell, tmp_path: Path) -> Callable[..., str]:
    """Submits a job that lasts, and gives its reference once it runs."""

    def send(target: str, **fields: Any) -> str:
        path = tmp_path / f"{target}.yaml"
        document = {"name": f"lasts-on-{target}", "image": "local/examples", "command": LASTS, **fields}
        path.write_text(yaml.safe_dump(document))
        ref = shell.jobs("submit", str(path), "--to", target, "-o", "id")
        until(lambda: status(shell, ref)["phase"] == "RUNNING", timeout_s=120)
        return ref

    return send


GPU = {"accelerator": {"type": "l4", "count": 1}}
JOBS: dict[str, dict[str, Any]] = {"vm": GPU, "batch": GPU, "vertex": GPU}
KEPT = {"vm": ("batch", "vertex"), "batch": ("vms", "vertex"), "vertex": ("vms", "batch")}
"""The sections that stay when that of a target goes."""


@pytest.mark.parametrize("target", sampled(JOBS, ["vm"]))
def test_a_ground_that_goes(target: str, ground: Stack, running: Callable[..., str], shell: Shell) -> None:
    ground.write_environment(sections(*KEPT[target]))
    code, idle = report(ground, "--fail-on", "kills-jobs")
    assert (code, idle["jobs"]["hit"], idle["jobs"]["unread"]) == (0, [], [])
    assert idle["jobs"]["at_stake"] > 0
    ref = running(target, **JOBS[target])
    try:
        code, busy = report(ground, "--fail-on", "kills-jobs")
    finally:
        shell.jobs("cancel", ref, "-y")
    (hit,) = busy["jobs"]["hit"]
    assert (code, hit["ref"], hit["name"]) == (5, ref, f"lasts-on-{target}")
    assert (hit["phase"], hit["accelerators"], hit["unit"]) == ("RUNNING", 1, "GPU")
    assert 0 <= hit["hours"] < 1
    assert any(each["type"] == "gcp:storage/bucket:Bucket" for each in busy["stateful"])


def test_a_change_that_touches_no_job(ground: Stack) -> None:
    ground.write_environment(put("labels.team", "vision", sections("vms", "batch", "vertex")))
    code, found = report(ground, "--fail-on", "kills-jobs,replace-stateful")
    assert (code, found["jobs"]["hit"], found["stateful"]) == (0, [], [])

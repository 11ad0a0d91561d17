"""`stacks report` names the jobs on the nodes of a pool that a change takes away, and no others."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.project import Stack, google_sections, put
from tests.support.soak import soak_only
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import status

pytestmark = soak_only  # the report on Google Batch's jobs and on AWS Batch's is asked for in every run


def section() -> dict[str, Any]:
    """The sandbox's GKE section with the pools of one GPU alone."""
    values = google_sections("network", "accounts", "cluster", "pools", "workloads")
    gcp = values["gcp"]
    gcp["pools"] = {name: gcp["pools"][name] for name in ("system", "l4", "l4-spot")}
    gcp["workloads"]["queueing"]["queues"]["training"]["pools"] = [{"pool": name} for name in gcp["pools"]]
    return values


@pytest.fixture(scope="module")
def gke(google: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("pools"), google, section(), stack="pools")
    stack.up_targets()
    yield stack
    stack.write_environment(section())
    stack.destroy()


@pytest.fixture
def shell(gke: Stack, google: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(google, gke.folder / "targets.json", tmp_path)


def submit(shell: Shell, folder: Path, name: str, **fields: Any) -> str:
    """A job that lasts, once it runs."""
    path = folder / f"{name}.yaml"
    lasts = ["python", "-c", "import time; time.sleep(600)"]
    document = {"name": name, "image": "local/examples", "cpus": 1, "memory_mib": 1024, "command": lasts, **fields}
    path.write_text(yaml.safe_dump(document))
    ref = shell.jobs("submit", str(path), "--to", "gke", "-o", "id")
    until(lambda: status(shell, ref)["phase"] == "RUNNING")
    return ref


def report(stack: Stack) -> tuple[int, dict[str, Any]]:
    arguments = ("report", stack.stack, "-o", "json", "--fail-on", "kills-jobs")
    done = commands.run("stacks", *arguments, cwd=stack.folder, env=stack.variables)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_pool_that_is_replaced(gke: Stack, shell: Shell, tmp_path: Path) -> None:
    machine = put("gcp.pools.l4.machine_type", "g2-standard-12", section())
    gke.write_environment(machine)
    code, idle = report(gke)
    assert (code, idle["jobs"]["hit"], idle["jobs"]["unread"]) == (0, [], [])
    assert idle["jobs"]["at_stake"] > 0
    steady = submit(shell, tmp_path, "steady", accelerator={"type": "l4"}, spot=False)
    elsewhere = submit(shell, tmp_path, "elsewhere", accelerator={"type": "l4"}, spot=True)
    try:
        code, busy = report(gke)
    finally:
        for ref in (steady, elsewhere):
            shell.jobs("cancel", ref, "-y")
    (hit,) = busy["jobs"]["hit"]
    assert (code, hit["ref"], hit["name"], hit["fate"]) == (5, steady, "steady", "ends")
    assert (hit["accelerators"], hit["unit"], hit["resources"]) == (1, "GPU", ["l4"])
    assert 0 <= hit["hours"] < 1

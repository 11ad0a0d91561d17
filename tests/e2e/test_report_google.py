"""`stacks report` names the jobs on Google Cloud that a change ends, on each of its platforms."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.catalog.disk_prices import disk_price
from accel.catalog.gcp_commitments import commitment_price
from accel.catalog.node_prices import find_price
from accel.cost import HOURS_A_MONTH
from components.gcp.gpu_vm_spec import GpuVmSpec
from tests.support import commands
from tests.support.engine import WITHOUT_KUBERNETES, Sandbox, started
from tests.support.project import Stack, google_sections, put
from tests.support.soak import sampled, soak_only
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import status

LASTS = ["python", "-c", "import time; time.sleep(600)"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    yield from started(tmp_path_factory.mktemp("reported"), WITHOUT_KUBERNETES)


def sections(*names: str) -> dict[str, Any]:
    return google_sections("network", *names)


@pytest.fixture(scope="module")
def ground(alone: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Every platform but GKE, deployed."""
    stack = Stack(tmp_path_factory.mktemp("ground"), alone, sections("vms", "batch", "vertex"), stack="ground")
    stack.up_targets()
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
        until(lambda: status(shell, ref)["phase"] == "RUNNING")
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


@soak_only
def test_a_change_that_touches_no_job(ground: Stack) -> None:
    ground.write_environment(put("labels.team", "vision", sections("vms", "batch", "vertex")))
    code, found = report(ground, "--fail-on", "kills-jobs,replace-stateful")
    assert (code, found["jobs"]["hit"], found["stateful"]) == (0, [], [])


@soak_only
def test_machines_that_stay_are_priced(ground: Stack) -> None:
    """VMs, TPUs, a reservation and a commitment on top of what is deployed, against nothing of the kind before."""
    h100 = {"zone": "us-central1-a", "machine_type": "a3-highgpu-8g", "capacity": "spot"}
    kept = {"zone": "us-central1-a", "machine_type": "a2-highgpu-8g", "count": 2}
    bought = {
        **{"region": "us-central1", "plan": "TWELVE_MONTH", "machine_type": "a2-highgpu-8g", "count": 2},
        **{"reservation": "a100", "i_understand_this_is_a_purchase": True},
    }
    values = put("gcp.vms.gpus", {f"vm-{index}": h100 for index in range(4)}, sections("vms", "batch", "vertex"))
    values = put("gcp.vms.tpus", {"v5e": {"zone": "us-central1-a", "accelerator_type": "v5litepod-8"}}, values)
    values = put("gcp.vms.reservations", {"a100": kept}, values)
    ground.write_environment(put("gcp.vms.commitments", {"year": bought}, values))
    code, found = report(ground, "--offline", "--fail-on", "cost>100")
    year, vm, tpu = (
        commitment_price("a2-highgpu-8g", "us-central1", "TWELVE_MONTH"),
        *(find_price("gcp", "us-central1", name) for name in ("a3-highgpu-8g", "v5litepod-8")),
    )
    assert year and vm.on_demand and tpu.on_demand
    gib = disk_price("us-central1", GpuVmSpec.model_validate(h100).disk_type)
    assert gib
    disks = 4 * 200 * gib.usd / HOURS_A_MONTH
    worst = 4 * vm.on_demand + tpu.on_demand + 2 * year.committed + disks
    assert found["cost"]["before"]["worst"]["usd_hour"] == 0
    assert found["cost"]["after"]["worst"]["usd_hour"] == pytest.approx(worst, abs=0.01)
    assert code == 5 and [each["limit"] for each in found["fails"]] == ["cost>100"]
    assert report(ground, "--offline", "--fail-on", "cost>100000")[0] == 0

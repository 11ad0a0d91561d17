"""TPU VMs, queued resources, GPU VMs and groups of them through the real engine: made, unchanged, changed, gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Engine, Result, Step
from tests.support.google_fake import COMPUTE, Fake, P, engine_on, still
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
ZONE = "us-central1-a"
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1"}
PATIENCE_S = 60
PROGRAM = """
import pulumi
import pulumi_gcp as gcp
from components.gcp.gpu_vm import GpuVm, GpuVmArgs
from components.gcp.gpu_vm_group import GpuVmGroup, GpuVmGroupArgs, GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.queue_hooks import queue_hooks
from components.gcp.tpu_queue import TpuQueue, TpuQueueArgs, TpuQueueSpec
from components.gcp.tpu_vm import TpuVm, TpuVmArgs, TpuVmSpec

network = gcp.compute.Network("net", auto_create_subnetworks=False)
subnet = gcp.compute.Subnetwork(
    "sub", network=network.id, region="us-central1", ip_cidr_range="10.0.0.0/20", private_ip_google_access=True
)
account = gcp.serviceaccount.Account("vms", account_id="machines")
place = {"project": "accel-sandbox", "network": network.id, "subnetwork": subnet.id}
kinds = {
    "tpu_vm": (TpuVm, TpuVmArgs, TpuVmSpec),
    "tpu_queue": (TpuQueue, TpuQueueArgs, TpuQueueSpec),
    "gpu_vm": (GpuVm, GpuVmArgs, GpuVmSpec),
    "gpu_vm_group": (GpuVmGroup, GpuVmGroupArgs, GpuVmGroupSpec),
}
component, args, spec = kinds[KIND]
queued = queue_hooks()
runs_as = {"hooks": queued} if KIND == "tpu_queue" else {"service_account": account.email}
made = component("one", args(spec=spec.model_validate(VALUES), **place, **runs_as))
pulumi.export("name", made.name)
pulumi.export("zone", made.zone)
if KIND == "tpu_vm":
    pulumi.export("workers", made.ssh_commands)
"""

TRAINS = """#!/bin/sh
# The training is a process group of its own, which it tells the number of.
exec setsid --wait bash -c '
trap "echo once >>{saved}; exit 143" TERM
echo $$ >{pid}
while :; do sleep 0.1; done
'
"""


def program(kind: str, **values: object) -> str:
    return f"KIND = {kind!r}\nVALUES = { ({'zone': ZONE, **values})!r}\n{PROGRAM}"


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG, "--run-program")


def step(result: Result, op: str, of: str) -> Step:
    """The step of the resource `one` whose type ends so: component and resource have the same name."""
    found = [each for each in result.steps if (each.op, each.name) == (op, "one") and each.type.endswith(of)]
    assert found, [(each.op, each.type) for each in result.steps]
    return found[0]


def nodes(fake: Fake) -> list[dict[str, Any]]:
    return fake.call("GET", f"tpu.googleapis.com/v2/{P}/locations/{ZONE}/nodes").get("nodes", [])


def instances(fake: Fake) -> list[dict[str, Any]]:
    return fake.call("GET", f"{COMPUTE}/zones/{ZONE}/instances").get("items", [])


def told(fake: Fake, name: str) -> str:
    """What the VM says of its GPUs; nothing before it said anything."""
    path = f"{COMPUTE}/zones/{ZONE}/instances/{name}/getGuestAttributes"
    answer = fake.ask("GET", path, queryPath="accel/gpus")
    return answer.json()["queryValue"]["items"][0]["value"] if answer.ok else ""


@soak_only
def test_a_tpu_vm(engine: Engine, fake: Fake) -> None:
    spec: dict[str, Any] = {"accelerator_type": "v5e-8", "spot": True, "data_disks": {"data": {"size_gib": 100}}}
    made = engine.write(program("tpu_vm", **spec)).up()
    (node,) = nodes(fake)
    assert (node["acceleratorType"], node["runtimeVersion"]) == ("v5litepod-8", "v2-alpha-tpuv5-lite")
    assert node["schedulingConfig"] == {"spot": True}
    assert node["serviceAccount"]["email"] == "machines@accel-sandbox.iam.gserviceaccount.com"
    assert "accessConfig" not in node["networkEndpoints"][0]
    assert (node["name"].rpartition("/")[2], len(made.outputs["workers"])) == (made.outputs["name"], 1)
    assert any("v5litepod-8" in line for line in made.diagnostics), "the old name is warned of"
    still(engine)

    labelled = engine.write(program("tpu_vm", **spec, labels={"team": "ml"})).up()
    assert step(labelled, "update", ":V2Vm")
    assert nodes(fake)[0]["labels"]["team"] == "ml"

    larger = engine.write(program("tpu_vm", **{**spec, "accelerator_type": "v5litepod-4"})).up()
    assert "acceleratorType" in step(larger, "replace", ":V2Vm").replaces
    (node,) = nodes(fake)
    assert node["acceleratorType"] == "v5litepod-4"
    still(engine)
    engine.destroy()
    assert nodes(fake) == []
    assert "items" not in fake.call("GET", f"{COMPUTE}/zones/{ZONE}/disks") or not [
        disk for disk in fake.call("GET", f"{COMPUTE}/zones/{ZONE}/disks")["items"] if disk["name"].startswith("one")
    ]


@soak_only
def test_a_slice_of_a_topology(engine: Engine, fake: Fake) -> None:
    spec = {"accelerator_type": "v5litepod", "topology": "4x4"}
    made = engine.write(program("tpu_vm", **spec)).up()
    (node,) = nodes(fake)
    assert node["acceleratorConfig"] == {"type": "V5LITE_POD", "topology": "4x4"}
    assert len(made.outputs["workers"]) == len(node["networkEndpoints"]) == 4
    still(engine)


def test_a_queued_resource(engine: Engine, fake: Fake) -> None:
    made = engine.write(program("tpu_queue", accelerator_type="v5litepod-8")).up()
    path = f"tpu.googleapis.com/v2/{P}/locations/{ZONE}/queuedResources/{made.outputs['name']}"
    until(lambda: fake.call("GET", path)["state"]["state"] == "ACTIVE")
    (node,) = nodes(fake)
    assert node["acceleratorType"] == "v5litepod-8"
    still(engine)
    engine.write(program("tpu_queue", accelerator_type="v5litepod-4"))
    assert any("its TPU with it" in line for line in engine.preview().diagnostics)
    engine.up()
    until(lambda: [each["acceleratorType"] for each in nodes(fake)] == ["v5litepod-4"])
    engine.destroy("--run-program")
    assert nodes(fake) == []


@soak_only
def test_a_gpu_vm_tells_of_its_gpus(engine: Engine, fake: Fake) -> None:
    spec: dict[str, Any] = {"machine_type": "g2-standard-24", "image_family": "pytorch-latest-gpu", "capacity": "spot"}
    made = engine.write(program("gpu_vm", **spec)).up()
    name = made.outputs["name"]
    (vm,) = instances(fake)
    assert (vm["name"], vm["status"], vm["scheduling"]["provisioningModel"]) == (name, "RUNNING", "SPOT")
    assert "accessConfigs" not in vm["networkInterfaces"][0]
    assert until(lambda: (said := told(fake, name)) != "waiting" and said) == "2"
    still(engine)

    larger = engine.write(program("gpu_vm", **{**spec, "machine_type": "g2-standard-48"})).up()
    assert "machineType" in step(larger, "update", ":Instance").diffs
    (vm,) = instances(fake)
    assert (vm["name"], vm["machineType"].rpartition("/")[2]) == (name, "g2-standard-48")
    assert until(lambda: told(fake, name) == "4")
    still(engine)

    other = engine.write(program("gpu_vm", **{**spec, "image_family": "common-cu129-ubuntu-2404-nvidia-580"})).up()
    assert step(other, "replace", ":Instance")
    engine.destroy()
    assert instances(fake) == []


@soak_only
def test_a_notice_of_preemption_reaches_the_training(engine: Engine, fake: Fake, tmp_path: Path) -> None:
    pid, saved = tmp_path / "pid", tmp_path / "saved"
    spec: dict[str, Any] = {
        "machine_type": "g2-standard-4",
        "capacity": "spot",
        "preemption_notice_s": 120,
        "checkpoint": {"pid_file": str(pid)},
        "startup_script": TRAINS.format(pid=pid, saved=saved),
    }
    made = engine.write(program("gpu_vm", **spec)).up()
    until(lambda: pid.exists() and pid.read_text())
    key = f"{P}/zones/{ZONE}/instances/{made.outputs['name']}"
    fake.call("POST", "sandbox-api/preempt", {"name": key})
    until(lambda: saved.exists() and saved.read_text())
    assert saved.read_text() == "once\n"


@soak_only
def test_a_gpu_vm_without_a_driver_says_so(engine: Engine, fake: Fake) -> None:
    spec = {"machine_type": "g2-standard-4", "install_driver": False, "driver_wait_s": 0}
    made = engine.write(program("gpu_vm", **spec)).up()
    assert until(lambda: (said := told(fake, made.outputs["name"])) != "waiting" and said) == "driver-not-ready"


@soak_only
def test_gpus_on_an_n1_machine(engine: Engine, fake: Fake) -> None:
    spec = {"machine_type": "n1-standard-8", "accelerator": "t4", "accelerator_count": 2, "disk": {"type": "pd-ssd"}}
    made = engine.write(program("gpu_vm", **spec)).up()
    (vm,) = instances(fake)
    (gpu,) = vm["guestAccelerators"]
    assert (gpu["acceleratorType"].rpartition("/")[2], gpu["acceleratorCount"]) == ("nvidia-tesla-t4", 2)
    assert until(lambda: (said := told(fake, made.outputs["name"])) != "waiting" and said) == "2"
    still(engine)


@soak_only
def test_a_group(engine: Engine, fake: Fake) -> None:
    spec: dict[str, Any] = {"machine_type": "a2-highgpu-1g", "capacity": "spot", "size": 2, "compact_placement": True}
    engine.write(program("gpu_vm_group", **spec)).up()
    names = until(lambda: (found := [vm["name"] for vm in instances(fake)]) and len(found) == 2 and found)
    assert all(name.startswith("one-") for name in names)
    for name in names:
        assert until(lambda name=name: (said := told(fake, name)) != "waiting" and said) == "1"
    still(engine)

    # A new template first, then the group's VMs, then the old one goes.
    changed = engine.write(program("gpu_vm_group", **{**spec, "machine_type": "a2-highgpu-2g"})).up()
    assert step(changed, "replace", ":InstanceTemplate") and step(changed, "update", ":InstanceGroupManager")
    assert {vm["machineType"].rpartition("/")[2] for vm in instances(fake)} == {"a2-highgpu-2g"}
    smaller = engine.write(program("gpu_vm_group", **{**spec, "machine_type": "a2-highgpu-2g", "size": 1})).up()
    assert step(smaller, "update", ":InstanceGroupManager").diffs == ("targetSize",)
    until(lambda: len(instances(fake)) == 1)
    engine.destroy()
    until(lambda: instances(fake) == [])

"""The life of virtual machines, their templates and groups in the gcp stand-in, through the real engine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import Engine
from tests.support.google_fake import COMPUTE, Fake, engine_on
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
PROGRAM = (Path(__file__).with_name("programs") / "google_vms.py").read_text()
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1", "gcp:defaultLabels": json.dumps({"team": "ml"})}
KINDS = {
    f"gcp:compute/{kind[:1].lower()}{kind[1:]}:{kind}"
    for kind in (
        *("Instance", "InstanceTemplate", "RegionInstanceTemplate", "InstanceGroupManager"),
        *("RegionInstanceGroupManager", "AttachedDisk", "FutureReservation", "RegionCommitment"),
    )
}
VMS = f"{COMPUTE}/zones/us-central1-a/instances"
HEAD = """
import pulumi
import pulumi_gcp as gcp
net = gcp.compute.Network("net", auto_create_subnetworks=True)
def vm(name, **more):
    return gcp.compute.Instance(name, name=name, zone="us-central1-a", **{
        "machine_type": "e2-standard-2",
        "boot_disk": {"initialize_params": {"image": "debian-cloud/debian-12"}},
        "network_interfaces": [{"network": net.id}], **more})
"""


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    yield from engine_on(tmp_path, fake, provider, CONFIG)


def left(fake: Fake) -> list[str]:
    kinds = ("global/networks", "global/instanceTemplates", "regions/-/instanceTemplates", "zones/-/instances",
             "zones/-/disks", "zones/-/instanceGroupManagers", "regions/-/instanceGroupManagers",
             "zones/-/futureReservations", "regions/-/resourcePolicies")  # fmt: skip
    return [item["name"] for kind in kinds for item in fake.call("GET", f"{COMPUTE}/{kind}").get("items", [])]


@soak_only
def test_every_type_from_its_creation_to_its_end(engine: Engine, fake: Fake) -> None:
    assert left(fake) == []
    planned = engine.write(PROGRAM).preview()
    assert set(planned.ops()) == {"create"} and left(fake) == []
    made = engine.up()
    count = made.ops()["create"]
    assert made.ops() == planned.ops()
    assert {r["type"] for r in engine.export()} >= KINDS
    assert made.outputs["image"].startswith("debian-12-") and "us-central1-a" in made.outputs["zones"]
    assert made.outputs["address"].startswith("10.0.")
    engine.stays(count)
    gpu = fake.call("GET", f"{VMS}/{made.outputs['gpu']}")
    assert gpu["labels"] == {"goog-pulumi-provisioned": "true", "team": "ml", "stage": "a"}
    assert (gpu["status"], len(gpu["disks"]), gpu["disks"][0]["diskSizeGb"]) == ("RUNNING", 2, "100")
    assert gpu["networkInterfaces"][0]["accessConfigs"][0]["natIP"].startswith("203.0.113.")
    spot = fake.call("GET", f"{VMS}/{made.outputs['spot']}")
    assert spot["scheduling"]["maxRunDuration"] == {"seconds": "86400"} and spot["scheduling"]["preemptible"]
    assert {row["key"] for row in spot["metadata"]["items"]} == {"startup-script"}
    assert spot["disks"][1]["deviceName"] == "persistent-disk-1"
    group = f"{COMPUTE}/zones/us-central1-a/instanceGroupManagers/{made.outputs['group']}"
    assert fake.call("GET", group)["updatePolicy"]["maxSurge"] == {"fixed": 0}
    assert fake.call("GET", group)["currentActions"]["none"] == 2
    assert fake.ask("DELETE", f"{VMS}/{made.outputs['gpu']}").json()["error"]["code"] == 400

    engine.write(PROGRAM.replace("VERSION = 1", "VERSION = 2"))
    changed = engine.up()
    assert {step.name for step in changed.steps if step.op == "replace"} == {"spot", "whole", "regional", "mounted"}
    assert {step.name for step in changed.steps if step.op == "update"} == {"gpu", "stopped", "group", "wide"}
    engine.stays(count)
    gpu = fake.call("GET", f"{VMS}/{made.outputs['gpu']}")
    assert gpu["machineType"].endswith("g2-standard-8") and gpu["status"] == "RUNNING"
    assert gpu["tags"]["items"] == ["ssh", "web"] and not gpu["scheduling"]["automaticRestart"]
    assert {"key": "stage", "value": "b"} in gpu["metadata"]["items"] and gpu["labels"]["stage"] == "b"
    assert fake.call("GET", group)["targetSize"] == 1
    assert len(fake.call("GET", f"{COMPUTE}/zones/-/instances", filter="labels.stage=b")["items"]) == 4

    bought = next(each["outputs"]["name"] for each in engine.export() if each["urn"].endswith("::paid"))
    assert engine.destroy().ops()["delete"] == count
    assert left(fake) == []
    paid = [each["name"] for each in fake.call("GET", f"{COMPUTE}/regions/us-central1/commitments")["items"]]
    assert bought in paid, "it is paid to its end"


@soak_only
def test_what_others_change_is_seen_and_put_back(engine: Engine, fake: Fake) -> None:
    engine.write(f'{HEAD}\nvm("a", metadata={{"x": "1"}}, desired_status="RUNNING", labels={{"l": "1"}})\n').up()
    mark = fake.call("GET", f"{VMS}/a")["metadata"]["fingerprint"]
    items = [{"key": "x", "value": "2"}, {"key": "y", "value": "3"}]
    fake.done("POST", f"{VMS}/a/setMetadata", {"items": items, "fingerprint": mark})
    fake.done("POST", f"{VMS}/a/stop")
    seen = engine.refresh()
    assert seen.step("a", "update").diffs
    back = engine.up()
    assert set(back.step("a", "update").diffs) >= {"desiredStatus", "metadata.x", "metadata.y"}
    found = fake.call("GET", f"{VMS}/a")
    assert (found["status"], found["metadata"]["items"]) == ("RUNNING", [{"key": "x", "value": "1"}])


@soak_only
def test_a_running_machine_is_not_stopped_unasked(engine: Engine, fake: Fake) -> None:
    engine.write(f'{HEAD}\nvm("a")\n').up()
    engine.write(f'{HEAD}\nvm("a", machine_type="e2-standard-4")\n')
    refused = engine.up(check=False)
    assert refused.exit_code and any("please set allow_stopping_for_update = true" in x for x in refused.diagnostics)
    assert fake.call("GET", f"{VMS}/a")["machineType"].endswith("e2-standard-2")


REFUSED = {
    'vm("b", scheduling={"preemptible": True, "automatic_restart": True})':
        "Scheduling must have preemptible be false when AutomaticRestart is true., invalid",
    'vm("c", machine_type="g2-standard-4")':
        "googleapi: Error 400: Instances with guest accelerators do not support live migration., badRequest",
    'vm("d", machine_type="x9-huge-1")':
        "Machine type with name 'x9-huge-1' does not exist in zone 'us-central1-a'., invalid",
    'vm("e", desired_status="TERMINATED")': "desired_status can only accept RUNNING value",
    'vm("f", boot_disk={"initialize_params": {"image": "projects/debian-cloud/global/images/family/debian-1"}})':
        "The resource 'projects/debian-cloud/global/images/family/debian-1' was not found, notFound",
}  # fmt: skip


def test_what_is_refused_says_why(engine: Engine, fake: Fake) -> None:
    fake.fault(stockout=["n2-standard-8"])
    lines = [*REFUSED, 'vm("g", machine_type="n2-standard-8")']
    wanted = [*REFUSED.values(), "Error waiting for instance to create: The zone"]
    refused = engine.write(HEAD + "".join(f"{line}\n" for line in lines)).up("--continue-on-error", check=False)
    missing = [text for text in wanted if not any(text in said for said in refused.diagnostics)]
    assert refused.exit_code and not missing, refused.diagnostics
    assert fake.call("GET", VMS)["items"] == [] and fake.call("GET", f"{COMPUTE}/zones/-/disks")["items"] == []

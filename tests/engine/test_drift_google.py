"""`stacks drift` and `stacks leaks` over a stack of Google Cloud on the real engine: nothing at first, and a line for
each thing that was changed or left behind."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from accel.catalog.prices import price
from accel.contract.target_layout import SOURCE
from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.google_fake import COMPUTE, CONTAINER, Fake, P
from tests.support.project import Stack, environment
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake"]
ZONE = "us-central1-a"
REGION = ZONE.rpartition("-")[0]
VERTEX = f"aiplatform.googleapis.com/v1/{P}/locations/{REGION}"
TPU = f"tpu.googleapis.com/v2/{P}/locations"
ENDS = datetime.now(UTC) + timedelta(days=5)
LABELS = {"accel-project": "accel", "accel-stack": "drift", "goog-pulumi-provisioned": "true"}

Run = Callable[..., list[dict[str, Any]]]


def section() -> dict[str, Any]:
    values = environment("sandbox", cloud="gcp")
    own = {key: values["gcp"][key] for key in ("project", "region", "network", "cluster")}
    own["pools"] = {key: values["gcp"]["pools"][key] for key in ("system", "l4-spot")}
    reserved = {"zone": ZONE, "machine_type": "a2-highgpu-1g", "count": 1, "delete_at": f"{ENDS:%Y-%m-%dT%H:%M:%SZ}"}
    own["vms"] = {
        "jobs": {"force_delete": True},
        "targets": {"vm": {"kind": "gce", "zones": [ZONE], "machine_types": ["g2-standard-4"]}},
        "reservations": {"kept": reserved},
        "gpus": {"one": {"zone": ZONE, "machine_type": "g2-standard-4", "capacity": "spot"}},
        "tpu_queues": {"queued": {"zone": ZONE, "accelerator_type": "v5litepod-4"}},
    }
    return {**values, "gcp": own}


@pytest.fixture(scope="module")
def stack(fake: Fake, provider: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(tmp_path_factory.mktemp("drift"), Sandbox(fake.home, provider), section(), stack="drift")
    made.up()
    yield made
    fake.well()
    made.run("state", "unprotect", "--all", "--yes", check=False)
    made.destroy(check=False)


@pytest.fixture
def run(stack: Stack, tmp_path: Path) -> Run:
    variables = {**stack.variables, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def call(verb: str, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
        done = commands.run("stacks", verb, *arguments, "drift", "-o", "json", cwd=stack.folder, env=variables)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    return call


def drifts(found: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Without the cluster's inside: nobody serves Kubernetes here, which is told as unknown."""
    inside = [each for each in found if each["weight"] == "unknown"]
    assert {each["name"].rpartition(" ")[0] for each in inside} == {"nodes of cluster"}
    return {(each["what"], each["name"]): each["text"] for each in found if each not in inside}


def pool_of(stack: Stack) -> tuple[str, str]:
    """Names of the cluster and of its GPU pool."""
    (cluster,) = stack.outputs()["clusters"].values()
    return cluster["name"], cluster["pools"]["l4-spot"]["name"]


def named(fake: Fake, kind: str, begins: str) -> str:
    return next(each["name"] for each in fake.call("GET", f"{COMPUTE}/{kind}")["items"] if begins in each["name"])


@soak_only
def test_a_fresh_stack_has_neither(run: Run, fake: Fake, stack: Stack) -> None:
    assert run("leaks", "--older-than", "0", "--expect-none") == []
    cluster, pool = pool_of(stack)
    fake.done("POST", f"{CONTAINER}/{REGION}/clusters/{cluster}/nodePools/{pool}:setSize", {"nodeCount": 2})
    assert drifts(run("drift", "--within", "2")) == {}, "the autoscaler's number"
    found = run("drift", "--no-quota", "--no-properties")
    assert drifts(found)["reservation", "kept"].startswith(f"ends {ENDS:%Y-%m-%d %H:%M} UTC")


def test_what_became_unwell(run: Run, fake: Fake, stack: Stack) -> None:
    outputs = stack.outputs()
    cluster, pool = pool_of(stack)
    at = f"{CONTAINER}/{REGION}/clusters/{cluster}/nodePools"
    body = fake.call("GET", f"{at}/{pool}")
    fake.done("DELETE", f"{at}/{pool}")
    fake.fault(stockout=["g2-standard-8"])
    kept = {key: body[key] for key in ("name", "config", "locations")}
    operation = fake.call("POST", at, {"nodePool": {**kept, "initialNodeCount": 1}})
    until(lambda: fake.call("GET", f"{CONTAINER}/{REGION}/operations/{operation['name']}")["status"] == "DONE")
    fake.fault(stockout=[])
    machine = named(fake, f"zones/{ZONE}/instances", "one")
    fake.done("POST", f"{COMPUTE}/zones/{ZONE}/instances/{machine}/stop")
    firewalls = fake.call("GET", f"{COMPUTE}/global/firewalls")["items"]
    firewall = next(each["name"] for each in firewalls if each.get("sourceRanges"))
    fake.done("PATCH", f"{COMPUTE}/global/firewalls/{firewall}", {"sourceRanges": ["0.0.0.0/0"]})
    request = fake.call("GET", f"{TPU}/{ZONE}/queuedResources")["queuedResources"][0]["name"]
    until(lambda: fake.call("GET", f"tpu.googleapis.com/v2/{request}")["state"]["state"] == "ACTIVE")
    (node,) = fake.call("GET", f"{TPU}/{ZONE}/nodes")["nodes"]
    fake.call("DELETE", f"tpu.googleapis.com/v2/{node['name']}")
    until(lambda: fake.call("GET", f"tpu.googleapis.com/v2/{request}")["state"]["state"] == "SUSPENDED")
    bucket = outputs["vm_targets"].removeprefix("gs://").partition("/")[0]
    published = {field: value for field, value in outputs["targets"]["vm"].items() if field != SOURCE}
    wrong = json.dumps({**published, "project": "another"})
    path = f"{fake.url}/storage.googleapis.com/upload/storage/v1/b/{bucket}/o"
    sent = requests.post(
        path,
        params={"uploadType": "media", "name": "accel-targets/vm.json"},
        data=wrong,
        headers={"Authorization": f"Bearer {fake.token}", "Content-Type": "application/json"},
        timeout=120,
    )
    assert sent.ok, sent.text

    fake.fault(quota={f"compute/{REGION}/PREEMPTIBLE_NVIDIA_L4_GPUS": 1})
    told = drifts(run("drift", "--within", "2", code=7))
    fake.fault(quota={})
    assert any(what == "quota" and "PREEMPTIBLE_NVIDIA_L4_GPUS" in name for what, name in told), told
    assert told["pool", "l4-spot"].startswith("is ERROR: Try a different location")
    assert told["instance", "one"] == "is TERMINATED: Spot, so perhaps preempted"
    assert told["queued resource", "queued"].startswith("is SUSPENDED")
    assert told["target", "vm"].endswith(": project")
    assert any("sourceRanges" in text for (what, _), text in told.items() if what == "property")

    leaks = {each["what"]: each for each in run("leaks", "--older-than", "0")}
    assert leaks["pool"]["state"] == "ERROR" and leaks["pool"]["usd_a_day"] is None
    assert leaks["queued resource"]["why"] == "was preempted and holds its quota"
    assert leaks["queued resource"]["fix"].startswith("the stack has it")
    assert set(leaks) == {"pool", "queued resource"}, "what the state has is no leak"


def test_what_a_stack_left_behind(run: Run, fake: Fake, stack: Stack) -> None:
    fake.done("POST", f"{COMPUTE}/regions/{REGION}/addresses", {"name": "lost", "labels": LABELS})
    theirs = {"accel-project": "accel", "accel-stack": "another", "goog-pulumi-provisioned": "true"}
    fake.done("POST", f"{COMPUTE}/regions/{REGION}/addresses", {"name": "theirs", "labels": theirs})
    disk = {"sizeGb": "10", "labels": LABELS, "type": f"zones/{ZONE}/diskTypes/pd-ssd"}
    fake.done("POST", f"{COMPUTE}/zones/{ZONE}/disks", {"name": "lost-disk", **disk})
    machine = fake.call("GET", f"{COMPUTE}/zones/{ZONE}/instances/{named(fake, f'zones/{ZONE}/instances', 'one')}")
    body = {key: machine[key] for key in ("machineType", "scheduling", "networkInterfaces")}
    body["networkInterfaces"] = [{"subnetwork": machine["networkInterfaces"][0]["subnetwork"]}]
    image = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
    boot = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}
    for name, labels in (("lost", LABELS), ("node", {**LABELS, "goog-gke-node": ""})):
        fake.done(
            "POST", f"{COMPUTE}/zones/{ZONE}/instances", {**body, "name": name, "labels": labels, "disks": [boot]}
        )
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 2}
    for name, labels in (("idle", LABELS), ("their-idle", theirs)):
        kept = {"resourcePools": [pool], "labels": labels}
        fake.call("POST", f"{VERTEX}/persistentResources", kept, persistentResourceId=name)
        until(lambda name=name: fake.call("GET", f"{VERTEX}/persistentResources/{name}")["state"] == "RUNNING")
    try:
        found = {
            (each["what"], each["name"]): each for each in run("leaks", "--older-than", "0", "--expect-none", code=7)
        }
        lost = {key for key in found if key[0] not in ("pool", "queued resource")}
        assert lost == {
            ("address", "lost"),
            ("disk", "lost-disk"),
            ("instance", "lost"),
            ("persistent resource", "idle"),
        }
        assert found["instance", "lost"]["usd_a_day"] and found["address", "lost"]["usd_a_day"] is None
        known = price("gcp", REGION, "n1-standard-4").on_demand
        assert known and found["persistent resource", "idle"]["usd_a_day"] == round(2 * 24 * known, 2)
        assert run("leaks") == [
            each
            for each in run("leaks", "--older-than", "0")
            if each["created"] is None or each["what"] == "queued resource"
        ], "the young ones are left out"
        run("leaks", "--older-than", "0", "--yes")
        # An API that is not enabled, say.
        fake.fault(method="tpu.projects.locations.nodes.list", code=403, count=100)
        left = {(each["what"], each["name"]) for each in run("leaks", "--older-than", "0")}
        assert not left & {("address", "lost"), ("disk", "lost-disk"), ("instance", "lost")}
        assert "queued resource" in {what for what, _ in left}
    finally:
        fake.well()
        for name in ("idle", "their-idle"):
            fake.call("DELETE", f"{VERTEX}/persistentResources/{name}")
        fake.done("DELETE", f"{COMPUTE}/regions/{REGION}/addresses/theirs")
        fake.done("DELETE", f"{COMPUTE}/zones/{ZONE}/instances/node")

"""TPU nodes in the sandbox's Google, and what the API knows of zones and types."""

from typing import Any

import pytest

from accel.catalog.tpu import tpu
from sandbox.google.tpu.nodes import bounds
from tests.support.google_fake import COMPUTE, Fake, P
from tests.support.google_tpus import LITE, TPU, ZONE, ask, finished, node, request, said
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus"]


def test_what_there_is_to_be_had(fake: Fake) -> None:
    zones = [each["locationId"] for each in fake.call("GET", f"tpu.googleapis.com/v2/{P}/locations")["locations"]]
    assert "us-central1-a" in zones and "us-central2-b" in zones and "europe-west2-a" not in zones
    assert fake.call("GET", f"tpu.googleapis.com/v2/{ZONE}")["name"] == ZONE
    types = {each["type"]: each for each in fake.call("GET", f"{TPU}/acceleratorTypes")["acceleratorTypes"]}
    assert types["v5litepod-16"]["acceleratorConfigs"] == [{"type": "V5LITE_POD", "topology": "4x4"}]
    assert "v4-8" not in types and "tpu7x-2x2x1" not in types
    assert fake.call("GET", f"{TPU}/acceleratorTypes/v5litepod-16") == types["v5litepod-16"]
    versions = [each["version"] for each in fake.call("GET", f"{TPU}/runtimeVersions")["runtimeVersions"]]
    assert "v2-alpha-tpuv6e" in versions
    assert fake.ask("GET", f"{TPU}/acceleratorTypes/v4-8").status_code == 404
    nowhere = fake.ask("GET", f"tpu.googleapis.com/v2/{P}/locations/mars/acceleratorTypes")
    assert said(nowhere) == (403, "Permission denied on 'locations/mars' (or it may not exist).")
    first = fake.call("GET", f"{TPU}/acceleratorTypes", pageSize=2)
    assert len(first["acceleratorTypes"]) == 2
    second = fake.call("GET", f"{TPU}/acceleratorTypes", pageSize=2, pageToken=first["nextPageToken"])
    assert second["acceleratorTypes"][0] != first["acceleratorTypes"][0]


def test_a_node_from_its_creation_to_its_end(tpus: Fake) -> None:
    metadata = {"startup-script": "exit 0", "a": "b"}
    operation = tpus.slow("POST", f"{TPU}/nodes", {**LITE, "metadata": metadata, "tags": ["t"]}, nodeId="one")
    assert not operation["done"] and operation["metadata"]["target"] == f"{ZONE}/nodes/one"
    assert tpus.call("GET", f"{TPU}/nodes/one")["state"] == "CREATING"
    assert finished(tpus, operation)["response"]["name"] == f"{ZONE}/nodes/one"
    assert operation["name"] in [each["name"] for each in tpus.call("GET", f"{TPU}/operations")["operations"]]
    found = tpus.call("GET", f"{TPU}/nodes/one")
    assert (found["state"], found["health"], found["apiVersion"]) == ("READY", "HEALTHY", "V2")
    addresses = {each["ipAddress"] for each in found["networkEndpoints"]}
    assert len(addresses) == 4 and all(each.startswith("127.") for each in addresses)
    assert found["acceleratorConfig"] == {"type": "V5LITE_POD", "topology": "4x4"}
    assert found["serviceAccount"]["email"].endswith("-compute@developer.gserviceaccount.com")
    assert said(tpus.ask("POST", f"{TPU}/nodes", LITE, nodeId="one"))[0] == 409

    changed = {"labels": {"x": "y"}, "metadata": {"a": "c"}}
    finished(tpus, tpus.call("PATCH", f"{TPU}/nodes/one", changed, updateMask="labels,metadata"))
    found = tpus.call("GET", f"{TPU}/nodes/one")
    assert (found["labels"], found["metadata"], found["tags"]) == ({"x": "y"}, {"a": "c"}, ["t"])
    wrong = tpus.ask("PATCH", f"{TPU}/nodes/one", {"runtimeVersion": "x"}, updateMask="runtimeVersion")
    assert said(wrong)[1].endswith('The field "update_mask" cannot be "runtimeVersion".')
    assert tpus.ask("PATCH", f"{TPU}/nodes/one", {"labels": {}}).status_code == 400

    operation = tpus.slow("DELETE", f"{TPU}/nodes/one")
    assert tpus.call("GET", f"{TPU}/nodes/one")["state"] == "DELETING"
    assert finished(tpus, operation)["response"]["@type"].endswith("Empty")
    assert tpus.ask("GET", f"{TPU}/nodes/one").status_code == 404


def test_hosts_run_and_have_guest_attributes(tpus: Fake) -> None:
    found = node(tpus)
    ask = f"{TPU}/nodes/one:getGuestAttributes"
    every = tpus.call("POST", ask, {})["guestAttributes"]
    names = [
        item["value"] for each in every for item in each["queryValue"]["items"]
        if (item["namespace"], item["key"]) == ("hostkeys", "hostname")
    ]  # fmt: skip
    assert names == [f"t1v-n-{int(found['id']) & 0xFFFFFFFF:08x}-w-{worker}" for worker in range(4)]
    (third,) = tpus.call("POST", ask, {"workerIds": ["2"], "queryPath": "hostkeys/hostname"})["guestAttributes"]
    assert third["queryValue"]["items"] == [{"namespace": "hostkeys", "key": "hostname", "value": names[2]}]
    (none,) = tpus.call("POST", ask, {"workerIds": ["0"], "queryPath": "other/"})["guestAttributes"]
    assert none["queryValue"] == {"items": []}
    assert said(tpus.ask("POST", ask, {"workerIds": ["4"]}))[1].endswith('The field "worker_ids" cannot be "4".')


def test_a_startup_script_runs_on_each_host(tpus: Fake) -> None:
    script = """#!/bin/bash
get() { curl -sf -H Metadata-Flavor:Google "http://$GCE_METADATA_HOST/computeMetadata/v1/instance/$1"; }
me=$(get attributes/agent-worker-number)
said="$me $(get attributes/accelerator-type) $(get name) $(get attributes/tpu-env | tr -d "'" | grep ^WORKER_ID)"
curl -sf -X PUT -H Metadata-Flavor:Google --data "$said" \
  "http://$GCE_METADATA_HOST/computeMetadata/v1/instance/guest-attributes/test/said"
sleep 600
"""
    node(tpus, metadata={"startup-script": script, "enable-guest-attributes": "TRUE"})

    def heard() -> Any:
        every = tpus.call("POST", f"{TPU}/nodes/one:getGuestAttributes", {"queryPath": "test/said"})["guestAttributes"]
        found = [item["value"] for each in every for item in each["queryValue"]["items"]]
        return found if len(found) == 4 else None

    for worker, text in enumerate(until(heard)):
        number, kind, name, line = text.split(" ", 3)
        assert (number, kind, line) == (str(worker), "v5litepod-16", f"WORKER_ID: {worker}")
        assert name.endswith(f"-w-{worker}")
    finished(tpus, tpus.call("DELETE", f"{TPU}/nodes/one"))


@soak_only
def test_a_node_of_one_host_stops_and_starts(tpus: Fake) -> None:
    node(tpus, "small", acceleratorType="v5litepod-4")
    operation = tpus.slow("POST", f"{TPU}/nodes/small:stop", {})
    assert tpus.call("GET", f"{TPU}/nodes/small")["state"] == "STOPPING"
    finished(tpus, operation)
    assert tpus.call("GET", f"{TPU}/nodes/small")["state"] == "STOPPED"
    assert tpus.ask("POST", f"{TPU}/nodes/small:stop", {}).status_code == 400
    operation = tpus.call("POST", f"{TPU}/nodes/small:start", {})
    assert tpus.call("GET", f"{TPU}/nodes/small")["state"] == "STARTING"
    finished(tpus, operation)
    assert tpus.call("GET", f"{TPU}/nodes/small")["state"] == "READY"
    assert tpus.ask("POST", f"{TPU}/nodes/small:start", {}).status_code == 400
    node(tpus, "large")
    assert "only a node of one host" in said(tpus.ask("POST", f"{TPU}/nodes/large:stop", {}))[1]


REFUSED = [
    ({"acceleratorType": "v4-128"}, 400,
     "Cloud TPU received a bad request. the accelerator v4-128 was not found in zone us-central1-a "
     "(sandbox: us-central2-b have it)"),
    ({"acceleratorType": "v5e-16"}, 400, "the accelerator v5e-16 was not found in zone us-central1-a"),
    ({"acceleratorType": "tpu7x-2x2x1"}, 400, "was not found in zone us-central1-a"),
    ({"acceleratorType": "", "acceleratorConfig": {"type": "V5LITE_POD", "topology": "3x3"}}, 400, "V5LITE_POD 3x3"),
    ({"acceleratorConfig": {"type": "V5LITE_POD", "topology": "4x4"}}, 400, "are mutually exclusive"),
    ({"runtimeVersion": "v9"}, 400,
     'Cloud TPU received an invalid argument. The field "RuntimeVersion" cannot be "v9".'),
    ({"runtimeVersion": ""}, 400, "Required field 'runtime_version' not specified"),
    ({"schedulingConfig": {"spot": True, "reserved": True}}, 400, "Spot or reserved"),
    ({"networkConfig": {"network": "none"}}, 404, f"The resource '{P}/global/networks/none' was not found"),
    ({"networkConfig": {"subnetwork": "s"}}, 404, f"'{P}/regions/us-central1/subnetworks/s' was not found"),
    ({"networkConfig": {}, "networkConfigs": [{}]}, 400, "are mutually exclusive"),
    ({"dataDisks": [{"sourceDisk": f"{P}/zones/us-central1-a/disks/d"}]}, 404, "disks/d' was not found"),
    ({"serviceAccount": {"email": "no@accel-sandbox.iam.gserviceaccount.com"}}, 400,
     "Service account no@accel-sandbox.iam.gserviceaccount.com does not exist."),
    ({"machineType": "x"}, 400, 'Unknown name "machineType"'),
]  # fmt: skip


@pytest.mark.parametrize("more, code, text", REFUSED)
def test_nodes_that_are_refused(tpus: Fake, more: dict[str, Any], code: int, text: str) -> None:
    for answer in (
        tpus.ask("POST", f"{TPU}/nodes", {**LITE, **more}, nodeId="one"),
        ask(tpus, body=request(spec={"node": {**LITE, **more}})),
    ):
        assert answer.status_code == code and text in said(answer)[1], answer.text


def test_a_runtime_of_another_generation_is_taken(tpus: Fake) -> None:
    assert node(tpus, "one", runtimeVersion="tpu-ubuntu2204-base")["state"] == "READY"


def test_names_and_accounts_that_exist(tpus: Fake) -> None:
    tpus.done("POST", f"{COMPUTE}/global/networks", {"name": "tpus", "autoCreateSubnetworks": False})
    body = {"name": "tpus", "network": "global/networks/tpus", "ipCidrRange": "10.0.0.0/20"}
    tpus.done("POST", f"{COMPUTE}/regions/us-central1/subnetworks", body)
    email = tpus.call("POST", f"iam.googleapis.com/v1/{P}/serviceAccounts", {"accountId": "tpu-jobs"})["email"]
    network = {"network": "tpus", "subnetwork": "tpus", "enableExternalIps": True}
    found = node(tpus, networkConfig=network, serviceAccount={"email": email})
    assert found["networkConfig"]["network"] == f"{P}/global/networks/tpus"
    assert found["networkEndpoints"][0]["accessConfig"]["externalIp"]
    assert "is already being used by" in tpus.ask("DELETE", f"{COMPUTE}/regions/us-central1/subnetworks/tpus").text
    finished(tpus, tpus.call("DELETE", f"{TPU}/nodes/one"))
    tpus.done("DELETE", f"{COMPUTE}/regions/us-central1/subnetworks/tpus")
    tpus.done("DELETE", f"{COMPUTE}/global/networks/tpus")
    tpus.call("DELETE", f"iam.googleapis.com/v1/{P}/serviceAccounts/{email}")


@pytest.mark.parametrize("out", ["v5litepod-16", "us-central1-a/v5litepod-16"])
def test_a_node_without_room_is_gone_again(tpus: Fake, out: str) -> None:
    tpus.fault(stockout=[out])
    failed = finished(tpus, tpus.call("POST", f"{TPU}/nodes", LITE, nodeId="one"))
    assert failed["error"]["code"] == 8
    assert failed["error"]["message"].startswith('There is no more capacity in the zone "us-central1-a"; you can try')
    assert tpus.ask("GET", f"{TPU}/nodes/one").status_code == 404
    tpus.fault(stockout=[])
    tpus.fault(method="tpu.*.nodes.create", fails="an internal error has occurred")
    failed = finished(tpus, tpus.call("POST", f"{TPU}/nodes", LITE, nodeId="one"))
    assert failed["error"] == {"code": 13, "message": "an internal error has occurred"}
    assert node(tpus)["state"] == "READY"


def test_what_the_platform_tells_a_host() -> None:
    assert bounds(tpu("v5litepod-16")) == ((2, 2, 1), (2, 2, 1))
    assert bounds(tpu("v5litepod-8")) == ((2, 4, 1), (1, 1, 1))
    assert bounds(tpu("v4-256")) == ((2, 2, 1), (2, 2, 8))
    assert bounds(tpu("v4-16")) == ((2, 2, 1), (1, 1, 2))

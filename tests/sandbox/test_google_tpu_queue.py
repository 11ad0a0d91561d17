"""Queued resources of TPUs in the sandbox's Google: every state, and what leads from one to the next."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.google_fake import Fake, P
from tests.support.google_tpus import LITE, TPU, ZONE, ask, finished, node, preempt, queued, reach, request, said, state
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus"]
SETTLE_S = 0.5


def test_a_request_from_its_creation_to_its_end(tpus: Fake) -> None:
    tpus.fault(stockout=["us-central1-a/v5litepod-16"])
    operation = queued(tpus)
    assert state(tpus) == "CREATING" and not operation["done"]
    finished(tpus, operation)
    reach(tpus, "WAITING_FOR_RESOURCES")
    assert tpus.call("GET", f"{TPU}/nodes")["nodes"] == [] and state(tpus) == "WAITING_FOR_RESOURCES"
    tpus.fault(stockout=[])
    assert reach(tpus, "ACTIVE")[-2] == "PROVISIONING"
    found = tpus.call("GET", f"{TPU}/queuedResources/q")
    assert found["state"] == {"state": "ACTIVE", "stateInitiator": "SERVICE", "activeData": {}}
    assert [each["name"] for each in tpus.call("GET", f"{TPU}/queuedResources")["queuedResources"]] == [found["name"]]
    (made,) = tpus.call("GET", f"{TPU}/nodes")["nodes"]
    assert (made["name"], made["state"]) == (f"{ZONE}/nodes/one", "READY")
    assert made["queuedResource"] == found["name"] and "multisliceNode" not in made

    assert said(ask(tpus))[0] == 409
    assert said(ask(tpus, "other")) == (409, f"Resource '{ZONE}/nodes/one' already exists")
    assert said(tpus.ask("DELETE", f"{TPU}/queuedResources/q"))[1].endswith("delete them first, or set force")
    operation = tpus.call("DELETE", f"{TPU}/queuedResources/q", force="true")
    found = tpus.call("GET", f"{TPU}/queuedResources/q")
    assert (found["state"]["state"], found["state"]["stateInitiator"]) == ("DELETING", "USER")
    finished(tpus, operation)
    assert tpus.ask("GET", f"{TPU}/queuedResources/q").status_code == 404
    assert tpus.call("GET", f"{TPU}/nodes")["nodes"] == []


@soak_only
def test_a_request_that_waits_is_deleted_without_force(tpus: Fake) -> None:
    tpus.fault(stockout=["v5litepod-16"])
    queued(tpus)
    reach(tpus, "WAITING_FOR_RESOURCES")
    finished(tpus, tpus.call("DELETE", f"{TPU}/queuedResources/q"))
    tpus.fault(stockout=[])
    queued(tpus)  # what was before it does not go on with it
    assert state(tpus) == "CREATING"
    reach(tpus, "ACTIVE")


def test_provisioning_lasts_as_long_as_is_planned(tpus: Fake) -> None:
    tpus.fault(method="tpu.*.queuedResources.create", delay_s=600)
    queued(tpus)
    reach(tpus, "PROVISIONING")
    assert [each["state"] for each in tpus.call("GET", f"{TPU}/nodes")["nodes"]] == ["CREATING"]
    assert not tpus.ask("DELETE", f"{TPU}/queuedResources/q").ok
    finished(tpus, tpus.call("DELETE", f"{TPU}/queuedResources/q", force="true"))
    assert tpus.call("GET", f"{TPU}/nodes")["nodes"] == []


def test_several_slices(tpus: Fake) -> None:
    spec = {"parent": ZONE, "node": LITE, "multisliceParams": {"nodeCount": 3, "nodeIdPrefix": "np"}}
    queued(tpus, body={"tpu": {"nodeSpec": [spec]}})
    reach(tpus, "ACTIVE")
    nodes = tpus.call("GET", f"{TPU}/nodes")["nodes"]
    assert [each["name"].rpartition("/")[2] for each in nodes] == ["np-0", "np-1", "np-2"]
    assert all(each["multisliceNode"] for each in nodes)


def test_slices_know_which_one_they_are(tpus: Fake) -> None:
    script = """#!/bin/bash
at="http://$GCE_METADATA_HOST/computeMetadata/v1/instance"
curl -sf -H Metadata-Flavor:Google "$at/attributes/tpu-env" | grep -e ^MEGASCALE -e ^NODE_ID > said
curl -sf -X PUT -H Metadata-Flavor:Google --data-binary @said "$at/guest-attributes/test/said"
"""
    metadata = {"startup-script": script, "enable-guest-attributes": "TRUE"}
    one = {**LITE, "acceleratorType": "v5litepod-4", "metadata": metadata}
    queued(tpus, body={"tpu": {"nodeSpec": [{"parent": ZONE, "node": one, "multisliceParams": {"nodeCount": 2}}]}})
    reach(tpus, "ACTIVE")
    for index in range(2):
        at, body = f"{TPU}/nodes/q-{index}:getGuestAttributes", {"queryPath": "test/said"}
        items = until(lambda at=at, body=body: tpus.call("POST", at, body)["guestAttributes"][0]["queryValue"]["items"])
        address, *rest = items[0]["value"].splitlines()
        assert address.startswith("MEGASCALE_COORDINATOR_ADDRESS: '127.")
        assert rest == [
            "MEGASCALE_NUM_SLICES: '2'",
            f"MEGASCALE_SLICE_ID: '{index}'",
            f"NODE_ID: 'q-{index}'",
        ]


@soak_only
def test_a_request_that_fails(tpus: Fake) -> None:
    tpus.fault(method="tpu.*.queuedResources.create", fails="an internal error has occurred", delay_s=0.2)
    assert "error" not in finished(tpus, queued(tpus))
    assert reach(tpus, "FAILED")[-3:] == ["PROVISIONING", "SUSPENDING", "FAILED"]
    found = tpus.call("GET", f"{TPU}/queuedResources/q")["state"]
    assert found["failedData"] == {"error": {"code": 13, "message": "an internal error has occurred"}}
    assert tpus.call("GET", f"{TPU}/nodes")["nodes"] == []
    finished(tpus, tpus.call("DELETE", f"{TPU}/queuedResources/q"))


@pytest.mark.parametrize("policy", ["duration", "time", "interval"])
def test_a_request_that_expires_stays_as_failed(tpus: Fake, policy: str) -> None:
    at = (datetime.now(UTC) + timedelta(seconds=1)).isoformat().replace("+00:00", "Z")
    policies: dict[str, Any] = {
        "duration": {"validUntilDuration": "1s"},
        "time": {"validUntilTime": at},
        "interval": {"validInterval": {"endTime": at}},
    }
    tpus.fault(stockout=["v5litepod-16"])
    queued(tpus, body=request(queueingPolicy=policies[policy]))
    assert reach(tpus, "FAILED")[-2] == "WAITING_FOR_RESOURCES"
    assert tpus.call("GET", f"{TPU}/queuedResources/q")["state"]["failedData"]["error"]["message"]
    tpus.fault(stockout=[])
    tpus.call("GET", f"{TPU}/nodes")
    assert state(tpus) == "FAILED"


def test_a_request_waits_for_its_time(tpus: Fake) -> None:
    began = time.monotonic()
    queued(tpus, body=request(queueingPolicy={"validAfterDuration": "1s"}))
    reach(tpus, "ACTIVE")
    assert time.monotonic() - began >= 1


def test_a_spot_request_is_preempted(tpus: Fake) -> None:
    queued(tpus, body=request(spot={}))
    reach(tpus, "ACTIVE")
    assert tpus.call("GET", f"{TPU}/nodes/one")["schedulingConfig"]["spot"] is True
    assert preempt(tpus, f"{ZONE}/queuedResources/q").ok
    assert reach(tpus, "SUSPENDED")[-1] == "SUSPENDED"
    found = tpus.call("GET", f"{TPU}/queuedResources/q")["state"]
    assert found == {"state": "SUSPENDED", "stateInitiator": "SERVICE", "suspendedData": {}}
    assert tpus.call("GET", f"{TPU}/nodes")["nodes"] == []
    assert not preempt(tpus, f"{ZONE}/queuedResources/q").ok and not preempt(tpus, f"{ZONE}/nodes/none").ok
    queued(tpus, "next")  # of the same node, which is free again
    reach(tpus, "ACTIVE", "next")
    finished(tpus, tpus.call("DELETE", f"{TPU}/queuedResources/q"))


def test_a_preempted_host_has_time_to_end(tpus: Fake, tmp_path: Path) -> None:
    """The request is SUSPENDING, with nodes that are PREEMPTED, until nothing runs on them any more."""
    ready, end = tmp_path / "ready", tmp_path / "end"
    script = f"""#!/bin/bash
trap 'while [ ! -e {end} ]; do sleep 0.05; done; exit 0' TERM
touch {ready}
while :; do sleep 0.05; done
"""
    queued(tpus, body=request(spot={}, spec={"node": {**LITE, "metadata": {"startup-script": script}}}))
    reach(tpus, "ACTIVE")
    until(ready.exists)
    assert preempt(tpus, f"{ZONE}/nodes/one").ok
    assert tpus.call("GET", f"{TPU}/nodes/one")["state"] == "PREEMPTED" and state(tpus) == "SUSPENDING"
    end.touch()
    reach(tpus, "SUSPENDED")


def test_what_is_not_spot_is_not_preempted(tpus: Fake) -> None:
    node(tpus)
    assert "is not Spot" in preempt(tpus, f"{ZONE}/nodes/one").text
    node(tpus, "spot", schedulingConfig={"spot": True})
    assert preempt(tpus, f"{ZONE}/nodes/spot").ok
    assert tpus.call("GET", f"{TPU}/nodes/spot")["state"] == "PREEMPTED", "a node of its own stays until it is deleted"


@soak_only
def test_deleting_the_nodes_suspends_the_request(tpus: Fake) -> None:
    queued(tpus)
    reach(tpus, "ACTIVE")
    finished(tpus, tpus.call("DELETE", f"{TPU}/nodes/one"))
    reach(tpus, "SUSPENDED")
    assert tpus.call("GET", f"{TPU}/queuedResources/q")["state"]["stateInitiator"] == "USER"


@soak_only
def test_what_is_left_behind_counts_against_the_quota(tpus: Fake) -> None:
    tpus.fault(quota={"tpu/us-central1-a/v5litepod": 32})
    queued(tpus, body=request(spot={}))
    node(tpus, "two")
    over = "Quota limit 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 32 in zone us-central1-a."
    three = request(spec={"nodeId": "three"})
    assert said(ask(tpus, "three", three)) == (429, over)
    assert said(tpus.ask("POST", f"{TPU}/nodes", LITE, nodeId="three")) == (429, over)
    reach(tpus, "ACTIVE")
    preempt(tpus, f"{ZONE}/queuedResources/q")
    reach(tpus, "SUSPENDED")
    assert said(ask(tpus, "three", three)) == (429, over), "it is suspended, and holds its quota"
    finished(tpus, tpus.call("DELETE", f"{TPU}/queuedResources/q"))
    several = {"tpu": {"nodeSpec": [{"parent": ZONE, "node": LITE, "multisliceParams": {"nodeCount": 2}}]}}
    assert said(ask(tpus, "several", several)) == (429, over)
    queued(tpus, "three", three)


def test_a_request_with_an_id_is_carried_out_once(tpus: Fake) -> None:
    first = queued(tpus, requestId="6f6c0f2e-4a0e-4a5e-9a5e-0123456789ab")
    assert queued(tpus, requestId="6f6c0f2e-4a0e-4a5e-9a5e-0123456789ab")["name"] == first["name"]
    assert ask(tpus, requestId="7f6c0f2e-4a0e-4a5e-9a5e-0123456789ab").status_code == 409
    reach(tpus, "ACTIVE")
    end = tpus.call("DELETE", f"{TPU}/queuedResources/q", force="true", requestId="a")
    finished(tpus, end)
    again = tpus.call("DELETE", f"{TPU}/queuedResources/q", force="true", requestId="a")
    assert (again["name"], again["done"]) == (end["name"], True)


@pytest.mark.parametrize(
    "body, text",
    [
        ({"tpu": {"nodeSpec": []}}, "Required field 'tpu.node_spec' not specified"),
        ({"tpu": {"nodeSpec": [{"nodeId": "n", "node": LITE}]}}, "Required field 'node_spec.parent' not specified"),
        (request(spec={"parent": f"{P}/locations/us-east1-d"}), 'The field "node_spec.parent" cannot be'),
        (request(spec={"multisliceParams": {"nodeCount": 2}}), "either node_id or multislice_params"),
        (request(spec={"nodeId": "a/b"}), 'The field "node_id" cannot be "a/b".'),
        (request(queueingPolicy={"validUntilTime": "soon"}), 'The field "queueing_policy"'),
        (request(queueingPolicy={"validUntilTime": "2026-01-01T00:00:00"}), "has no time zone"),
        (request(queueingPolicy={"validAfterDuration": "soon"}), 'The field "queueing_policy"'),
        (request(spot={}, guaranteed={}), "oneof field 'tier' is already set"),
        (request(spot={}, reservationName="r"), "is Spot or reserved"),
    ],
)
def test_queued_resources_that_are_refused(tpus: Fake, body: dict[str, Any], text: str) -> None:
    answer = ask(tpus, body=body)
    assert answer.status_code == 400 and text in said(answer)[1], answer.text
    assert 'The field "queued_resource_id"' in said(ask(tpus, "a b"))[1]

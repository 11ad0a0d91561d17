"""Declared TPUs and the scheduled function of the `vms` part: what they need, and what is made for them."""

import json
from typing import Any

import pytest

from accel.catalog.node_prices import slice_host
from accel.catalog.tpu import tpu
from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from stacks.environment.gcp.services import needed_services
from stacks.operations.cost.google import excluded_costs, machines
from tests.support import gcp, memory

ZONE = "us-central1-a"
SUBNETS = {"us-central1": {"nodes": "10.60.0.0/22", "pods": "10.64.0.0/14", "services": "10.68.0.0/20"}}
QUEUED = {"zone": ZONE, "accelerator_type": "v5litepod-16", "capacity": "spot", "slices": 2, "valid_for_s": 86_400}


def environment(**vms: Any) -> dict[str, Any]:
    network = {"kind": "create", "subnets": SUBNETS}
    return {"owner": "ml", "gcp": {"project": gcp.PROJECT, "region": "us-central1", "network": network, "vms": vms}}


def ran(**vms: Any) -> memory.Recorder:
    loaded = load_environment(environment(**vms))
    return gcp.run(lambda: deploy(loaded))


@pytest.mark.parametrize("vms", [{"queued_tpus": {"trainer": QUEUED}}, {"reconcile": {}}])
def test_they_need_the_bucket_of_jobs(vms: dict[str, Any]) -> None:
    with pytest.raises(ConfigFaults, match=r"gcp\.vms\.jobs: is missing; \w+ keeps its records"):
        load_environment(environment(**vms))


@pytest.mark.parametrize("every", [0, 7, 60])
def test_a_period_has_a_schedule(every: int) -> None:
    with pytest.raises(ConfigFaults, match=r"reconcile\.every_min"):
        load_environment(environment(jobs={}, reconcile={"every_min": every}))


def test_nothing_is_scheduled_unless_it_is_asked_for() -> None:
    seen = ran(jobs={}, queued_tpus={"trainer": QUEUED})
    assert not seen.of("cloudscheduler/job:Job") and not seen.of("cloudfunctionsv2/function:Function")
    assert not seen.of("tpu/v2QueuedResource:V2QueuedResource")


def test_the_function_may_be_what_machines_run_as_and_knows_its_bucket() -> None:
    seen = ran(jobs={}, queued_tpus={"trainer": QUEUED}, reconcile={"every_min": 15})
    acts = {each.name for each in seen.of("serviceaccount/iAMMember:IAMMember")}
    assert acts == {"reconcile-acts-as-jobs", "reconcile-acts-as-machines"}
    (function,) = seen.of("cloudfunctionsv2/function:Function")
    assert set(function.inputs["serviceConfig"]["environmentVariables"]) == {"BUCKET"}
    assert seen.one("cloudscheduler/job:Job").inputs["schedule"] == "*/15 * * * *"


def test_the_declaration_has_the_stacks_labels_and_node_names_that_stay() -> None:
    seen = ran(jobs={}, queued_tpus={"trainer": QUEUED})
    (declared,) = [each for each in seen.of("storage/bucketObject:BucketObject") if each.name == "trainer"]
    content = declared.inputs["content"]
    body = json.loads(content["value"] if isinstance(content, dict) else content)
    assert body["machine"]["node"]["labels"]["accel-owner"] == "ml"
    assert body["machine"]["node_id"].endswith("-trainer")
    told = seen.exports["vms"]["queued_tpus"]["trainer"]
    assert told["nodes"] == [f"{body['machine']['node_id']}-{index}" for index in range(2)]


def test_their_apis_are_enabled() -> None:
    queues = {"queued_tpus": {"t": QUEUED}}
    bare, queued = (set(needed_services(load_environment(environment(jobs={}, **vms)))) for vms in ({}, queues))
    scheduled = set(needed_services(load_environment(environment(jobs={}, reconcile={}))))
    assert queued - bare == {"tpu"} and scheduled - bare >= {"cloudscheduler", "cloudfunctions", "cloudbuild", "run"}


def test_its_slices_are_priced() -> None:
    def line(**changes: Any) -> Any:
        section = load_environment(environment(jobs={}, queued_tpus={"trainer": {**QUEUED, **changes}})).gcp
        assert section is not None
        (found,) = machines(section, 1.0)
        return found

    host = slice_host("us-central1", tpu("v5litepod-16"))
    assert host.on_demand and host.spot
    spot, whole = line(), line(capacity="guaranteed")
    assert spot.component == "gcp.vms.queued_tpus.trainer" and spot.what == "spot v5litepod-16, 2 slices"
    assert spot.envelope.expected.usd == pytest.approx(2 * 4 * host.spot)
    assert whole.envelope.floor.usd == pytest.approx(2 * 4 * host.on_demand)


def test_its_cost_is_told() -> None:
    def told(**vms: Any) -> str:
        section = load_environment(environment(jobs={}, **vms)).gcp
        assert section is not None
        return "\n".join(excluded_costs(section))

    assert "gcp.vms.reconcile" not in told()
    (line,) = [each for each in told(reconcile={"every_min": 5}).splitlines() if "reconcile" in each]
    assert "0.10" in line and "8,928" in line

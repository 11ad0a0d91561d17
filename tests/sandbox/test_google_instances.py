"""Compute Engine's virtual machines in the sandbox's Google: their lives, and those that it refuses."""

from typing import Any

import pytest

from tests.support.google_fake import COMPUTE, Fake, P
from tests.support.google_vms import (
    IMAGE,
    LINK,
    NO_MIGRATION,
    PLACE,
    VMS,
    ZONE,
    gpu,
    message,
    preempt,
    spot,
    status,
    vm,
)
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vms"]


def test_a_machine_from_its_creation_to_its_end(compute: Fake) -> None:
    operation = compute.slow("POST", VMS, gpu(labels={"accel-owner": "jobs"}))
    assert (operation["operationType"], operation["status"]) == ("insert", "RUNNING")
    assert status(compute) == "PROVISIONING"
    until(lambda: status(compute) == "STAGING")
    compute.end(operation)
    found = compute.call("GET", f"{VMS}/vm")
    assert found["status"] == "RUNNING" and found["machineType"] == f"{LINK}/machineTypes/g2-standard-4"
    assert found["guestAccelerators"] == [
        {"acceleratorType": f"{LINK}/acceleratorTypes/nvidia-l4", "acceleratorCount": 1}
    ]
    assert found["networkInterfaces"][0]["networkIP"].startswith("10.1.")
    assert found["networkInterfaces"][0]["network"].endswith(f"{P}/global/networks/vms")
    assert found["scheduling"] | {"automaticRestart": True, "provisioningModel": "STANDARD"} == found["scheduling"]
    disk = compute.call("GET", f"{ZONE}/disks/vm")
    assert disk["users"] == [f"{LINK}/instances/vm"] and disk["sizeGb"] == "20"
    assert "ubuntu-accelerator-2404-amd64-with-nvidia-580-v" in disk["sourceImage"]
    assert compute.call("GET", VMS, filter="labels.accel-owner=jobs")["items"] == [found]
    assert compute.call("GET", VMS, filter='labels.accel-owner="stack"')["items"] == []
    everywhere = compute.call("GET", f"{COMPUTE}/aggregated/instances", filter="labels.accel-owner=jobs")["items"]
    assert everywhere == {"zones/us-central1-a": {"instances": [found]}}
    again = compute.ask("POST", VMS, gpu())
    assert (again.status_code, message(again)) == (409, f"The resource '{PLACE}/instances/vm' already exists")
    used = compute.ask("DELETE", f"{ZONE}/disks/vm")
    assert used.json()["error"]["errors"][0]["reason"] == "resourceInUseByAnotherResource"

    operation = compute.slow("POST", f"{VMS}/vm/stop")
    assert status(compute) == "STOPPING"
    compute.end(operation)
    assert status(compute) == "TERMINATED"
    assert compute.done("POST", f"{VMS}/vm/start")["operationType"] == "start" and status(compute) == "RUNNING"
    compute.done("POST", f"{VMS}/vm/reset")
    assert status(compute) == "RUNNING"
    operation = compute.slow("DELETE", f"{VMS}/vm")
    assert status(compute) == "STOPPING"
    compute.end(operation)
    gone = compute.ask("GET", f"{VMS}/vm")
    assert (gone.status_code, message(gone)) == (404, f"The resource '{PLACE}/instances/vm' was not found")
    assert compute.call("GET", f"{ZONE}/disks")["items"] == []


def test_one_request_makes_one_machine(compute: Fake) -> None:
    id = "6a2b4a0e-0000-4000-8000-000000000001"
    first = compute.done("POST", VMS, vm(), requestId=id)
    again = compute.call("POST", VMS, vm(), requestId=id)
    assert again["name"] == first["name"] and again["clientOperationId"] == id
    assert compute.ask("POST", VMS, vm(), requestId=id[:-1] + "2").status_code == 409


SUBNET = {"subnetwork": "regions/us-central1/subnetworks/vms"}
FALSE = "Invalid value for field 'resource.scheduling.preemptible': 'true'. Scheduling must have preemptible be false"


@pytest.mark.parametrize(
    "body, code, said",
    [
        (vm(kind="g9-huge"), 400, "Invalid value for field 'resource.machineType': 'zones/us-central1-a/machineTypes/"
         "g9-huge'. Machine type with name 'g9-huge' does not exist in zone 'us-central1-a'."),
        (vm(machineType=""), 400, "Required field 'resource.machineType' not specified"),
        (gpu(scheduling={}), 400, NO_MIGRATION),
        (gpu(scheduling={"onHostMaintenance": "MIGRATE"}), 400, NO_MIGRATION),
        (vm(kind="n1-standard-4", guestAccelerators=[{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]),
         400, NO_MIGRATION),
        (gpu(guestAccelerators=[{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]), 400,
         "[nvidia-tesla-t4, g2-standard-4] features are not compatible for creating instance."),
        (gpu(guestAccelerators=[{"acceleratorType": "nvidia-tesla-k90", "acceleratorCount": 1}]), 404,
         f"The resource '{PLACE}/acceleratorTypes/nvidia-tesla-k90' was not found"),
        (vm(scheduling={"preemptible": True, "automaticRestart": True}), 400,
         f"{FALSE} when AutomaticRestart is true."),
        (vm(scheduling={"provisioningModel": "SPOT", "onHostMaintenance": "MIGRATE"}), 400,
         f"{FALSE} when OnHostMaintenance isn't TERMINATE."),
        (vm(scheduling={"preemptible": True, "provisioningModel": "STANDARD"}), 400,
         "Invalid value for field 'resource.scheduling.provisioningModel': 'STANDARD'. For preemptible, only allowed"
         " provisioning_model value is SPOT"),
        (vm(networkInterfaces=[]), 400, "Invalid value for field 'resource.networkInterfaces': ''. At least one network"
         " interface is required."),
        (vm(networkInterfaces=[{"network": "global/networks/none"}]), 404,
         f"The resource '{P}/global/networks/none' was not found"),
        (vm(networkInterfaces=[{"network": "global/networks/vms"}]), 400,
         "Invalid value for field 'resource.networkInterfaces[0]': '{\"network\": \"global/networks/vms\"}...'."
         " Subnetwork should be specified for custom subnetmode network"),
        (vm(disks=[]), 400, "Invalid value for field 'resource.disks': ''. No disks are specified."),
        (vm(disks=[{"boot": True, "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "5"}}]), 400,
         "Invalid value for field 'resource.disks[0].initializeParams.diskSizeGb': '5'. Requested disk size cannot be"
         " smaller than the image size (10 GB)"),
        (vm(disks=[{"boot": True, "initializeParams": {
            "sourceImage": "projects/deeplearning-platform-release/global/images/family/pytorch-latest-gpu"}}]), 404,
         "The resource 'projects/deeplearning-platform-release/global/images/family/pytorch-latest-gpu' was not found"),
        (vm(serviceAccounts=[{"email": f"nobody@{P[9:]}.iam.gserviceaccount.com"}]), 400,
         f"The resource 'One of [nobody@{P[9:]}.iam.gserviceaccount.com]' of type 'serviceAccount' was not found."),
        (vm(resourcePolicies=["regions/us-central1/resourcePolicies/p"]), 404,
         f"The resource '{P}/regions/us-central1/resourcePolicies/p' was not found"),
        (vm(reservationAffinity={"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["r"]}), 404,
         f"The resource '{PLACE}/reservations/r' was not found"),
        (vm(shape="big"), 400, 'Invalid JSON payload received. Unknown name "shape": Cannot find field.'),
        (vm("Bad"), 400, "Invalid value for field 'resource.name': 'Bad'. Must be a match of regex "
         "'(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"),
    ],
)  # fmt: skip
def test_machines_that_are_refused(compute: Fake, body: dict[str, Any], code: int, said: str) -> None:
    answer = compute.ask("POST", VMS, body)
    assert (answer.status_code, message(answer).replace(" at ''", "")) == (code, said)
    assert compute.call("GET", VMS)["items"] == [] and compute.call("GET", f"{ZONE}/disks")["items"] == []


def test_a_zone_that_is_out_of_stock_names_others(compute: Fake) -> None:
    compute.fault(stockout=["us-central1-a/n1-standard-4"])
    gpus = [{"acceleratorType": f"{LINK}/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}]
    body = vm(kind="n1-standard-4", guestAccelerators=gpus, scheduling={"onHostMaintenance": "TERMINATE"})
    failed = compute.done("POST", VMS, body)
    assert (failed["httpErrorStatusCode"], failed["httpErrorMessage"]) == (503, "SERVICE UNAVAILABLE")
    (error,) = failed["error"]["errors"]
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert error["message"].startswith(f"The zone '{PLACE}' does not have enough resources available to fulfill")
    help_, words, info = error["errorDetails"]
    assert help_["help"]["links"][0]["url"] == "https://cloud.google.com/compute/docs/resource-error"
    assert (
        "A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently unavailable in the"
        in (words["localizedMessage"]["message"])
    )
    assert info["errorInfo"] == {
        "reason": "resource_availability", "domain": "compute.googleapis.com",
        "metadatas": {"attachment": "nvidia-tesla-t4:1", "vmType": "n1-standard-4", "zone": "us-central1-a",
                      "zonesAvailable": "us-central1-b,us-central1-c,us-central1-f"},
    }  # fmt: skip
    assert compute.call("GET", VMS)["items"] == [] and compute.call("GET", f"{ZONE}/disks")["items"] == []
    compute.well()
    compute.done("POST", VMS, body)
    compute.done("POST", f"{VMS}/vm/stop")
    compute.fault(stockout=["n1-standard-4"])
    failed = compute.done("POST", f"{VMS}/vm/start")
    assert failed["error"]["errors"][0]["code"].startswith("ZONE_RESOURCE_POOL_EXHAUSTED")
    assert status(compute) == "TERMINATED"


def test_an_insert_that_is_planned_to_fail_leaves_nothing(compute: Fake) -> None:
    compute.fault(method="compute.instances.insert", fails="INTERNAL_ERROR: planned")
    assert compute.done("POST", VMS, vm())["error"]["errors"] == [{"code": "INTERNAL_ERROR", "message": "planned"}]
    assert compute.call("GET", VMS)["items"] == [] and compute.call("GET", f"{ZONE}/disks")["items"] == []


def test_a_quota_is_counted_over_a_region(compute: Fake) -> None:
    compute.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 1, "compute/global/GPUS_ALL_REGIONS": 2})
    assert "error" not in compute.done("POST", VMS, gpu("a"))
    failed = compute.done("POST", f"{COMPUTE}/zones/us-central1-b/instances", gpu("b", machineType=(
        "zones/us-central1-b/machineTypes/g2-standard-4")))  # fmt: skip
    (error,) = failed["error"]["errors"]
    assert (failed["httpErrorStatusCode"], error["code"]) == (403, "QUOTA_EXCEEDED")
    assert error["message"] == "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1."
    assert error["errorDetails"][0]["quotaInfo"] == {
        "metricName": "compute.googleapis.com/nvidia_l4_gpus", "limitName": "NVIDIA-L4-GPUS-per-project-region",
        "limit": 1.0, "dimensions": {"region": "us-central1"},
    }  # fmt: skip
    cheap = {"provisioningModel": "SPOT"}
    assert "error" not in compute.done("POST", VMS, gpu("c", scheduling=cheap)), "Spot is counted apart"
    failed = compute.done("POST", VMS, gpu("d", scheduling=cheap))
    assert failed["error"]["errors"][0]["message"] == "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 2.0 globally."
    compute.done("POST", f"{VMS}/a/stop")
    assert "error" not in compute.done("POST", VMS, gpu("e")), "what is stopped does not count"


def test_a_spot_machine_is_preempted(compute: Fake) -> None:
    for name, action in (("stays", "STOP"), ("goes", "DELETE")):
        compute.done("POST", VMS, spot(name, action))
        assert preempt(compute, name).ok
        assert status(compute, name) in ("STOPPING", "TERMINATED", "")
    until(lambda: status(compute, "stays") == "TERMINATED" and status(compute, "goes") == "")
    rows = [
        row
        for row in compute.call("GET", f"{ZONE}/operations", filter="operationType=compute.instances.preempted")[
            "items"
        ]
        if row["targetLink"] in (f"{LINK}/instances/stays", f"{LINK}/instances/goes")
    ]
    told = {(row["status"], row["statusMessage"], row["user"], row["name"][:12]) for row in rows}
    assert told == {("DONE", "Instance was preempted.", "system", "systemevent-")}
    compute.done("POST", VMS, vm("standard"))
    assert preempt(compute, "standard").status_code == 400 and preempt(compute, "nobody").status_code == 404


def test_a_machine_ends_with_its_time(compute: Fake) -> None:
    limit = {"maxRunDuration": {"seconds": "1"}, "onHostMaintenance": "TERMINATE"}
    compute.done("POST", VMS, vm("stops", scheduling=limit))
    compute.done("POST", VMS, vm("goes", scheduling={**limit, "instanceTerminationAction": "DELETE"}))
    compute.done("POST", VMS, vm("stays", scheduling={"onHostMaintenance": "TERMINATE"}))
    until(lambda: status(compute, "stops") == "TERMINATED" and status(compute, "goes") == "")
    assert status(compute, "stays") == "RUNNING"

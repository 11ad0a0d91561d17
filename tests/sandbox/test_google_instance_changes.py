"""What is done with virtual machines in the sandbox's Google, and what there is beside them."""

import itertools
from typing import Any

from tests.support.google_fake import COMPUTE, Fake
from tests.support.google_vms import LINK, NO_MIGRATION, PLACE, VMS, ZONE, gpu, message, preempt, spot, status, vm
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vms"]
_IDS = itertools.count()


def test_host_maintenance(compute: Fake) -> None:
    compute.done("POST", VMS, vm("moves"))
    compute.done("POST", VMS, gpu("again"))
    compute.done("POST", VMS, spot("lost"))
    for name in ("moves", "again", "lost"):
        compute.done("POST", f"{VMS}/{name}/simulateMaintenanceEvent")
    until(lambda: status(compute, "lost") == "TERMINATED")
    assert status(compute, "moves") == status(compute, "again") == "RUNNING"


def test_a_reservation_is_used_and_given_back(compute: Fake) -> None:
    sku = {"count": "1", "instanceProperties": {"machineType": "g2-standard-4"}}
    for name, specific in (("named", True), ("open", False)):
        body = {"name": name, "specificReservation": sku, "specificReservationRequired": specific}
        compute.done("POST", f"{ZONE}/reservations", body)

    def used(name: str) -> str:
        return compute.call("GET", f"{ZONE}/reservations/{name}")["specificReservation"]["inUseCount"]

    compute.fault(stockout=["g2-standard-4"])
    named = {"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name"}
    compute.done("POST", VMS, gpu("a", reservationAffinity={**named, "values": ["named"]}))
    assert (status(compute, "a"), used("named"), used("open")) == ("RUNNING", "1", "0"), "what is reserved is there"
    full = compute.ask("POST", VMS, gpu("b", reservationAffinity={**named, "values": ["named"]}))
    assert message(full) == "The reservation 'named' has no free place for a g2-standard-4."
    wrong = compute.ask("POST", VMS, gpu("b", reservationAffinity={**named, "values": ["open"]}))
    assert message(wrong) == "Reservation 'open' can not be targeted as specificReservationRequired is not set."
    compute.done("POST", VMS, gpu("c"))
    assert (status(compute, "c"), used("open")) == ("RUNNING", "1")
    assert "error" in compute.done(
        "POST", VMS, gpu("d", reservationAffinity={"consumeReservationType": "NO_RESERVATION"})
    )
    compute.done("POST", f"{VMS}/a/stop")
    compute.done("DELETE", f"{VMS}/c")
    assert (used("named"), used("open")) == ("0", "0")


def test_what_is_changed_of_a_machine(compute: Fake) -> None:
    compute.done("POST", VMS, vm(metadata={"items": [{"key": "a", "value": "1"}]}))

    def found() -> Any:
        return compute.call("GET", f"{VMS}/vm")

    stale = compute.ask("POST", f"{VMS}/vm/setMetadata", {"items": [], "fingerprint": "x"})
    assert message(stale) == "Supplied fingerprint does not match current metadata fingerprint."
    fresh = {"items": [{"key": "b", "value": "2"}], "fingerprint": found()["metadata"]["fingerprint"]}
    compute.done("POST", f"{VMS}/vm/setMetadata", fresh)
    compute.done("POST", f"{VMS}/vm/setTags", {"items": ["ssh"], "fingerprint": found()["tags"]["fingerprint"]})
    compute.done("POST", f"{VMS}/vm/setLabels", {"labels": {"l": "1"}, "labelFingerprint": found()["labelFingerprint"]})
    compute.done("POST", f"{VMS}/vm/setScheduling", {"automaticRestart": False})
    assert found()["metadata"]["items"] == [{"key": "b", "value": "2"}] and found()["tags"]["items"] == ["ssh"]
    assert found()["labels"] == {"l": "1"} and found()["scheduling"]["automaticRestart"] is False
    compute.done("POST", f"{VMS}/vm/setDeletionProtection", deletionProtection="true")
    kept = compute.ask("DELETE", f"{VMS}/vm")
    assert kept.status_code == 400 and "it's protected against deletion" in message(kept)
    compute.done("POST", f"{VMS}/vm/setDeletionProtection", deletionProtection="false")

    other = {"machineType": f"{PLACE}/machineTypes/e2-standard-4"}
    assert compute.ask("POST", f"{VMS}/vm/setMachineType", other).status_code == 400
    compute.done("POST", f"{VMS}/vm/stop")
    compute.done("POST", f"{VMS}/vm/setMachineType", other)
    assert found()["machineType"] == f"{LINK}/machineTypes/e2-standard-4"
    migrates = {"machineType": f"{PLACE}/machineTypes/g2-standard-4"}
    assert message(compute.ask("POST", f"{VMS}/vm/setMachineType", migrates)) == NO_MIGRATION


def test_disks_are_attached_and_detached(compute: Fake) -> None:
    compute.done("POST", f"{ZONE}/disks", {"name": "data", "sizeGb": "50"})
    for name in ("a", "b"):
        compute.done("POST", VMS, vm(name))
    compute.done("POST", f"{VMS}/a/attachDisk", {"source": f"{PLACE}/disks/data", "deviceName": "data"})
    assert [disk["deviceName"] for disk in compute.call("GET", f"{VMS}/a")["disks"]] == ["persistent-disk-0", "data"]
    taken = compute.ask("POST", f"{VMS}/b/attachDisk", {"source": f"{PLACE}/disks/data"})
    assert message(taken) == (f"The disk resource '{PLACE}/disks/data' is already being used by '{PLACE}/instances/a'")
    shared = {"source": f"{PLACE}/disks/data", "mode": "READ_ONLY"}
    compute.done("POST", f"{VMS}/a/detachDisk", deviceName="data")
    assert "No attached disk found" in message(compute.ask("POST", f"{VMS}/a/detachDisk", deviceName="data"))
    compute.done("POST", f"{VMS}/b/attachDisk", shared)
    compute.done("DELETE", f"{VMS}/b")
    assert compute.call("GET", f"{ZONE}/disks/data")["users"] == [], "it stays, and is free"


def test_a_machine_runs_its_startup_script(compute: Fake) -> None:
    script = (
        "#!/bin/sh\necho it runs\n"
        'curl -sf -X PUT -H "Metadata-Flavor: Google" -d "$(hostname)" '
        '"http://$GCE_METADATA_HOST/computeMetadata/v1/instance/guest-attributes/test/told"\n'
        "exec sleep 1000\n"
    )
    rows = {"startup-script": script, "enable-guest-attributes": "TRUE"}
    metadata = {"items": [{"key": key, "value": value} for key, value in rows.items()]}
    none = "The resource 'test/' of type 'Guest Attribute' was not found."
    compute.done("POST", VMS, vm("other"))
    assert message(compute.ask("GET", f"{VMS}/other/getGuestAttributes", queryPath="test/")) == none
    compute.done("POST", VMS, vm(metadata=metadata))
    told = until(lambda: (a := compute.ask("GET", f"{VMS}/vm/getGuestAttributes", queryPath="test/")).ok and a.json())
    assert [(row["namespace"], row["key"]) for row in told["queryValue"]["items"]] == [("test", "told")]
    output = compute.call("GET", f"{VMS}/vm/serialPort")
    assert "it runs" in output["contents"]
    assert compute.call("GET", f"{VMS}/vm/serialPort", start=output["next"])["start"] == output["next"]
    compute.done("DELETE", f"{VMS}/vm")


def scripted(name: str, script: str, **more: Any) -> dict[str, Any]:
    rows = {"startup-script": f"#!/bin/sh\n{script}", "enable-guest-attributes": "TRUE"}
    return {**spot(name), "metadata": {"items": [{"key": key, "value": value} for key, value in rows.items()]}, **more}


def test_a_machine_that_switches_itself_off_is_terminated(compute: Fake) -> None:
    compute.done("POST", VMS, scripted("vm", "shutdown -h now\n"))
    until(lambda: status(compute) == "TERMINATED")


def test_a_preempted_machine_has_its_notice(compute: Fake) -> None:
    told = "http://$GCE_METADATA_HOST/computeMetadata/v1/instance"
    ask, write = 'curl -sf -H "Metadata-Flavor: Google"', "-X PUT -d on"
    script = (
        f"trap 'echo preempted: $({ask} {told}/preempted); exit 0' TERM\n"
        f"{ask} {write} {told}/guest-attributes/test/ready\n"
        "while true; do sleep 0.05; done\n"
    )
    compute.done("POST", VMS, scripted("vm", script))
    until(lambda: compute.ask("GET", f"{VMS}/vm/getGuestAttributes", queryPath="test/").ok)
    assert preempt(compute, "vm").ok and status(compute) == "STOPPING"
    until(lambda: status(compute) == "TERMINATED")
    assert "preempted: TRUE" in compute.call("GET", f"{VMS}/vm/serialPort")["contents"]


def test_the_last_place_of_a_reservation_is_taken_once(compute: Fake) -> None:
    sku = {"count": "1", "instanceProperties": {"machineType": "g2-standard-4"}}
    body = {"name": "named", "specificReservation": sku, "specificReservationRequired": True}
    compute.done("POST", f"{ZONE}/reservations", body)
    asked = {"consumeReservationType": "SPECIFIC_RESERVATION", "values": ["named"]}
    first = compute.call("POST", VMS, gpu("a", reservationAffinity=asked))
    assert compute.ask("POST", VMS, gpu("b", reservationAffinity=asked)).status_code == 400
    assert "error" not in compute.end(first)


def test_what_is_not_served_says_so(compute: Fake) -> None:
    compute.done("POST", VMS, vm())
    for http, path, body in (("PUT", "vm", vm()), ("POST", "vm/suspend", None), ("POST", "bulkInsert", {})):
        assert message(compute.ask(http, f"{VMS}/{path}", body)).startswith("the sandbox does not serve compute.")
    disks = compute.call("GET", f"{COMPUTE}/aggregated/disks")["items"]
    assert [disk["name"] for disk in disks["zones/us-central1-a"]["disks"]] == ["vm"]


def test_images_and_types_of_a_zone(compute: Fake) -> None:
    images = "compute.googleapis.com/compute/v1/projects/{}/global/images"
    family = "common-cu129-ubuntu-2404-nvidia-580"
    found = compute.call("GET", f"{images.format('deeplearning-platform-release')}/family/{family}")
    assert (found["name"], found["family"], found["diskSizeGb"]) == (f"{family}-v20260626", family, "50")
    at = found["selfLink"].partition("/v1/")[2]
    assert compute.call("GET", f"compute.googleapis.com/compute/v1/{at}") == found
    for project in ("ubuntu-os-accelerator-images", "ubuntu-os-cloud", "cos-cloud", "debian-cloud"):
        assert compute.call("GET", images.format(project))["items"]
    unknown = compute.ask("GET", f"{images.format('debian-cloud')}/family/debian-1")
    assert message(unknown) == "The resource 'projects/debian-cloud/global/images/family/debian-1' was not found"
    assert compute.ask("POST", images.format("debian-cloud"), {"name": "mine"}).status_code == 404
    types = {row["name"]: row for row in compute.call("GET", f"{ZONE}/acceleratorTypes")["items"]}
    assert (
        types["nvidia-tesla-t4"]["maximumCardsPerInstance"] == 4 and types["nvidia-l4"]["maximumCardsPerInstance"] == 8
    )
    assert compute.call("GET", f"{ZONE}/diskTypes/pd-ssd")["name"] == "pd-ssd"


def test_future_reservations_and_commitments(compute: Fake) -> None:
    at = f"{ZONE}/futureReservations"
    sku = {"totalCount": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}

    def ask(name: str, start: str, plan: str = "SUBMITTED") -> None:
        window = {"startTime": start, "endTime": "2036-01-01T00:00:00Z"}
        body = {"name": name, "planningStatus": plan, "timeWindow": window, "specificSkuProperties": sku}
        compute.done("POST", at, body)

    def state(name: str) -> str:
        return compute.call("GET", f"{at}/{name}")["status"]["procurementStatus"]

    ask("later", "2035-01-01T00:00:00Z")
    ask("now", "2026-01-01T00:00:00Z")
    ask("draft", "2035-01-01T00:00:00Z", "DRAFT")
    until(lambda: state("later") == "APPROVED" and state("now") == "FULFILLED")
    assert state("draft") == "DRAFTING"
    (made,) = compute.call("GET", f"{at}/now")["status"]["autoCreatedReservations"]
    held = compute.call("GET", f"compute.googleapis.com/compute/v1/{made.partition('/v1/')[2]}")
    assert held["specificReservation"]["count"] == "2" and held["specificReservationRequired"]
    assert compute.ask("PATCH", f"{at}/later", {"description": "x"}).status_code == 400
    compute.done("PATCH", f"{at}/draft", {"planningStatus": "SUBMITTED"}, updateMask="planningStatus")
    until(lambda: state("draft") == "APPROVED")
    compute.done("POST", f"{at}/draft/cancel")
    assert state("draft") == "CANCELLED"
    compute.fault(stockout=["a3-highgpu-8g"])
    ask("none", "2035-01-01T00:00:00Z")
    until(lambda: state("none") == "DECLINED")

    commitments, name = f"{COMPUTE}/regions/us-central1/commitments", f"paid-{next(_IDS)}"
    compute.done(
        "POST", commitments, {"name": name, "plan": "TWELVE_MONTH", "resources": [{"type": "VCPU", "amount": 4}]}
    )
    found = compute.call("GET", f"{commitments}/{name}")
    assert found["status"] == "ACTIVE" and int(found["endTimestamp"][:4]) == int(found["startTimestamp"][:4]) + 1
    assert compute.ask("DELETE", f"{commitments}/{name}").status_code == 404, "Google has no such method"

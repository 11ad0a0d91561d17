"""Reservations, placement policies and commitments as they are sent to the engine."""

from typing import Any

import pytest
from pydantic import ValidationError

from accel.catalog.gcp_commitments import commitment_price
from components.gcp.commitment import purchase_summary
from tests.support import gcp, memory

from . import capacity_makers as makers
from . import vm_makers as vms

RESERVATION, FUTURE = "compute/reservation:Reservation", "compute/futureReservation:FutureReservation"
POLICY, COMMITMENT = "compute/resourcePolicy:ResourcePolicy", "compute/regionCommitment:RegionCommitment"


def reserved(**values: object) -> memory.Registration:
    return gcp.run(lambda: makers.reservation("a100", **values)).one(RESERVATION)


def later(**values: object) -> dict[str, Any]:
    return gcp.run(lambda: makers.future_reservation("later", **values)).one(FUTURE).inputs


def policy(**values: object) -> dict[str, Any]:
    return gcp.run(lambda: makers.placement("near", **values)).one(POLICY).inputs


def bought(**values: object) -> memory.Registration:
    return gcp.run(lambda: makers.commitment("paid", **values)).one(COMMITMENT)


def affinity(**values: object) -> dict[str, Any]:
    seen = gcp.run(lambda: makers.reservation("a100", **values))
    root = next(one.urn for one in seen.registrations if one.type == "accel:gcp:Reservation")
    return seen.outputs[root]["affinity"]


def test_a_reservation() -> None:
    sent = reserved().inputs
    assert (sent["name"], sent["zone"], sent["specificReservationRequired"]) == ("a100", "us-central1-a", True)
    assert sent["specificReservation"] == {"count": 2, "instanceProperties": {"machineType": "a2-highgpu-8g"}}
    assert "shareSettings" not in sent


def test_a_reservation_by_accelerator() -> None:
    sent = reserved(machine_type=None, accelerator="nvidia-tesla-a100", accelerator_count=8).inputs
    assert sent["specificReservation"]["instanceProperties"] == {"machineType": "a2-highgpu-8g"}
    attached = reserved(machine_type="n1-standard-8", accelerator="t4", accelerator_count=2, local_ssds=1).inputs
    assert attached["specificReservation"]["instanceProperties"] == {
        "machineType": "n1-standard-8",
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}],
        "localSsds": [{"diskSizeGb": 375, "interface": "NVME"}],
    }


def test_a_reservation_that_is_shared_and_ends() -> None:
    sent = reserved(share_with=["team-1"], delete_after_s=3600).inputs
    maps = [{"id": "team-1", "projectId": "team-1"}]
    assert sent["shareSettings"] == {"shareType": "SPECIFIC_PROJECTS", "projectMaps": maps}
    assert sent["deleteAfterDuration"] == {"seconds": "3600"}
    assert reserved(delete_at="2035-01-01T00:00:00Z").inputs["deleteAtTime"] == "2035-01-01T00:00:00Z"


def test_what_a_machine_says_to_come_out_of_it() -> None:
    key = "compute.googleapis.com/reservation-name"
    assert affinity() == {"type": "SPECIFIC_RESERVATION", "key": key, "values": ["a100"]}
    shared = affinity(share_with=["team-1"])
    assert shared["values"] == [f"projects/{gcp.PROJECT}/reservations/a100"]
    assert affinity(specific=False) == {"type": "ANY_RESERVATION"}


@pytest.mark.parametrize(
    "values, says",
    [
        ({"spot": True}, "is true, on a reservation"),
        ({"machine_type": "a3-highgpu-1g"}, "Spot or flex-start only"),
        ({"machine_type": "e2-standard-4"}, "which has no GPU"),
        ({"delete_at": "2035-01-01T00:00:00Z", "delete_after_s": 60}, "leave one out"),
        ({"delete_at": "tomorrow"}, "no time with a zone"),
        ({"share_with": [f"team-{number}" for number in range(101)]}, "name 100 at most"),
        ({"local_ssds": 3}, "takes"),
        ({"count": 0}, "greater than or equal to 1"),
    ],
)
def test_what_is_no_reservation(values: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        makers.reservation_spec(**values)


def test_a_future_reservation() -> None:
    sent = later()
    assert (sent["planningStatus"], sent["reservationName"]) == ("DRAFT", "later")
    assert sent["timeWindow"] == {"startTime": makers.START, "duration": {"seconds": "604800"}}
    assert sent["specificSkuProperties"] == {
        "totalCount": "4",
        "instanceProperties": {"machineType": "a3-highgpu-8g"},
    }
    assert "reservationMode" not in sent


def test_a_future_reservation_in_calendar_mode() -> None:
    given = {"mode": "CALENDAR", "deployment": "DENSE", "name_prefix": "h100", "auto_delete": True}
    sent = later(**given, planning_status="SUBMITTED", i_understand_this_is_a_purchase=True)
    assert (sent["reservationMode"], sent["deploymentType"], sent["namePrefix"]) == ("CALENDAR", "DENSE", "h100")
    assert (sent["planningStatus"], sent["autoDeleteAutoCreatedReservations"]) == ("SUBMITTED", True)
    assert "reservationName" not in sent


@pytest.mark.parametrize(
    "values, says",
    [
        ({"planning_status": "SUBMITTED"}, "i_understand_this_is_a_purchase: true, or planning_status: DRAFT"),
        ({"duration_s": None}, "and so is duration_s"),
        ({"end_time": "2035-02-01T00:00:00Z"}, "beside duration_s"),
        ({"duration_s": None, "end_time": "2034-12-31T00:00:00Z"}, "-86400 s after the start"),
        ({"mode": "CALENDAR", "machine_type": "a2-highgpu-8g"}, "use DEFAULT"),
        ({"mode": "CALENDAR", "duration_s": 7_776_001}, "7776000 s at most"),
        ({"machine_type": "n1-standard-8", "accelerator": "t4"}, "whose GPUs are attached"),
        ({"reservation_name": "one", "name_prefix": "two"}, "beside name_prefix two"),
        ({"spot": True}, "is true, on a reservation"),
    ],
)
def test_what_is_no_future_reservation(values: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        makers.future_spec(**values)


def test_placements() -> None:
    assert policy()["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    assert policy(max_distance=2)["groupPlacementPolicy"] == {"collocation": "COLLOCATED", "maxDistance": 2}
    assert policy(kind="spread", domains=3)["groupPlacementPolicy"] == {"availabilityDomainCount": 3}
    near = policy(kind="workload", distance="BLOCK")
    assert near["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "maxTopologyDistance": "BLOCK"}
    assert "groupPlacementPolicy" not in near
    for values in (
        {"max_distance": 4},
        {"kind": "spread"},
        {"kind": "workload", "distance": "BLOCK", "topology": "1x72"},
    ):
        with pytest.raises(ValidationError):
            makers.placement_spec(**values)


def test_a_group_in_a_placement() -> None:
    def group(**wired: Any) -> memory.Recorder:
        def program() -> None:
            spec = vms.group_spec(placement="near")
            vms.GpuVmGroup(
                "group", vms.GpuVmGroupArgs(spec=spec, service_account=vms.account(), **wired, **vms.wired())
            )

        return gcp.run(program)

    template, manager = "compute/instanceTemplate:InstanceTemplate", "compute/instanceGroupManager:InstanceGroupManager"
    compact = group(placement="projects/p/regions/r/resourcePolicies/near-1")
    assert compact.one(template).inputs["resourcePolicies"] == "projects/p/regions/r/resourcePolicies/near-1"
    assert "resourcePolicies" not in compact.one(manager).inputs
    workload = group(placement="projects/p/regions/r/resourcePolicies/near-1", workload=True)
    assert "resourcePolicies" not in workload.one(template).inputs
    wanted = {"workloadPolicy": "projects/p/regions/r/resourcePolicies/near-1"}
    assert workload.one(manager).inputs["resourcePolicies"] == wanted


def test_a_commitment() -> None:
    sent = bought().inputs
    assert (sent["plan"], sent["category"], sent["type"]) == ("TWELVE_MONTH", "MACHINE", "ACCELERATOR_OPTIMIZED")
    assert sent["resources"] == [
        {"type": "VCPU", "amount": "192"},
        {"type": "MEMORY", "amount": "1392640"},
        {"type": "ACCELERATOR", "amount": "16", "acceleratorType": "nvidia-tesla-a100"},
    ]
    assert (sent["existingReservations"], sent["autoRenew"]) == (makers.LINK, False)


@pytest.mark.parametrize(
    "machine_type, kind",
    [
        ("a2-ultragpu-1g", "ACCELERATOR_OPTIMIZED"),
        ("a3-highgpu-8g", "ACCELERATOR_OPTIMIZED_A3"),
        ("a3-megagpu-8g", "ACCELERATOR_OPTIMIZED_A3_MEGA"),
        ("a3-ultragpu-8g", "ACCELERATOR_OPTIMIZED_A3_ULTRA"),
        ("a4-highgpu-8g", "ACCELERATOR_OPTIMIZED_A4"),
        ("g2-standard-48", "GRAPHICS_OPTIMIZED"),
        ("g4-standard-48", "GRAPHICS_OPTIMIZED_G4"),
    ],
)
def test_the_type_of_a_commitment(machine_type: str, kind: str) -> None:
    assert bought(machine_type=machine_type).inputs["type"] == kind


def test_local_ssds_that_a_machine_always_has_are_committed_to() -> None:
    amounts = {each["type"]: each["amount"] for each in bought(machine_type="a3-highgpu-8g").inputs["resources"]}
    assert amounts == {"VCPU": "416", "MEMORY": "3833856", "LOCAL_SSD": "12000", "ACCELERATOR": "16"}


def test_a_commitment_says_what_it_costs_and_when_it_pays() -> None:
    line = purchase_summary(makers.commitment_spec())
    assert "$37.03 an hour, used or not, against $58.77 on demand (list of 2025-03-06)" in line
    assert "more than 63.0% of all hours" in line
    assert "saves 37.0%" in line
    three = purchase_summary(makers.commitment_spec(plan="THIRTY_SIX_MONTH"))
    assert "more than 35.0% of all hours" in three
    unknown = purchase_summary(makers.commitment_spec(machine_type="a3-megagpu-8g"))
    assert "cannot be cancelled" in unknown
    assert "is unknown here" in unknown


def test_a_price_is_of_the_machine_or_of_as_many_of_another() -> None:
    one, eight = (commitment_price(f"a3-highgpu-{n}g", "us-central1", "TWELVE_MONTH") for n in (1, 8))
    assert one and eight
    assert eight.committed == pytest.approx(8 * one.committed)
    assert commitment_price("g2-standard-8", "us-central1", "TWELVE_MONTH") is None, "not a multiple in every resource"
    assert commitment_price("a2-highgpu-1g", "asia-east1", "TWELVE_MONTH") is None


@pytest.mark.parametrize(
    "values, says",
    [
        ({"i_understand_this_is_a_purchase": False}, "paid for one year, used or not; write true"),
        ({"reservation": None}, "name the reservation"),
        ({"machine_type": "a4x-highgpu-4g"}, "sells no commitment"),
        ({"machine_type": "a2-highgpu-9g"}, "use a2-highgpu-1g"),
        ({"type": "GRAPHICS_OPTIMIZED"}, "is of ACCELERATOR_OPTIMIZED"),
        ({"count": None}, "say how many"),
        ({"spot": True}, "is true, on a commitment"),
        ({"resources": {}}, "are missing, and so is machine_type"),
        ({"resources": {"vcpus": 4}, "type": "GENERAL_PURPOSE"}, "commit to both"),
        ({"resources": {"vcpus": 4, "memory_mib": 4096}, "type": "GENERAL_PURPOSE_N1"}, "GENERAL_PURPOSE"),
        ({"resources": {"accelerators": {"nvidia-tesla-t4": 4}}, "type": "GENERAL_PURPOSE"}, "name the reservation"),
    ],
)
def test_what_is_not_bought(values: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        makers.commitment_spec(**values)

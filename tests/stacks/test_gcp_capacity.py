"""Capacity of the `vms` part: what names what, and what is wired."""

import json
from typing import Any

import pytest

from stacks.environment.config import ConfigFaults, load_environment
from stacks.environment.deployment import deploy
from tests.support import gcp, memory

ZONE = "us-central1-a"
SUBNETS = {
    "us-central1": {"nodes": "10.60.0.0/20", "pods": "10.64.0.0/12", "services": "10.61.0.0/20"},
    "us-east1": {"nodes": "10.62.0.0/20", "pods": "10.80.0.0/12", "services": "10.63.0.0/20"},
}
KEPT = {"zone": ZONE, "machine_type": "a2-highgpu-8g", "count": 2}
VM = {"zone": ZONE, "machine_type": "a2-highgpu-8g"}
OUT_OF = {**VM, "capacity": "reservation", "reservation": {"name": "a100"}}
NEAR = {"kind": "compact", "region": "us-central1"}
GROUPED = {"kind": "workload", "region": "us-central1", "distance": "BLOCK"}
PAID = {
    "region": "us-central1",
    "plan": "TWELVE_MONTH",
    "machine_type": "a2-highgpu-8g",
    "count": 2,
    "reservation": "a100",
    "i_understand_this_is_a_purchase": True,
}
TARGET = {"kind": "gce", "zones": [ZONE, "us-east1-b"]}


def environment(**vms: Any) -> dict[str, Any]:
    network = {"kind": "create", "subnets": SUBNETS}
    section = {"project": gcp.PROJECT, "region": "us-central1", "network": network, "vms": vms}
    return {"owner": "ml", "gcp": section}


def faults(**vms: Any) -> str:
    with pytest.raises(ConfigFaults) as refused:
        load_environment(environment(**vms))
    return str(refused.value)


def ran(**vms: Any) -> memory.Recorder:
    loaded = load_environment(environment(**vms))
    return gcp.run(lambda: deploy(loaded))


@pytest.mark.parametrize(
    "vms, says",
    [
        (
            {"reservations": {"a100": {**KEPT, "zone": "us-central1-c"}}, "gpus": {"one": OUT_OF}},
            "gpus.one.reservation.name: is a100, of a2-highgpu-8g in us-central1-c",
        ),
        (
            {"placements": {"near": NEAR}, "gpus": {"one": {**VM, "placement": "naer"}}},
            'gpus.one.placement: is "naer", no key of placements; use near',
        ),
        (
            {"placements": {"near": GROUPED}, "gpus": {"one": {**VM, "placement": "near"}}},
            "gpus.one.placement: is near, a workload policy",
        ),
        (
            {
                "placements": {"near": {**NEAR, "region": "us-east1"}},
                "gpu_groups": {"two": {**VM, "size": 2, "placement": "near"}},
            },
            "gpu_groups.two.placement: is near, of us-east1",
        ),
        (
            {"placements": {"near": NEAR}, "jobs": {}, "targets": {"gce": {**TARGET, "placement": "naer"}}},
            "targets.gce.placement",
        ),
        (
            {
                "reservations": {"a100": KEPT},
                "jobs": {},
                "targets": {"gce": {**TARGET, "zones": ["us-east1-b"], "reservation": "a100"}},
            },
            "targets.gce.reservation: is a100, in us-central1-a",
        ),
        (
            {"reservations": {"a100": KEPT}, "commitments": {"paid": {**PAID, "reservation": "a1000"}}},
            'commitments.paid.reservation: is "a1000", no key of reservations; use a100',
        ),
        (
            {"reservations": {"a100": KEPT}, "commitments": {"paid": {**PAID, "region": "us-east1"}}},
            "commitments.paid.reservation: is a100, in us-central1-a, and the commitment is of us-east1",
        ),
        (
            {
                "reservations": {"a100": KEPT},
                "commitments": {"paid": {**PAID, "i_understand_this_is_a_purchase": False}},
            },
            "commitments.paid.i_understand_this_is_a_purchase: is not true",
        ),
    ],
)
def test_what_is_named_has_to_fit(vms: dict[str, Any], says: str) -> None:
    assert says in faults(**vms)


def test_a_policy_of_another_stack_is_named_by_its_path() -> None:
    path = "projects/p/regions/us-central1/resourcePolicies/theirs"
    seen = ran(placements={"near": NEAR}, gpus={"one": {**VM, "placement": path}})
    assert seen.one("compute/instance:Instance").inputs["resourcePolicies"] == path


def test_machines_come_after_what_is_kept_for_them() -> None:
    seen = ran(reservations={"a100": KEPT}, gpus={"one": OUT_OF}, commitments={"paid": PAID})
    vm = seen.one("compute/instance:Instance")
    assert vm.inputs["reservationAffinity"]["specificReservation"]["values"] == ["a100"]
    reservation = seen.one("compute/reservation:Reservation")
    component = next(one for one in seen.registrations if one.type == "accel:gcp:GpuVm")
    waits = {*vm.dependencies, *component.dependencies}
    assert {urn for urn in waits if urn.startswith(reservation.urn.rpartition("$")[0]) or urn == reservation.urn}, waits
    paid = seen.one("compute/regionCommitment:RegionCommitment")
    assert paid.inputs["existingReservations"] == "https://www.googleapis.com/compute/v1/reservation"
    assert paid.protect
    assert paid.retain_on_delete
    assert set(seen.exports["capacity"]) == {"reservations", "commitments"}
    assert seen.exports["capacity"]["commitments"]["paid"]["break_even"] == 0.63


def test_targets_say_paths() -> None:
    target = {**TARGET, "placement": "near", "reservation": "a100"}
    seen = ran(placements={"near": NEAR}, reservations={"a100": KEPT}, jobs={}, targets={"gce": target})
    text = json.dumps(seen.exports["targets"], sort_keys=True)
    assert '"placement": "near-id"' in text
    assert '"reservation": "a100-id"' in text

"""Reservations, placement policies and commitments through the real engine: made, used, unchanged, changed, gone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import Engine, Result, Sandbox
from tests.support.google_fake import COMPUTE, Fake, still
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake"]
pytestmark = pytest.mark.engine
ZONE = "us-central1-a"
CONFIG = {"gcp:project": "accel-sandbox", "gcp:region": "us-central1"}
PROGRAM = """
import json
import pulumi
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy

deploy(load_environment(json.loads(ENVIRONMENT)))
"""
KEPT = {"zone": ZONE, "machine_type": "a2-highgpu-1g", "count": 2}
LATER = {
    "zone": ZONE,
    "machine_type": "a3-highgpu-8g",
    "count": 2,
    "start_time": "2035-01-01T00:00:00Z",
    "duration_s": 604_800,
}
NEAR = {"kind": "compact", "region": "us-central1"}
PAID = {
    "region": "us-central1",
    "plan": "TWELVE_MONTH",
    "machine_type": "a2-highgpu-1g",
    "count": 2,
    "reservation": "a100",
    "i_understand_this_is_a_purchase": True,
}


def program(**vms: Any) -> str:
    network = {
        "kind": "create",
        "subnets": {"us-central1": {"nodes": "10.60.0.0/20", "pods": "10.64.0.0/12", "services": "10.61.0.0/20"}},
    }
    section = {"project": "accel-sandbox", "region": "us-central1", "network": network, "vms": vms}
    return f"ENVIRONMENT = {json.dumps({'owner': 'ml', 'gcp': section})!r}\n{PROGRAM}"


@pytest.fixture
def engine(tmp_path: Path, fake: Fake, provider: dict[str, str]) -> Iterator[Engine]:
    engine = Engine(tmp_path, Sandbox(fake.home, provider), config=CONFIG)
    yield engine
    fake.well()
    engine.run("state", "unprotect", "--all", "--yes", check=False)
    engine.destroy("--run-program", check=False)


def there(fake: Fake, kind: str) -> list[dict[str, Any]]:
    return fake.call("GET", f"{COMPUTE}/{kind}").get("items", [])


def ops(result: Result, of: str) -> list[str]:
    return [step.op for step in result.steps if step.type.endswith(of) and step.op not in ("same", "refresh")]


def test_a_reservation_and_what_comes_out_of_it(engine: Engine, fake: Fake) -> None:
    vm = {"zone": ZONE, "machine_type": "a2-highgpu-1g", "capacity": "reservation", "reservation": {"name": "a100"}}
    made = engine.write(program(reservations={"a100": KEPT}, gpus={"one": vm})).up()
    (kept,) = there(fake, f"zones/{ZONE}/reservations")
    assert (kept["name"], kept["specificReservation"]["count"]) == ("a100", "2")
    assert kept["specificReservation"]["inUseCount"] == "1", "the VM came out of it"
    assert made.outputs["capacity"]["reservations"]["a100"]["affinity"]["values"] == ["a100"]
    still(engine)

    more = engine.write(program(reservations={"a100": {**KEPT, "count": 3}}, gpus={"one": vm})).up()
    assert ops(more, ":Reservation") == ["update", "update"], "component and resource"
    assert there(fake, f"zones/{ZONE}/reservations")[0]["specificReservation"]["count"] == "3"
    engine.destroy("--run-program")
    assert there(fake, f"zones/{ZONE}/reservations") == []


@soak_only
def test_a_shared_reservation_that_changes_keeps_its_name(engine: Engine, fake: Fake) -> None:
    engine.write(program(reservations={"shared": {**KEPT, "share_with": ["team-1"], "specific": False}})).up()
    (kept,) = there(fake, f"zones/{ZONE}/reservations")
    maps = {"team-1": {"projectId": "team-1"}}
    assert kept["shareSettings"] == {"shareType": "SPECIFIC_PROJECTS", "projectMap": maps}
    still(engine)
    larger = {**KEPT, "machine_type": "a2-highgpu-2g", "protect": True}
    other = engine.write(program(reservations={"shared": larger})).up()
    assert "delete-replaced" in ops(other, ":Reservation")
    (kept,) = there(fake, f"zones/{ZONE}/reservations")
    assert (kept["name"], kept["specificReservation"]["instanceProperties"]["machineType"]) == (
        "shared",
        "a2-highgpu-2g",
    )
    refused = engine.write(program()).up(check=False)
    assert refused.exit_code != 0
    assert any("protect" in line for line in refused.diagnostics)
    assert there(fake, f"zones/{ZONE}/reservations") != []


@soak_only
def test_a_reservation_of_what_is_out_of_stock_fails_the_update(engine: Engine, fake: Fake) -> None:
    fake.fault(stockout=["a2-highgpu-1g"])
    failed = engine.write(program(reservations={"a100": KEPT})).up(check=False)
    assert failed.exit_code != 0
    assert any("does not have enough resources" in line for line in failed.diagnostics)


@soak_only
def test_a_future_reservation(engine: Engine, fake: Fake) -> None:
    engine.write(program(future_reservations={"h100": LATER})).up()
    (asked,) = there(fake, f"zones/{ZONE}/futureReservations")
    assert (asked["planningStatus"], asked["reservationName"]) == ("DRAFT", "h100")
    assert asked["timeWindow"] == {"startTime": "2035-01-01T00:00:00Z", "duration": {"seconds": "604800"}}
    still(engine)
    submitted = {**LATER, "planning_status": "SUBMITTED", "i_understand_this_is_a_purchase": True}
    changed = engine.write(program(future_reservations={"h100": submitted})).up()
    assert "replace" not in ops(changed, ":FutureReservation")
    assert there(fake, f"zones/{ZONE}/futureReservations")[0]["planningStatus"] == "SUBMITTED"


@soak_only
def test_a_group_in_a_placement(engine: Engine, fake: Fake) -> None:
    group = {"zone": ZONE, "machine_type": "a2-highgpu-1g", "size": 2, "placement": "near"}
    engine.write(program(placements={"near": NEAR}, gpu_groups={"two": group})).up()
    (policy,) = there(fake, "regions/us-central1/resourcePolicies")
    assert policy["groupPlacementPolicy"] == {"collocation": "COLLOCATED"}
    machines = there(fake, f"zones/{ZONE}/instances")
    assert [each["resourcePolicies"] for each in machines] == [[policy["selfLink"]]] * 2
    still(engine)


@soak_only
def test_a_workload_policy(engine: Engine, fake: Fake) -> None:
    near = {"kind": "workload", "region": "us-central1", "distance": "BLOCK"}
    group = {"zone": ZONE, "machine_type": "a3-highgpu-8g", "size": 1, "placement": "near"}
    engine.write(program(placements={"near": near}, gpu_groups={"two": group})).up()
    (policy,) = there(fake, "regions/us-central1/resourcePolicies")
    assert policy["workloadPolicy"] == {"type": "HIGH_THROUGHPUT", "maxTopologyDistance": "BLOCK"}
    (manager,) = there(fake, f"zones/{ZONE}/instanceGroupManagers")
    assert manager["resourcePolicies"]["workloadPolicy"].endswith(f"/{policy['name']}")
    still(engine)


@soak_only
def test_a_commitment_is_bought_once(engine: Engine, fake: Fake) -> None:
    engine.write(program(reservations={"a100": KEPT}, commitments={"paid": PAID}))
    shown = engine.preview()
    assert any("cannot be cancelled" in line and "63.0%" in line for line in shown.diagnostics), shown.diagnostics
    assert there(fake, "regions/us-central1/commitments") == [], "a preview buys nothing"
    made = engine.up()
    assert made.outputs["capacity"]["commitments"]["paid"]["break_even"] == 0.63
    (paid,) = there(fake, "regions/us-central1/commitments")
    assert {each["type"]: each["amount"] for each in paid["resources"]} == {
        "VCPU": "24",
        "MEMORY": "174080",
        "ACCELERATOR": "2",
    }
    assert (paid["type"], paid["plan"]) == ("ACCELERATOR_OPTIMIZED", "TWELVE_MONTH")
    assert [each.rpartition("/")[2] for each in paid["existingReservations"]] == ["a100"]
    still(engine)

    # Any change would buy another one beside it.
    changed = engine.write(program(reservations={"a100": KEPT}, commitments={"paid": {**PAID, "count": 3}}))
    assert changed.up(check=False).exit_code != 0
    assert engine.write(program(reservations={"a100": KEPT})).up(check=False).exit_code != 0, "it is protected"
    assert engine.destroy("--run-program", check=False).exit_code != 0
    assert len(there(fake, "regions/us-central1/commitments")) == 1

    engine.run("state", "unprotect", "--all", "--yes")
    engine.destroy("--run-program", check=False)
    assert len(there(fake, "regions/us-central1/commitments")) == 1, "forgotten, and still paid for"

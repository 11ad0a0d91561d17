"""VMs of Compute Engine: made once, seen in every state, removed, against the sandbox's Google. They run the agent."""

import json
from dataclasses import replace

import pytest

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent
from jobs.backends.vm.gpu.instances import INSTANCE, Instances, instance_body
from jobs.backends.vm.records import Records
from jobs.backends.vm.state_machine import MachineState, NoCapacity
from tests.jobs.backends.gce_cloud import (
    INSERT,
    PROJECT,
    QUICK,
    ZONE,
    instances,
    left,
    made,
    reach,
    wanted,
)
from tests.support.google_fake import Fake
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.gce_cloud"]


@pytest.fixture
def cloud(gce_cloud: Fake) -> Fake:
    return gce_cloud


def test_a_machine_is_made_seen_and_removed(cloud: Fake, machines: Instances) -> None:
    record = wanted("life")
    assert machines.look(record, record.last) == MachineState("absent", "")
    machines.make(record, record.last)
    record = made(record)
    assert reach(machines, record, "running")[-1] == "running RUNNING"
    (found,) = instances(cloud)
    assert found["name"] == record.name and found["labels"]["accel-maker"] == "jobs"
    assert found["machineType"].endswith("/zones/us-central1-a/machineTypes/g2-standard-4")
    assert found["scheduling"]["provisioningModel"] == "SPOT"
    machines.remove(record, record.last)
    machines.remove(record, record.last)
    reach(machines, record, "absent")
    machines.remove(record, record.last)
    assert instances(cloud) == []


def test_what_is_asked_for_twice_is_made_once(cloud: Fake, machines: Instances) -> None:
    record = wanted("twice")
    machines.make(record, record.last)
    machines.make(record, record.last)
    reach(machines, record, "running")
    Instances(Google(QUICK)).make(record, record.last)
    assert len(instances(cloud)) == 1


@pytest.mark.parametrize("after", [False, True], ids=["before it was made", "after it was made"])
def test_a_request_whose_answer_is_lost_is_made_once(cloud: Fake, machines: Instances, after: bool) -> None:
    record = wanted(f"lost {after}")
    cloud.fault(method=INSERT, code=503, after=after, count=2)
    machines.make(record, record.last)
    reach(machines, record, "running")
    assert len(instances(cloud)) == 1


def test_a_zone_without_room_names_others(cloud: Fake, machines: Instances) -> None:
    cloud.fault(stockout=["us-central1-a/g2-standard-4"])
    record = wanted("stockout")
    with pytest.raises(NoCapacity, match="does not have enough resources") as caught:
        machines.make(record, record.last)
    assert "us-central1-b" in caught.value.zones
    assert instances(cloud) == []
    # Whoever comes later, without having waited for the operation, is told the same.
    seen = machines.look(made(record), made(record).last)
    assert (seen.state, seen.stockout) == ("failed", True)
    assert "does not have enough resources" in seen.reason


def test_a_quota_that_is_used_up_is_told_with_its_numbers(cloud: Fake, machines: Instances) -> None:
    cloud.fault(quota={"compute/us-central1/PREEMPTIBLE_NVIDIA_L4_GPUS": 0})
    record = wanted("quota")
    with pytest.raises(
        CloudRefused, match=r"Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded.*limit 0, region us-c"
    ) as caught:
        machines.make(record, record.last)
    assert "raise the quota" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "code, message, error",
    [
        (403, "Required 'compute.instances.create' permission for 'x'", CloudRefused),
        (404, "The resource 'networks/x' was not found", CloudRefused),
        (503, "The zone 'us-central1-a' does not have enough resources available", NoCapacity),
        (503, "Backend error", CloudSilent),
    ],
)
def test_what_is_refused_at_once(
    cloud: Fake, machines: Instances, code: int, message: str, error: type[Exception]
) -> None:
    record = wanted(message)
    cloud.fault(method=INSERT, code=code, message=message, count=QUICK.attempts)
    with pytest.raises(error):
        machines.make(record, record.last)
    assert instances(cloud) == []


def test_another_ones_machine_of_that_name_is_left_alone(cloud: Fake, machines: Instances) -> None:
    record = wanted("foreign")
    body = instance_body(record, record.last)
    body["labels"]["accel-maker"] = "somebody"
    cloud.done("POST", f"{ZONE}/instances", body)
    with pytest.raises(CloudRefused, match="is not this job's"):
        machines.make(record, record.last)
    machines.remove(record, record.last)
    assert machines.look(record, record.last).state == "absent"
    assert len(instances(cloud)) == 1


def test_a_machine_that_google_takes_back_is_lost(cloud: Fake, machines: Instances) -> None:
    record = made(wanted("preempted"))
    machines.make(record, record.last)
    reach(machines, record, "running")
    until(lambda: left(cloud, record, "host-0.json"))
    key = f"projects/{PROJECT}/zones/us-central1-a/instances/{record.name}"
    assert cloud.ask("POST", "sandbox-api/preempt", {"name": key}).ok
    seen = machines.look(record, record.last)
    assert (seen.state, seen.native, seen.reason) == ("lost", "STOPPING", "Google took it back")
    until(lambda: machines.look(record, record.last).state == "absent")
    assert machines.look(record, record.last).reason == "Google took it back"
    results = Records(Google(QUICK), "acme-jobs").results(record, record.last)
    assert results[0].reason == "preempted"


def test_a_job_runs_and_its_machine_releases_itself(cloud: Fake, machines: Instances) -> None:
    record = made(wanted("release", command=["sh", "-c", "exit 3"], spot=False))
    machines.make(record, record.last)
    until(lambda: machines.look(record, record.last).state == "absent")
    results = Records(Google(QUICK), "acme-jobs").results(record, record.last)
    assert (results[0].exit_code, results[0].reason) == (3, "exited")
    assert instances(cloud) == []


def test_every_status_has_a_meaning() -> None:
    from sandbox.google.discovery import document

    known = document("compute.v1").schema("Instance")["properties"]["status"]["enum"]
    assert set(known) == set(INSTANCE)


def test_what_a_record_knows_is_enough(cloud: Fake, machines: Instances) -> None:
    """A record that was written and read makes the same machines: nothing comes from elsewhere."""
    record = wanted("again")
    read = replace(record, body=json.loads(json.dumps(record.body)))
    assert instance_body(read, read.last) == instance_body(record, record.last)

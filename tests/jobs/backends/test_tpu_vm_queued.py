"""TPU slices by queued resources: made once, seen in every state, removed, against the sandbox's Google."""

from typing import Any

import pytest

from accel.catalog.tpu import tpu
from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, CloudSilent
from jobs.backends.vm.record import Record
from jobs.backends.vm.state_machine import MachineState, NoCapacity
from jobs.backends.vm.tpu.queued_resources import QueuedResources, queued_resource
from tests.jobs.backends.tpu_cloud import GROUND, QUICK, look, reach, wanted
from tests.jobs.backends.tpu_target import make_request, make_target
from tests.jobs.backends.vm_records import make_record
from tests.jobs.backends.vm_target import PROJECT
from tests.support.google_fake import Fake
from tests.support.google_tpus import finished, preempt
from tests.support.soak import sampled
from tests.support.waiting import until

pytest_plugins = [
    "tests.support.google_fake",
    "tests.support.google_tpus",
    "tests.jobs.backends.tpu_cloud",
    "tests.jobs.backends.vm_faults",
]
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def cloud(tpu_cloud: Fake) -> Fake:
    return tpu_cloud


CREATE, GET, DELETE = (f"tpu.projects.locations.queuedResources.{verb}" for verb in ("create", "get", "delete"))


@pytest.fixture
def machines(cloud: Fake) -> QueuedResources:
    return QueuedResources(Google(QUICK))


def requests_of(cloud: Fake, record: Record) -> list[dict[str, Any]]:
    found = cloud.call("GET", f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/-/queuedResources")
    return [each for each in found["queuedResources"] if each["name"].endswith(f"/{record.name}")]


def path_of(record: Record) -> str:
    return f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/us-central1-a/queuedResources/{record.name}"


def test_a_slice_is_made_seen_and_removed(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("life")
    assert look(machines, record) == MachineState("absent", "")
    cloud.fault(stockout=["us-central1-a/v5litepod-16"])
    machines.make(record, record.last)
    assert reach(machines, record, "waiting")[-1].startswith("waiting ")
    cloud.fault(stockout=[])
    seen = reach(machines, record, "running")
    assert seen[-1] == "running ACTIVE" and seen[-2] in ("starting PROVISIONING", "waiting WAITING_FOR_RESOURCES")
    (request,) = requests_of(cloud, record)
    assert request["spot"] == {} and request["tpu"]["nodeSpec"][0]["nodeId"] == record.name
    machines.remove(record, record.last)
    reach(machines, record, "absent")
    machines.remove(record, record.last)
    assert requests_of(cloud, record) == []


def test_what_is_asked_for_twice_is_made_once(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("twice")
    machines.make(record, record.last)
    machines.make(record, record.last)
    reach(machines, record, "running")
    other = QueuedResources(Google(QUICK))
    other.make(record, record.last)
    assert len(requests_of(cloud, record)) == 1


@pytest.mark.parametrize("after", sampled([False, True], [True]), ids=["before it was made", "after it was made"])
def test_a_request_whose_answer_is_lost_is_made_once(cloud: Fake, machines: QueuedResources, after: bool) -> None:
    record = wanted(f"lost {after}")
    cloud.fault(method=CREATE, code=503, after=after, count=2)
    machines.make(record, record.last)
    assert len(requests_of(cloud, record)) == 1
    reach(machines, record, "running")


def test_a_request_that_shows_late_is_waited_for(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("late")
    cloud.fault(method=GET, code=404, count=2)
    machines.make(record, record.last)
    assert len(requests_of(cloud, record)) == 1
    hidden = wanted("hidden")
    cloud.fault(method=GET, code=404, count=99)
    with pytest.raises(CloudSilent, match="was asked for, and cannot be seen yet"):
        machines.make(hidden, hidden.last)


def test_nobody_knows_while_the_api_is_silent(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("silent")
    cloud.fault(method=CREATE, code=503, count=QUICK.attempts)
    with pytest.raises(CloudSilent, match="planned by the sandbox"):
        machines.make(record, record.last)
    cloud.fault(method=GET, code=503, count=QUICK.attempts)
    with pytest.raises(CloudSilent):
        look(machines, record)
    assert look(machines, record).state == "absent"


CAPACITY = 'There is no more capacity in the zone "us-central1-a"; you can try in another zone'
LACKING = 'accelerator type, "v5litepod-16", could not be found in the zonal accelerator configurations'


@pytest.mark.parametrize(
    "code, message, error",
    [
        (429, CAPACITY, NoCapacity),
        (400, LACKING, NoCapacity),
        (429, "Quota limit 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded.", CloudRefused),
        (429, "Too many requests", CloudSilent),
        (403, "Permission 'tpu.nodes.create' denied", CloudRefused),
        (404, "The resource 'networks/x' was not found", CloudRefused),
    ],
)
def test_what_a_zone_refuses_at_once(
    cloud: Fake, machines: QueuedResources, code: int, message: str, error: type[Exception]
) -> None:
    record = wanted(message)
    cloud.fault(method=CREATE, code=code, message=message, count=QUICK.attempts)
    with pytest.raises(error) as caught:
        machines.make(record, record.last)
    assert message.partition("'")[0] in str(caught.value)
    assert isinstance(caught.value, CloudSilent) == (error is CloudSilent)
    assert requests_of(cloud, record) == []


def test_a_network_that_is_not_there_and_a_zone_without_the_type(machines: QueuedResources) -> None:
    gone = make_record(make_request(make_target(**{**GROUND, "network": f"projects/{PROJECT}/global/networks/x"})))
    with pytest.raises(CloudRefused, match="networks/x' was not found"):
        machines.make(gone, gone.last)
    target = make_target(**{**GROUND, "zones": ["europe-west4-a"]})
    request = make_request(target, accelerator={"type": "v5p-8"}, tpu_vm={"zones": ["europe-west4-a"]})
    assert "europe-west4-a" not in [zone for zones in tpu("v5p-8").places.values() for zone in zones]
    record = make_record(request)
    with pytest.raises(NoCapacity, match="was not found in zone europe-west4-a"):
        machines.make(record, record.last)


def test_a_quota_that_is_used_up_is_refused_in_googles_words(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("quota")
    cloud.fault(quota={"tpu/us-central1-a/v5litepod": 8})
    try:
        with pytest.raises(CloudRefused, match=r"has been exceeded\. Limit: 8") as caught:
            machines.make(record, record.last)
    finally:
        cloud.fault(quota={})
    assert "quota" in (caught.value.hint or "")


def test_another_ones_request_of_that_name_is_left_alone(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("foreign")
    body = queued_resource(record, record.last)
    body["tpu"]["nodeSpec"][0]["node"]["labels"]["accel-maker"] = "somebody"
    folder = path_of(record).rpartition("/")[0]
    cloud.call("POST", folder, body, queuedResourceId=record.name)
    with pytest.raises(CloudRefused, match="is not this job's"):
        machines.make(record, record.last)
    assert look(machines, record).state == "absent"
    machines.remove(record, record.last)
    assert len(requests_of(cloud, record)) == 1


def test_a_slice_that_google_takes_back_is_lost(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("preempted")
    machines.make(record, record.last)
    reach(machines, record, "running")
    assert preempt(cloud, path_of(record).partition("/v2/")[2]).ok
    seen = look(machines, record)
    assert seen.state == "lost" and seen.native in ("SUSPENDING", "SUSPENDED")
    assert seen.reason.startswith("Google took its TPUs away") and "no longer eligible" in seen.reason
    until(lambda: look(machines, record).native == "SUSPENDED")
    machines.remove(record, record.last)
    reach(machines, record, "absent")


def test_a_request_whose_nodes_a_user_deleted_says_so(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("deleted")
    machines.make(record, record.last)
    reach(machines, record, "running")
    node = path_of(record).replace("queuedResources", "nodes")
    finished(cloud, cloud.call("DELETE", node))
    until(lambda: look(machines, record).native in ("SUSPENDING", "SUSPENDED"))
    assert look(machines, record).reason.startswith("a user took its TPUs away")


def test_a_request_that_expires_found_no_room(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("expired", tpu_vm={"valid_for_s": 1})
    cloud.fault(stockout=["v5litepod-16"])
    machines.make(record, record.last)
    reach(machines, record, "failed")
    seen = look(machines, record)
    assert seen.native == "FAILED" and seen.stockout and "valid-until" in seen.reason
    machines.remove(record, record.last)
    reach(machines, record, "absent")


def test_a_request_that_fails_in_provisioning_is_lost(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("fails")
    cloud.fault(method=CREATE, fails="an internal error has occurred")
    machines.make(record, record.last)
    until(lambda: look(machines, record).native == "FAILED")
    assert look(machines, record) == MachineState("lost", "FAILED", "an internal error has occurred")


def test_several_slices_run_when_every_one_does(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("slices", accelerator={"type": "v5litepod-8"}, tpu_vm={"slices": 2})
    machines.make(record, record.last)
    reach(machines, record, "running")
    place = path_of(record).partition("/queuedResources")[0]
    names = {each["name"].rpartition("/")[2] for each in cloud.call("GET", f"{place}/nodes")["nodes"]}
    assert names == {f"{record.name}-0", f"{record.name}-1"}
    finished(cloud, cloud.call("DELETE", f"{place}/nodes/{record.name}-1"))
    seen = look(machines, record)
    assert seen == MachineState("lost", "ACTIVE", f"node {record.name}-1 is no longer there")


def test_removing_goes_on_where_a_deletion_was_refused(cloud: Fake, machines: QueuedResources) -> None:
    record = wanted("removal")
    machines.make(record, record.last)
    cloud.fault(method=DELETE, code=400, message="failed precondition")
    with pytest.raises(CloudRefused, match="failed precondition"):
        machines.remove(record, record.last)
    machines.remove(record, record.last)
    machines.remove(record, record.last)
    reach(machines, record, "absent")

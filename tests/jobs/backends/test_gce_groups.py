"""Several VMs of one job, and jobs by the whole backend, against the sandbox's Google."""

import pytest

from accel.clouds.google.api import Google
from jobs.backends.vm.gpu import GceBackend
from jobs.backends.vm.gpu.instances import Instances, template_body
from jobs.backends.vm.record import Record
from jobs.backends.vm.records import Records
from jobs.model.fields import Accelerator
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.gce_cloud import COMPUTE, GROUND, PROJECT, QUICK, ZONE, instances, left, made, reach, wanted
from tests.jobs.backends.gce_target import make_target
from tests.support.google_fake import Fake
from tests.support.soak import sampled
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.gce_cloud", "tests.jobs.backends.vm_faults"]


@pytest.fixture
def cloud(gce_cloud: Fake) -> Fake:
    return gce_cloud


def test_an_image_is_run_by_docker_on_gpus(cloud: Fake, machines: Instances) -> None:
    """With the driver that its boot image installs, on a machine that has two."""
    text = "import os; print(os.environ['EPOCHS']); raise SystemExit(7)"
    fields = {"image": "local/examples", "accelerator": {"type": "l4", "count": 2}, "env": {"EPOCHS": "5"}}
    record = made(wanted("image", command=["python3", "-c", text], spot=False, **fields))
    machines.make(record, record.last)
    until(lambda: machines.look(record, record.last).state == "absent")
    results = Records(Google(QUICK), "acme-jobs").results(record, record.last)
    assert (results[0].exit_code, results[0].reason) == (7, "exited")


def test_machines_of_a_job_meet_and_go_together(cloud: Fake, machines: Instances) -> None:
    record = wanted("nodes", nodes=3, command=["sh", "-c", "exit $ACCEL_NODE_INDEX"])
    machines.make(record, record.last)
    machines.make(record, record.last)
    record = made(record)
    names = {item["name"] for item in cloud.call("GET", f"{ZONE}/instances").get("items", [])}
    assert names <= {f"{record.name}-{index}" for index in range(3)}

    def gone() -> bool:
        machines.remove(record, record.last) if machines.look(record, record.last).state == "lost" else None
        return machines.look(record, record.last).state == "absent"

    until(gone)
    results = Records(Google(QUICK), "acme-jobs").results(record, record.last)
    assert {host: result.exit_code for host, result in results.items() if result.reason == "exited"}.items() <= {
        0: 0, 1: 1, 2: 2,
    }.items()  # fmt: skip
    assert any(result.exit_code for result in results.values())
    assert instances(cloud) == []
    assert cloud.call("GET", f"{COMPUTE}/global/instanceTemplates").get("items", []) == []


@pytest.mark.usefixtures("bare")
def test_a_group_whose_zone_has_no_room_fails(cloud: Fake, machines: Instances) -> None:
    cloud.fault(stockout=["us-central1-a/g2-standard-4"])
    record = made(wanted("group stockout", nodes=2))
    machines.make(record, record.last)
    reach(machines, record, "failed")
    seen = machines.look(record, record.last)
    assert seen.stockout and "does not have enough resources" in seen.reason
    until(lambda: machines.remove(record, record.last) or machines.look(record, record.last).state == "absent")


@pytest.mark.usefixtures("bare")
def test_a_group_that_was_begun_is_gone_on_with(cloud: Fake, machines: Instances) -> None:
    record = wanted("begun", nodes=2)
    cloud.done("POST", f"{COMPUTE}/global/instanceTemplates", template_body(record, record.last))
    assert machines.look(record, record.last).state == "absent"
    machines.make(record, record.last)
    reach(machines, made(record), "running")
    lost = next(item for item in instances(cloud) if item["name"].endswith("-1"))
    cloud.done("DELETE", f"{ZONE}/instances/{lost['name']}")
    seen = machines.look(made(record), made(record).last)
    assert seen.state == "lost" and seen.reason.startswith(f"{record.name}-1 is")
    until(lambda: machines.remove(record, record.last) or machines.look(record, record.last).state == "absent")


def test_a_job_goes_on_in_the_next_zone_and_after_a_preemption(cloud: Fake) -> None:
    """The whole backend: no room in the first zone; taken back in the second; done at last in the first."""
    cloud.fault(stockout=["us-central1-a/g2-standard-4"])
    backend = GceBackend("gpus", make_target(**GROUND), timing=QUICK)
    text = "[ $ACCEL_ATTEMPT = 3 ] || sleep 600"
    job = Job(name="zones", command=["sh", "-c", text], accelerator=Accelerator(type="l4"), spot=True)
    key = submission_key(job.name, "the next zone")
    ref = backend.submit(backend.render(job, platform_name(job.name, key), key))

    def record() -> Record:
        backend.tend(ref)
        return backend.records.read(ref.id)[0]

    until(lambda: record().last.number == 2 and record().last.started)
    until(lambda: left(cloud, record(), "host-0.json"))
    cloud.fault(stockout=[])
    name = record().last.name
    key = f"projects/{PROJECT}/zones/us-central1-b/instances/{name}"
    assert cloud.ask("POST", "sandbox-api/preempt", {"name": key}).ok
    until(lambda: record().ended)
    ended = record()
    assert [(each.zone, each.outcome) for each in ended.attempts] == [
        ("us-central1-a", "no-capacity"),
        ("us-central1-b", "lost"),
        ("us-central1-a", "succeeded"),
    ]
    assert (ended.outcome, backend.status(ref).phase) == ("succeeded", "SUCCEEDED")


@pytest.mark.parametrize("nodes", sampled([1, 2], [2]))
def test_what_is_going_is_not_asked_to_go_again(cloud: Fake, machines: Instances, nodes: int) -> None:
    """And a machine that somebody else is changing just then is no failure."""
    record = wanted(f"going {nodes}", nodes=nodes, command=["sh", "-c", "trap 'sleep 1' TERM; sleep 600 & wait"])
    machines.make(record, record.last)
    reach(machines, made(record), "running")
    ended = record.with_last(state="ended")
    kind = "instances" if nodes == 1 else "instanceGroupManagers"
    cloud.fault(method=f"compute.{kind}.delete", code=400, message="The resource 'x' is not ready", count=1)
    machines.remove(ended, ended.last)
    assert machines.look(ended, ended.last).state == "running"
    machines.remove(ended, ended.last)
    assert reach(machines, ended, "leaving")
    until(lambda: machines.remove(ended, ended.last) or machines.look(ended, ended.last).state == "absent")

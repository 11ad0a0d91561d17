"""Whole jobs on TPU VMs of the sandbox: the agent runs on every host."""

import json
from typing import Any

import pytest

from accel.clouds.google.api import Google, object_path
from accel.diagnostics.errors import NotFound
from jobs.backends.base import Phase
from jobs.backends.vm.tpu import TpuVmBackend
from jobs.backends.vm.tpu.queued_resources import QueuedResources
from jobs.model.fields import Accelerator
from jobs.model.job import Job
from jobs.model.keys import platform_name, submission_key
from tests.jobs.backends.tpu_cloud import GROUND, QUICK, reach, wanted
from tests.jobs.backends.tpu_target import make_target
from tests.jobs.backends.vm_target import PROJECT
from tests.support.google_fake import Fake
from tests.support.google_tpus import preempt
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus", "tests.jobs.backends.tpu_cloud"]


@pytest.fixture
def cloud(tpu_cloud: Fake) -> Fake:
    return tpu_cloud


@soak_only
def test_a_job_that_has_ended_leaves_its_result_and_no_machine(cloud: Fake) -> None:
    """The agent runs on every host, and host 0 deletes the request: nobody has to come back for that."""
    record = wanted("ends", accelerator={"type": "v5litepod-16"}, command=["sh", "-c", "exit $TPU_WORKER_ID"])
    google = Google(QUICK)
    machines = QueuedResources(google)
    machines.make(record, record.last)
    folder = f"accel-jobs/{record.name}/attempts/1"

    def result() -> dict[str, Any] | None:
        try:
            return json.loads(google.read("storage", object_path("acme-jobs", f"{folder}/result-0.json"))[0])
        except NotFound:
            return None

    told = until(result)
    assert told["host"] == 0
    reach(machines, record, "absent")


def test_a_job_from_its_submission_to_its_end(cloud: Fake) -> None:
    """Submitted twice, preempted once, run on two hosts, and nothing is left."""
    backend = TpuVmBackend("tpus", make_target(**GROUND), timing=QUICK)
    job = Job(
        name="whole",
        accelerator=Accelerator(type="v5p-16"),
        command=["sh", "-c", 'test "$ACCEL_ATTEMPT" = 2 || sleep 600'],
        spot=True,
    )
    key = submission_key("whole", "once")
    request = backend.render(job, platform_name("whole", key), key)
    ref = backend.submit(request)
    assert backend.submit(request) == ref
    until(lambda: backend.tend(ref).phase is Phase.RUNNING)
    assert preempt(cloud, f"projects/{PROJECT}/locations/us-central1-a/queuedResources/{ref.id}").ok
    until(lambda: backend.tend(ref).phase is Phase.SUCCEEDED)
    status = backend.status(ref)
    assert (status.attempts, status.lost, status.exit_code) == (2, 1, 0)
    everywhere = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/-/queuedResources"
    until(lambda: not cloud.call("GET", everywhere)["queuedResources"])

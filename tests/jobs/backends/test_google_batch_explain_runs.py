"""Why jobs on the sandbox's Google Batch wait and fail."""

from typing import Any

import pytest

from jobs.backends.base import Explain, Explanation
from tests.jobs.backends.google_batch_cloud import Cloud, script
from tests.jobs.backends.traceback_lines import TRACEBACK, UPRIGHT
from tests.support.soak import soak_only

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]


@pytest.fixture
def cloud(batch_cloud: Cloud) -> Cloud:
    return batch_cloud


def why(cloud: Cloud, ref: Any) -> Explanation:
    backend = cloud.backend()
    assert isinstance(backend, Explain)
    return backend.explain(ref)


def test_no_machines_on_the_sandbox(cloud: Cloud) -> None:
    cloud.fake.fault(stockout=["g2-standard-4"])
    l4 = {"accelerator": {"type": "l4"}}
    ref = cloud.backend().submit(cloud.request("stockout", google_batch={"machine_type": "g2-standard-4"}, **l4))
    cloud.becomes(ref, lambda status: bool(status.reason))
    assert why(cloud, ref).cause == "no-capacity"
    cloud.fake.fault(stockout=[])
    cloud.fake.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 0})
    poor = cloud.backend().submit(cloud.request("quota", **l4))
    cloud.becomes(poor, lambda status: bool(status.reason))
    assert why(cloud, poor).cause in ("quota", "waits-for-quota")


def test_an_agent_that_does_not_report_on_the_sandbox(cloud: Cloud) -> None:
    cloud.control(agent=False)
    ref = cloud.backend().submit(cloud.request("silent"))
    cloud.becomes(ref, lambda status: status.phase.ended)
    assert why(cloud, ref).cause == "agent-silent"


def test_failures_on_the_sandbox(cloud: Cloud) -> None:
    ill = cloud.backend().submit(cloud.request("ill", **script("echo 'oh no'; exit 3")))
    slow = cloud.backend().submit(cloud.request("slow", **script("sleep 600", timeout_s=1)))
    image = cloud.backend().submit(cloud.request("image", image="local/nowhere"))
    for ref, cause in ((ill, "exit-code"), (slow, "timeout"), (image, "image-forbidden")):
        cloud.becomes(ref, lambda status: status.phase.ended)
        answer = why(cloud, ref)
        assert answer.cause == cause, answer
    assert "oh no" in why(cloud, ill).evidence


def test_a_traceback_after_many_lines_on_the_sandbox(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("traceback", **script(TRACEBACK)))
    cloud.becomes(ref, lambda status: status.phase.ended)
    assert [line.split(",")[0] for line in why(cloud, ref).evidence[-4:]] == UPRIGHT


@soak_only
def test_a_job_that_lost_its_last_machine_on_the_sandbox(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("lost", **script("sleep 600", spot=True, lost_retries=0)))
    cloud.becomes(ref, lambda status: status.attempts == 1)
    cloud.preempt(ref.id)
    cloud.becomes(ref, lambda status: status.phase.ended)
    assert why(cloud, ref).cause == "preempted"

"""Status, listing, cancelling and retrying of jobs on Google Batch."""

from typing import Any

import pytest

from accel.diagnostics.errors import BadInput, CloudRefused, NotFound
from jobs.backends.base import Listing, Many, Phase, Quotas, Resubmit, Status
from jobs.backends.google_batch import GoogleBatchBackend, labels
from jobs.backends.google_batch.lookup import BatchJob, Task
from jobs.backends.google_batch.status import FEW, NO_ROOM, PHASES, TAKEN, status_of
from jobs.model.job import Job
from jobs.model.keys import submission_key
from sandbox.google.discovery import document
from tests.jobs.backends.google_batch_cloud import JOBS, Cloud
from tests.jobs.backends.google_batch_jobs import REF, ended, event, failed_by, job, moved, ran, task

pytest_plugins = ["tests.support.google_fake", "tests.jobs.backends.google_batch_cloud"]


@pytest.fixture
def cloud(batch_cloud: Cloud) -> Cloud:
    return batch_cloud


LOCAL: dict[str, Any] = {"image": None, "google_batch": {"runnables": [{"script": "exit 0"}]}, "command": []}


def script(text: str, **fields: Any) -> dict[str, Any]:
    return {**LOCAL, "google_batch": {"runnables": [{"script": text}]}, **fields}


def read(found: BatchJob, *tasks: Task) -> Status:
    return status_of(REF, found, tasks)


RUN = [moved(1, "QUEUED", "SCHEDULED"), moved(2, "SCHEDULED", "RUNNING")]


def test_every_state_has_a_phase() -> None:
    states = document("batch.v1").schema("JobStatus")["properties"]["state"]["enum"]
    assert {*PHASES} == {*states} - {"STATE_UNSPECIFIED"}
    found = {state: read(job(state)).phase for state in PHASES}
    assert [state for state, phase in found.items() if phase.ended] == [
        "SUCCEEDED", "FAILED", "CANCELLED", "DELETION_IN_PROGRESS",
    ]  # fmt: skip


def test_a_retried_preemption_that_succeeded_has_succeeded() -> None:
    """The event of a success has no exit code, and that of the attempt before stays."""
    told = job("SUCCEEDED", *RUN, moved(30, "RUNNING", "SUCCEEDED"), counts={"SUCCEEDED": 1})
    found = read(told, task("SUCCEEDED", ran(2), ended(12, 50001), ran(15), ran(30, "SUCCEEDED", "RUNNING")))
    assert (found.phase, found.exit_code, found.reason, found.taken) == (Phase.SUCCEEDED, 0, None, None)
    assert (found.attempts, found.lost, found.lost_gpu_hours) == (2, 1, pytest.approx(1 / 6, abs=0.001))


@pytest.mark.parametrize("told", [True, False])
def test_a_job_that_is_called_failed_though_its_tasks_succeeded(told: bool) -> None:
    """An event of an attempt before is not the end; the counts and the task's state are."""
    wrong = job("FAILED", *RUN, failed_by(12, 50001), counts={"SUCCEEDED": 1})
    found = read(wrong, task("SUCCEEDED", ran(2), ended(12, 50001, told=told), ran(15)))
    assert (found.phase, found.native, found.exit_code, found.taken) == (Phase.SUCCEEDED, "FAILED", 0, None)
    assert found.lost == 1


def test_a_task_that_waits_again_is_no_failure() -> None:
    found = read(job("RUNNING", *RUN, counts={"PENDING": 1}), task("PENDING", ran(2), ended(12, 50001)))
    assert (found.phase, found.exit_code, found.attempts, found.lost) == (Phase.RUNNING, None, 1, 1)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("code", [50001, 50002, 50003, 50004, 50006])
def test_a_machine_that_was_taken_too_often(code: int, told: bool) -> None:
    failed = job("FAILED", *RUN, failed_by(40, code), counts={"FAILED": 1})
    found = read(failed, task("FAILED", ran(2), ended(12, 50001), ran(20), ended(40, code, told=told)))
    assert (found.exit_code, found.taken, found.attempts, found.lost) == (code, TAKEN, 2, 2)
    assert found.reason and f"exit code {code}" in found.reason
    assert read(failed).taken == TAKEN, "a list knows it from the job alone"


@pytest.mark.parametrize("code", [1, 125, 137, 50000, 50005])
def test_what_the_task_did_itself_is_not_taken(code: int) -> None:
    found = read(
        job("FAILED", *RUN, failed_by(40, code)), task("FAILED", ran(2), ended(12, 50001), ran(20), ended(40, code))
    )
    assert (found.exit_code, found.taken, found.lost) == (code, None, 1)


def test_the_first_node_that_failed_by_itself_decides() -> None:
    told = {"environment": {"variables": {"ACCEL_NODE_COUNT": "3"}}}
    nodes = {"taskCount": "3", "parallelism": "3", "requireHostsFile": True, "taskSpec": told}
    seen = [
        task("FAILED", ran(2), ended(9, 50001), index=0),
        task("FAILED", ran(2), ended(12, 7), index=1),
        task("FAILED", ran(2), ended(11, 3), index=2),
    ]
    found = read(job("FAILED", *RUN, failed_by(12, 7), group=nodes), *seen)
    assert (found.exit_code, found.lost, found.tasks, found.attempts) == (3, 1, {}, 1)


def test_no_zone_had_a_machine() -> None:
    why = "Batch Error: code - CODE_GCE_ZONE_RESOURCE_POOL_EXHAUSTED, description - no"
    failed = job("FAILED", moved(1, "QUEUED", "SCHEDULED"), event(5, why), moved(60, "SCHEDULED", "FAILED"))
    assert read(failed).taken == NO_ROOM
    waits = read(job("SCHEDULED", moved(1, "QUEUED", "SCHEDULED"), event(5, why)))
    assert (waits.phase, waits.reason, waits.taken) == (Phase.STARTING, why, None)


def test_an_array_is_told_by_its_counts() -> None:
    counts = {"SUCCEEDED": 99_000, "RUNNING": 500, "PENDING": 499, "FAILED": 1}
    found = read(job("RUNNING", *RUN, counts=counts, group={"taskCount": "100000", "parallelism": "500"}))
    assert found.tasks == counts and (found.attempts, found.lost) == (None, None)
    assert (found.name, found.target) == ("digits", "gpus")


def test_times() -> None:
    found = read(job("SUCCEEDED", *RUN, moved(30, "RUNNING", "SUCCEEDED")))
    assert found.created and found.started and found.stopped
    assert [(each - found.created).total_seconds() for each in (found.started, found.stopped)] == [120, 1800]


def test_reasons() -> None:
    assert read(job("CANCELLED", *RUN)).reason == "cancelled"
    assert read(job("CANCELLATION_IN_PROGRESS", *RUN)).reason == "stopping: someone cancelled it"
    said = read(job("FAILED", *RUN, failed_by(5, 125))).reason
    assert said and said.startswith("Job failed due to task failure.") and "125" in said


# On the sandbox


def test_a_job_runs_to_its_end(cloud: Cloud) -> None:
    backend = cloud.backend()
    ref = backend.submit(cloud.request("well", **script("echo done")))
    assert str(ref).startswith("google-batch:accel-sandbox.us-central1/digits-")
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.native, found.exit_code, found.attempts) == (Phase.SUCCEEDED, "SUCCEEDED", 0, 1)
    assert (found.name, found.target, found.lost) == ("digits", "batch", 0)
    assert found.created and found.started and found.stopped
    assert found.created <= found.started <= found.stopped
    backend.cancel(ref, "too late")
    assert backend.status(ref) == found


def test_a_job_fails_with_its_commands_code(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("ill", **script("exit 7", retries=1)))
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.exit_code, found.attempts, found.lost, found.taken) == (Phase.FAILED, 7, 2, 0, None)


def test_a_preempted_job_that_is_tried_again(cloud: Cloud) -> None:
    accelerator = {"type": "l4"}
    ref = cloud.backend().submit(
        cloud.request("spot", **script("sleep 600", spot=True, lost_retries=3, accelerator=accelerator))
    )
    for times in range(1, 3):
        cloud.becomes(ref, lambda status, times=times: status.attempts == times and status.phase is Phase.RUNNING)
        cloud.preempt(ref.id)
        cloud.becomes(ref, lambda status, times=times: status.lost == times)
    found = cloud.becomes(ref, lambda status: status.attempts == 3)
    assert (found.phase, found.lost, found.taken) == (Phase.RUNNING, 2, None)
    assert found.lost_gpu_hours is not None
    cloud.backend().cancel(ref, "enough")
    stopped = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (stopped.native, stopped.reason, stopped.taken) == ("CANCELLED", "cancelled", None)


def test_tasks_that_cannot_be_seen_yet(cloud: Cloud) -> None:
    """Batch makes tasks some time after their job."""
    cloud.control(task_lag_s=600)
    ref = cloud.backend().submit(cloud.request("late tasks", **script("exit 3")))
    found = cloud.becomes(ref, lambda status: status.phase.ended)
    assert (found.phase, found.exit_code) == (Phase.FAILED, 3)


def test_cancelling_survives_what_breaks(cloud: Cloud) -> None:
    backend = cloud.backend()
    ref = backend.submit(cloud.request("cancel", **script("sleep 600")))
    cloud.proxy.faults["POST cancel"] = ["accept+reset", "503"]
    backend.cancel(ref, "enough")
    backend.cancel(ref, "twice")
    cloud.becomes(ref, lambda status: status.phase.ended)
    backend.cancel(ref, "three times")
    with pytest.raises(NotFound, match="Batch knows no such job"):
        backend.cancel(labels.Scope.parse(ref.scope).ref("nothing-0123456789ab"), "")


def test_a_cancel_that_is_refused_is_an_error(cloud: Cloud) -> None:
    ref = cloud.backend().submit(cloud.request("refused", **script("sleep 600")))
    cloud.proxy.faults["POST cancel"] = ["403"]
    with pytest.raises(CloudRefused):
        cloud.backend().cancel(ref, "enough")
    cloud.backend().cancel(ref, "enough")


def test_listing(cloud: Cloud) -> None:
    backend = cloud.backend()
    assert isinstance(backend, Listing) and isinstance(backend, Many)
    ended_one = backend.submit(cloud.request("list 0", **script("exit 0")))
    cloud.becomes(ended_one, lambda status: status.phase.ended)
    live = [backend.submit(cloud.request(f"list {n}", **script("sleep 600"))) for n in (1, 2)]
    foreign = cloud.request("foreign", **script("sleep 600")).body["job"]
    cloud.fake.call("POST", JOBS, {**foreign, "labels": {}}, jobId="somebody-elses")
    counts: list[int] = []
    found = [each.ref for each in backend.list(limit=10, ended=True, progress=counts.append)]
    assert found == [*live[::-1], ended_one] and counts == [1, 2, 3]
    assert [each.ref for each in backend.list(limit=10, ended=False)] == live[::-1]
    assert [each.ref for each in backend.list(limit=1, ended=True)] == [live[1]]
    known = backend.statuses([*live, ended_one, labels.Scope.parse(ended_one.scope).ref("gone-0123456789ab")])
    assert known.keys() == {*live, ended_one}
    assert known[ended_one].exit_code == 0


def test_many_are_looked_at_with_few_calls(cloud: Cloud) -> None:
    backend = cloud.backend()
    refs = [backend.submit(cloud.request(f"many {n}")) for n in range(FEW + 5)]
    cloud.proxy.calls.clear()
    assert backend.statuses(refs).keys() == {*refs}
    assert sum(cloud.proxy.calls.values()) == 1


def test_a_job_is_run_again(cloud: Cloud) -> None:
    backend = cloud.backend()
    assert isinstance(backend, Resubmit)
    request = cloud.request("again", **script("exit 0", env={"OUT": "x"}, labels={"cost": "a"}))
    ref = backend.submit(request)
    cloud.becomes(ref, lambda status: status.phase.ended)
    again = backend.resubmit_request(ref, submission_key("digits", "once more"))
    assert again.name != request.name and again.name.startswith("digits-")
    job, first = again.body["job"], request.body["job"]
    assert not {"name", "uid", "status", "createTime"} & job.keys()
    assert job["taskGroups"][0]["taskSpec"]["runnables"] == first["taskGroups"][0]["taskSpec"]["runnables"]
    assert "batch-job-id" not in job["allocationPolicy"]["labels"]
    assert request.name not in str(again.body)
    second = backend.submit(again)
    assert cloud.becomes(second, lambda status: status.phase.ended).phase is Phase.SUCCEEDED
    assert backend.resubmit_request(ref, again.key) == again
    assert backend.resubmit_request(second, again.key).body["job"]["labels"][labels.SPEC] == job["labels"][labels.SPEC]


def test_quotas_of_the_region(cloud: Cloud, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    backend = cloud.backend()
    assert isinstance(backend, Quotas)
    cloud.fake.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 1})
    values: dict[str, Any] = {
        "name": "digits",
        "image": "i",
        "command": ["true"],
        "accelerator": {"type": "l4", "count": 4},
    }
    over = backend.quota(Job(**values))
    assert any("NVIDIA_L4_GPUS" in each or "NVIDIA L4" in each for each in over.over), over
    assert backend.quota(Job(**{**values, "accelerator": None})).over == ()


def test_needs_a_target(cloud: Cloud) -> None:
    backend = GoogleBatchBackend.of_scope("accel-sandbox.us-central1")
    with pytest.raises(BadInput, match="render: needs a target"):
        backend.render(Job(name="a", image="i", command=["b"]), "a-0", "0")

"""Google Batch in the sandbox: jobs as resources, and what is refused."""

import uuid
from typing import Any

import pytest

from tests.support.google_batch import (
    JOBS,
    PLACE,
    ask,
    body,
    control,
    create,
    entries,
    listed,
    messages,
    reach,
    said,
    shell,
    shown,
    state,
    subscribed,
    task,
    tasks,
)
from tests.support.google_fake import Fake, P
from tests.support.google_tpus import said as refusal
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_batch"]
NUMBERED = PLACE.replace("accel-sandbox", "210020003000")
SLEEP = shell("sleep 600")


def test_a_job_from_its_creation_to_its_end(batch: Fake) -> None:
    name = create(batch, body(count=3, labels={"team": "a"}, priority=5), "first")
    job = reach(batch, name, "SUCCEEDED")
    assert job["name"] == f"{PLACE}/jobs/first" and job["uid"].startswith("first-") and job["priority"] == "5"
    group = job["taskGroups"][0]
    assert group["name"] == f"{NUMBERED}/jobs/first/taskGroups/group0"
    assert (group["taskCount"], group["parallelism"]) == ("3", "3")
    assert group["taskSpec"]["computeResource"] == {"cpuMilli": "2000", "memoryMib": "2000"}
    assert job["allocationPolicy"]["labels"] == {"batch-job-id": "first"}
    assert said(job) == [
        f"Job state is set from {before} to {after} for job {NUMBERED}/jobs/first."
        for before, after in (("QUEUED", "SCHEDULED"), ("SCHEDULED", "RUNNING"), ("RUNNING", "SUCCEEDED"))
    ]
    status = job["status"]["taskGroups"]["group0"]
    assert status["counts"] == {"SUCCEEDED": "3"}
    assert status["instances"][0]["machineType"] == "e2-standard-2" and status["instances"][0]["taskPack"] == "1"
    assert [row["name"] for row in tasks(batch, name)["tasks"]] == [f"{group['name']}/tasks/{at}" for at in range(3)]
    found = task(batch, name)
    assert found["state"] == "SUCCEEDED" and "taskExecution" not in str(found)
    assert [row["taskState"] for row in found["statusEvents"]] == ["ASSIGNED", "RUNNING", "SUCCEEDED"]
    gone = batch.finished("batch.googleapis.com/v1", batch.call("DELETE", f"{JOBS}/first"))
    assert gone["metadata"]["target"] == f"{PLACE}/jobs/first" and gone["metadata"]["endTime"]
    missing = batch.ask("GET", f"{JOBS}/first")
    assert refusal(missing) == (404, f'Resource "{PLACE}/jobs/first" was not found')


def test_a_request_that_comes_again_makes_one_job(batch: Fake) -> None:
    asked = {"requestId": str(uuid.uuid4())}
    first = ask(batch, body(SLEEP), "once", **asked).json()
    assert ask(batch, body(SLEEP), "once", **asked).json()["uid"] == first["uid"]
    assert refusal(ask(batch, body(), "once", requestId=str(uuid.uuid4())))[0] == 409
    assert refusal(ask(batch, body(), "once"))[0] == 409
    for wrong in ("x", str(uuid.UUID(int=0))):
        assert "request_id field is invalid" in refusal(ask(batch, body(), requestId=wrong))[1]
    batch.fault(method="batch.projects.locations.jobs.create", code=503, after=True)
    lost = {"requestId": str(uuid.uuid4())}
    assert ask(batch, body(SLEEP), "lost", **lost).status_code == 503
    assert ask(batch, body(SLEEP), "lost", **lost).json()["name"].endswith("/lost")
    assert len(listed(batch)) == 2
    batch.fault(method="batch.projects.locations.jobs.*", code=429, count=2)
    assert ask(batch, body()).status_code == 429
    assert batch.ask("GET", JOBS).status_code == 429


def test_lists_have_pages_filters_and_orders(batch: Fake) -> None:
    for name in ("b", "c", "a"):
        create(batch, body(SLEEP, labels={"accel-key": f"k-{name}", "team": "t"}), name)
    names = [row["name"].rpartition("/")[2] for row in listed(batch)]
    assert names == ["a", "b", "c"]
    by_time = [row["name"].rpartition("/")[2] for row in listed(batch, orderBy="create_time desc")]
    assert by_time == ["a", "c", "b"]
    page = batch.call("GET", JOBS, pageSize=2)
    assert len(page["jobs"]) == 2
    assert [row["name"][-1] for row in listed(batch, pageSize=2, pageToken=page["nextPageToken"])] == ["c"]
    (one,) = listed(batch, filter='labels.accel-key="k-b" AND labels.team="t"')
    assert one["name"].endswith("/b")
    assert batch.ask("GET", JOBS, orderBy="priority").status_code == 400
    assert len(batch.call("GET", f"batch.googleapis.com/v1/{P}/locations/-/jobs")["jobs"]) == 3
    reach(batch, "a", "RUNNING")
    assert [row["name"][-1] for row in listed(batch, filter='labels.accel-key="k-a" status.state="RUNNING"')] == ["a"]


def test_cancelling_and_deleting_what_runs(batch: Fake) -> None:
    trap = 'trap "echo stopping; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    name = create(batch, body(shell(trap), count=2, group={"parallelism": 1}))
    job = reach(batch, name, "RUNNING")
    until(lambda: "ready" in [row["textPayload"] for row in entries(batch, job)])
    made = batch.call("POST", f"{JOBS}/{name}:cancel", {})
    assert made["metadata"]["verb"] == "cancel" and made["metadata"]["apiVersion"] == "v1"
    batch.finished("batch.googleapis.com/v1", made)
    job = reach(batch, name, "CANCELLED")
    assert job["status"]["taskGroups"]["group0"]["counts"] == {"FAILED": "1", "UNEXECUTED": "1"}
    assert entries(batch, job)[-1]["textPayload"] == "stopping"
    assert any(each.startswith("Job state is set from RUNNING to CANCELLATION_IN_PROGRESS") for each in said(job))
    assert refusal(batch.ask("POST", f"{JOBS}/{name}:cancel", {}))[0] == 400
    other = create(batch, body(SLEEP))
    reach(batch, other, "RUNNING")
    made = batch.call("DELETE", f"{JOBS}/{other}")
    batch.finished("batch.googleapis.com/v1", made)
    assert batch.ask("GET", f"{JOBS}/{other}").status_code == 404


def test_a_hundred_thousand_tasks_are_one_job(batch: Fake) -> None:
    name = create(batch, body(count=100_000))
    job = reach(batch, name, "RUNNING")
    assert job["taskGroups"][0]["parallelism"] == "5000"
    page = tasks(batch, name, pageSize=3)
    assert len(page["tasks"]) == 3 and page["nextPageToken"] == "3"
    waiting = tasks(batch, name, filter="State=PENDING", pageSize=1)["tasks"]
    assert waiting[0]["status"] == {"state": "PENDING"}
    counts = job["status"]["taskGroups"]["group0"]["counts"]
    assert sum(map(int, counts.values())) == 100_000
    batch.finished("batch.googleapis.com/v1", batch.call("POST", f"{JOBS}/{name}:cancel", {}))
    assert int(shown(batch, name)["status"]["taskGroups"]["group0"]["counts"]["UNEXECUTED"]) > 0


def _group(**more: Any) -> Any:
    return body(group=more)


def _zones(*names: str) -> Any:
    made = body()
    made["allocationPolicy"]["location"] = {"allowedLocations": list(names)}
    return made


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        ({**body(), "taskGroups": []}, "job.task_groups field is invalid. 0 task groups"),
        ({**body(), "taskGroups": body()["taskGroups"] * 2}, "2 task groups are specified"),
        (_group(taskCount=100_001), "task_count field is invalid. 100001 is not between 1 and 100000."),
        (_group(parallelism=5_001), "parallelism field is invalid. 5001 is not between 1 and 5000."),
        (body(priority=100), "job.priority field is invalid. 100 is not between 0 and 99."),
        (body(spec={"maxRetryCount": 11}), "max_retry_count field is invalid. 11 is not"),
        (body(spec={"lifecyclePolicies": [{}, {}]}), "Only one lifecycle policy"),
        (body({"script": {}}), "script field is invalid."),
        (body({"container": {"commands": ["x"]}}), "image_uri field is invalid."),
        (body(labels={"goog-x": "y"}), "reserved prefix"),
        (
            _zones("zones/us-central1-a", "zones/us-east1-b"),
            "job.allocation_policy field is invalid. all specified locations end up in more than one regions"
            " [us-central1 us-east1].",
        ),
        (_zones("zones/us-east1-b"), "specified locations are in us-east1, the job is in us-central1."),
        (_zones("zones/us-central1-z"), "'zones/us-central1-z' does not exist."),
        (body(logsPolicy={"destination": "PATH"}), "logs_path field is invalid."),
        (body(shell("x" * 1_100_000)), "Request payload size exceeds the limit: 1048576 bytes."),
        ({**body(), "colour": "red"}, 'Unknown name "colour"'),
        (body(logsPolicy={"destination": "PAPER"}), "TYPE_ENUM"),
    ],
)  # fmt: skip
def test_what_is_refused(batch: Fake, job: Any, wanted: str) -> None:
    code, text = refusal(ask(batch, job))
    assert code == 400 and wanted in text


def test_names_and_places_that_are_refused(batch: Fake) -> None:
    for wrong in ("Upper", "a_b", "a-", "x" * 64):
        assert "job_id field is invalid" in refusal(ask(batch, body(), wrong))[1]
    elsewhere = batch.ask("POST", f"batch.googleapis.com/v1/{P}/locations/mars/jobs", body(), jobId="a")
    assert elsewhere.status_code == 403
    nobody = {"email": "nobody@accel-sandbox.iam.gserviceaccount.com"}
    job = body()
    job["allocationPolicy"]["serviceAccount"] = nobody
    assert "does not have access to act as" in refusal(ask(batch, job))[1]
    assert "us-central1" in str(batch.call("GET", f"batch.googleapis.com/v1/{P}/locations"))


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"machineType": "n1-standard-8", "accelerators": [{"type": "nvidia-tesla-t9", "count": 1}]},
         "acceleratorTypes/nvidia-tesla-t9' was not found"),
        ({"machineType": "n1-imaginary-8"}, "does not exist in zone"),
        ({"machineType": "g2-standard-8", "accelerators": [{"type": "nvidia-l4", "count": 4}]}, "are not compatible"),
    ],
)  # fmt: skip
def test_machines_that_are_nowhere_fail_when_the_job_is_scheduled(batch: Fake, policy: Any, wanted: str) -> None:
    name = create(batch, body(policy=policy))
    job = reach(batch, name, "FAILED")
    assert wanted in said(job, "OPERATIONAL_INFO")[0] and "CODE_GCE_INVALID_FIELD_VALUE" in said(job)[1]
    assert "taskGroups" not in job["status"]
    assert batch.ask("GET", f"{JOBS}/{name}/taskGroups/group0/tasks/0").status_code == 404


def test_a_task_that_fits_on_no_vm_waits(batch: Fake) -> None:
    gpu = {"machineType": "n1-standard-8", "accelerators": [{"type": "nvidia-tesla-t4", "count": 1}]}
    big = {"computeResource": {"cpuMilli": 8000, "memoryMib": 32768}}
    waits, runs = create(batch, body(policy=gpu, spec=big)), create(batch, body(policy=gpu))
    reach(batch, runs, "SUCCEEDED")
    assert state(batch, waits) == "SCHEDULED"


def test_stock_and_quota_that_come_later(batch: Fake) -> None:
    kind = {"machineType": "g2-standard-4"}
    batch.fault(stockout=["g2-standard-4"])
    name = create(batch, body(policy=kind))
    (why,) = until(lambda: said(shown(batch, name), "OPERATIONAL_INFO"))
    assert "CODE_GCE_ZONE_RESOURCE_POOL_EXHAUSTED" in why and "does not have enough resources available" in why
    assert state(batch, name) == "SCHEDULED"
    batch.fault(stockout=[])
    reach(batch, name, "SUCCEEDED")
    batch.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 1})
    several = create(batch, body(SLEEP, count=3, policy=kind, group={"taskCountPerNode": 1}))
    (why,) = until(lambda: said(shown(batch, several), "OPERATIONAL_INFO"))
    assert "CODE_GCE_QUOTA_EXCEEDED" in why and "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region" in why
    counts = reach(batch, several, "RUNNING")["status"]["taskGroups"]["group0"]["counts"]
    assert counts == {"PENDING": "2", "RUNNING": "1"}
    batch.fault(quota={"compute/us-central1/NVIDIA_L4_GPUS": 0})
    none = create(batch, body(policy=kind))
    until(lambda: said(shown(batch, none), "OPERATIONAL_INFO"))
    assert state(batch, none) == "SCHEDULED"


def test_a_bucket_that_is_not_there_cannot_be_mounted(batch: Fake) -> None:
    storage = "storage.googleapis.com/storage/v1/b"
    if not batch.ask("GET", f"{storage}/batch-data").ok:
        batch.call("POST", storage, {"name": "batch-data"}, project="accel-sandbox")
    volumes = {
        name: [{"gcs": {"remotePath": f"{name}/a"}, "mountPath": "/mnt/a"}] for name in ("batch-data", "no-data")
    }
    reach(batch, create(batch, body(spec={"volumes": volumes["batch-data"]})), "SUCCEEDED")
    for runnables in ((), (shell("echo never"),)):
        job = reach(batch, create(batch, body(*runnables, spec={"volumes": volumes["no-data"]})), "FAILED")
        assert said(job)[-1].endswith('with exit code 50000."') and entries(batch, job) == []
        (row,) = entries(batch, job, "batch_agent_logs")
        assert row["severity"] == "ERROR" and "gs://no-data" in row["textPayload"]


def test_what_comes_late(batch: Fake) -> None:
    control(batch, task_lag_s=600)
    batch.fault(list_lag_s=600)
    name = create(batch, body())
    job = reach(batch, name, "SUCCEEDED")
    assert listed(batch) == [] and job["status"]["taskGroups"]["group0"]["counts"] == {"SUCCEEDED": "1"}
    late = batch.ask("GET", f"{JOBS}/{name}/taskGroups/group0/tasks/0")
    assert refusal(late) == (404, f'Resource "{NUMBERED}/jobs/{name}/taskGroups/group0/tasks/0" was not found')
    batch.well()
    assert len(listed(batch)) == 1 and task(batch, name)["state"] == "SUCCEEDED"
    control(batch, state_lag_s=600)
    stale = create(batch, body())
    assert state(batch, stale) == "QUEUED"
    batch.fault(method="batch.projects.locations.jobs.create", fails="it was not to be")
    failing = create(batch, body())
    until(lambda: len(listed(batch)) == 3)
    batch.well()
    reach(batch, stale, "SUCCEEDED")
    assert "it was not to be" in said(reach(batch, failing, "FAILED"))[1]
    control(batch, agent=False)
    silent = reach(batch, create(batch, body()), "FAILED")
    assert "No VM has agent reporting correctly within time window" in said(silent, "OPERATIONAL_INFO")[0]


def test_notifications(batch: Fake) -> None:
    topic = subscribed(batch, "all-states")
    ended = subscribed(batch, "failed-tasks")
    told = [
        {"pubsubTopic": topic, "message": {"type": "JOB_STATE_CHANGED"}},
        {"pubsubTopic": ended, "message": {"type": "TASK_STATE_CHANGED", "newTaskState": "FAILED"}},
    ]
    name = create(batch, body(shell("exit 3"), notifications=told))
    job = reach(batch, name, "FAILED")
    rows = messages(batch, "all-states")
    assert [row["NewJobState"] for row, _ in rows] == ["SCHEDULED", "RUNNING", "FAILED"]
    assert rows[0][0] | {"Type": "JOB_STATE_CHANGED", "JobName": job["name"], "JobUID": job["uid"]} == rows[0][0]
    ((row, text),) = messages(batch, "failed-tasks")
    assert row["NewTaskState"] == "FAILED" and row["TaskName"].endswith("/tasks/0") and "exit code 3" in text
    assert messages(batch, "all-states") == []

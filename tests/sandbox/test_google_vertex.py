"""Vertex AI of the sandbox's Google: what it refuses, and the states of custom jobs."""

import time
from typing import Any

import pytest

from tests.support.google_fake import Fake, P
from tests.support.google_vertex import API, JOBS, N1, get, job, key, listed, logs, pool, preempt, reach, slow
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vertex"]
T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
L4 = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
H100 = {"acceleratorType": "NVIDIA_H100_80GB", "acceleratorCount": 2, "machineType": "a3-highgpu-2g"}
MACHINE, SPEC = "job_spec.worker_pool_specs[0].machine_spec", "job_spec"


def machine(**spec: Any) -> dict[str, Any]:
    return job(pool(machineSpec=spec))


def scheduled(*machines: Any, **scheduling: Any) -> dict[str, Any]:
    return job(*[pool(machineSpec=each) for each in machines or [N1]], scheduling=scheduling)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({**job(), "displayName": ""}, "display_name", "Required field is not set."),
    ({**job(), "displayName": "x" * 129}, "display_name", "128"),
    (job(labels={"Owner": "x"}), "labels", "Label keys must start with a letter or number"),
    (job(labels={str(n): "x" for n in range(65)}), "labels", "no more than 64 labels"),
    ({"displayName": "x", "jobSpec": {"workerPoolSpecs": []}}, f"{SPEC}.worker_pool_specs", "Required"),
    (job(*[pool()] * 5), f"{SPEC}.worker_pool_specs", "At most 4"),
    (job(pool(replicas=2)), f"{SPEC}.worker_pool_specs[0].replica_count", "must be 1"),
    (job(pool(), pool(replicas=0)), f"{SPEC}.worker_pool_specs[1].replica_count", "Required"),
    (job({**pool(), "machineSpec": {}}), f"{MACHINE}.machine_type", "Required field is not set."),
    (machine(machineType="n1-standard-2"), f"{MACHINE}.machine_type", '"n1-standard-2" is not supported.'),
    (machine(**N1, acceleratorType="NVIDIA_TESLA_T4"), f"{MACHINE}.accelerator_type",
     "Both `accelerator_type` and `accelerator_count` should be specified or none. "),
    (machine(**N1, acceleratorType="NVIDIA_TESLA_K80", acceleratorCount=1), f"{MACHINE}.accelerator_type",
     'Accelerator "NVIDIA_TESLA_K80" is not supported for machine type "n1-standard-4".'),
    (machine(**{**N1, **T4, "acceleratorCount": 3}), f"{MACHINE}.accelerator_count", "not one of 1, 2, 4"),
    (machine(machineType="n1-standard-32", **T4), f"{MACHINE}.accelerator_count", "not one of 2, 4"),
    (machine(machineType="a2-highgpu-4g"), f"{MACHINE}.accelerator_type", "must be used with accelerators"),
    (machine(machineType="cloud-tpu", acceleratorType="TPU_V4_POD", acceleratorCount=8),
     f"{MACHINE}.accelerator_type", "TPU_V4_POD"),
    (machine(machineType="ct5lp-hightpu-4t", tpuTopology="3x3"), f"{MACHINE}.tpu_topology", "2x2, 2x4"),
    (job(pool(diskSpec={"bootDiskType": "pd-balanced"})), ".boot_disk_type", "pd-standard, pd-ssd"),
    (job(pool(diskSpec={"bootDiskSizeGb": 99})), ".boot_disk_size_gb", "between 100 and 64000"),
    (job({**pool(), "containerSpec": {}}), ".container_spec.image_uri", "Required"),
    (job(pool(containerSpec={"imageUri": "x", "env": [{"name": "A", "value": ""}]})), "env[0].value", "Required"),
    (job(pool(containerSpec={"imageUri": "x", "env": [{"name": "1A", "value": "x"}]})), "env[0].name", "C identifier"),
    (job(pool(nfsMounts=[{"server": "10.0.0.1", "path": "/x"}])), ".nfs_mounts[0].mount_point", "Required"),
    (scheduled(H100), f"{SPEC}.scheduling.strategy", "a3-highgpu-2g is available with the strategies SPOT and FLEX"),
    (scheduled({**N1, **T4}, strategy="FLEX_START"), f"{SPEC}.scheduling.strategy", "FLEX_START is for machines"),
    (scheduled(L4, {**L4, "machineType": "g2-standard-8"}, strategy="FLEX_START"), ".strategy", "same machine"),
    (scheduled(L4, strategy="FLEX_START", timeout="604801s"), ".timeout", "7 days"),
    (job(pool(machineSpec={"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}), pool()),
     f"{SPEC}.worker_pool_specs", "single worker pool"),
    (job(network=f"{P}/global/networks/default"), f"{SPEC}.network", "projects/{project_number}/global"),
    (job(tensorboard="board"), f"{SPEC}.tensorboard", "is not of the form"),
    (job(serviceAccount="no@accel-sandbox.iam.gserviceaccount.com"), f"{SPEC}.service_account", "does not exist"),
    (job(baseOutputDirectory={"outputUriPrefix": "s3://x"}), ".output_uri_prefix", "gs://"),
    (job(persistentResourceId="none"), f"{SPEC}.persistent_resource_id", "no PersistentResource none"),
]  # fmt: skip


@pytest.mark.parametrize("body, field, text", REFUSED, ids=[f"{n}-{row[1]}" for n, row in enumerate(REFUSED)])
def test_jobs_that_are_refused(vertex: Fake, body: dict[str, Any], field: str, text: str) -> None:
    vertex.fault(minute_s=0.01)
    answer = vertex.ask("POST", JOBS, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT"), answer.text
    assert error["message"].startswith("List of found errors:\t1.Field: ") and error["message"].endswith("\t")
    (violation, *_) = error["details"][0]["fieldViolations"]
    assert violation["field"].endswith(field) and text in violation["description"], error["message"]
    assert listed(vertex) == []


def test_all_faults_are_told_at_once(vertex: Fake) -> None:
    body = {**machine(machineType="x"), "displayName": ""}
    said = vertex.ask("POST", JOBS, body).json()["error"]["message"]
    assert "\t1.Field: display_name; " in said and f"\t2.Field: {MACHINE}.machine_type; " in said


def test_bodies_that_do_not_parse(vertex: Fake) -> None:
    both = {**pool(), "pythonPackageSpec": {"pythonModule": "x"}}
    assert "oneof field 'task' is already set" in vertex.ask("POST", JOBS, job(both)).text
    said = vertex.ask("POST", JOBS, job(scheduling={"timeout": "1h"})).text
    assert "google.protobuf.Duration" in said
    assert "Cannot find field" in vertex.ask("POST", JOBS, job(queue="x")).text
    elsewhere = vertex.ask("POST", JOBS.replace("us-central1", "mars-north1"), job())
    assert elsewhere.status_code == 403 and "locations/mars-north1" in elsewhere.text


def test_machines_that_are_taken(vertex: Fake) -> None:
    for spec in (
        {**N1, **T4},
        L4,
        {"machineType": "a2-megagpu-16g", "acceleratorType": "NVIDIA_TESLA_A100", "acceleratorCount": 16},
        {"machineType": "cloud-tpu", "acceleratorType": "TPU_V3", "acceleratorCount": 32},
        {"machineType": "ct6e-standard-4t", "tpuTopology": "4x4"},
    ):
        slow(vertex, "POST", JOBS, machine(**spec))
    slow(vertex, "POST", JOBS, scheduled(H100, strategy="SPOT"))
    slow(vertex, "POST", JOBS, scheduled(H100, strategy="FLEX_START", maxWaitDuration="60s"))


def test_buckets_are_in_the_region_of_the_job(vertex: Fake) -> None:
    def ask(bucket: str) -> Any:
        return vertex.ask("POST", JOBS, job(baseOutputDirectory={"outputUriPrefix": f"gs://{bucket}/out"}))

    for name, where in (("vertex-us", "US"), ("vertex-region", "us-central1")):
        body = {"name": name, "location": where}
        vertex.call("POST", "storage.googleapis.com/storage/v1/b", body, project="accel-sandbox")
    refused = ask("vertex-us").json()["error"]
    assert refused["status"] == "FAILED_PRECONDITION" and "is in location `us`. It must be in the same" in str(refused)
    assert "does not exist" in ask("vertex-none").json()["error"]["message"]
    assert ask("vertex-region").ok


def test_a_job_from_its_creation_to_its_end(vertex: Fake) -> None:
    made = slow(vertex, "POST", JOBS, job(labels={"accel-key": "a"}, enableWebAccess=True))
    assert made["state"] == "JOB_STATE_QUEUED" and "startTime" not in made
    assert made["name"].startswith("projects/210020003000/locations/us-central1/customJobs/4")
    spec = made["jobSpec"]["workerPoolSpecs"][0]
    assert spec["replicaCount"] == "1" and spec["diskSpec"] == {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 100}
    ended = reach(vertex, made, "SUCCEEDED")
    assert made["createTime"] < ended["startTime"] < ended["endTime"] == ended["updateTime"]
    assert "error" not in ended and set(ended["webAccessUris"]) == {"workerpool0-0"}
    said = [each["textPayload"] for each in logs(vertex, made, "service")]
    assert said[0] == "Waiting for job to be provisioned." and said[-1] == "Job completed successfully."
    deleted = slow(vertex, "DELETE", f"{API}/{made['name']}")
    until(lambda: vertex.call("GET", f"{API}/{deleted['name']}")["done"])
    gone = vertex.ask("GET", f"{API}/{made['name']}")
    assert gone.status_code == 404 and f"`{key(made)}` does not exist" in gone.text


def test_the_same_request_again_is_another_job(vertex: Fake) -> None:
    one, two = (slow(vertex, "POST", JOBS, job()) for _ in range(2))
    assert one["name"] != two["name"]


def test_a_region_has_a_host_of_its_own(vertex: Fake) -> None:
    made = slow(vertex, "POST", f"us-central1-{JOBS}", job())
    assert vertex.call("GET", f"us-central1-{API}/{made['name']}")["name"] == made["name"]


def test_cancelling(vertex: Fake) -> None:
    vertex.fault(method="aiplatform.*.customJobs.create", delay_s=60)
    made = slow(vertex, "POST", JOBS, job())
    refused = vertex.ask("DELETE", f"{API}/{made['name']}")
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert vertex.call("POST", f"{API}/{made['name']}:cancel", {}) == {}
    ended = reach(vertex, made, "CANCELLED")
    assert ended["error"]["code"] == 1 and "startTime" not in ended and ended["endTime"]
    assert vertex.call("POST", f"{API}/{made['name']}:cancel", {}) == {} and get(vertex, made) == ended


def test_a_planned_failure(vertex: Fake) -> None:
    vertex.fault(method="aiplatform.*.customJobs.create", fails="Internal error occurred for the current attempt")
    ended = reach(vertex, slow(vertex, "POST", JOBS, job()), "FAILED")
    assert ended["error"] == {"code": 13, "message": "Internal error occurred for the current attempt"}


def test_a_call_that_is_answered_with_an_error_was_carried_out(vertex: Fake) -> None:
    vertex.fault(method="aiplatform.*.customJobs.create", code=503, after=True)
    assert vertex.ask("POST", JOBS, job(name="lost")).status_code == 503
    assert [item["displayName"] for item in listed(vertex)] == ["lost"]


@pytest.mark.parametrize("out", ["n1-standard-4", "us-central1/n1-standard-4", "us-central1-a/n1-standard-4"])
def test_no_machines_in_the_region(vertex: Fake, out: str) -> None:
    vertex.fault(stockout=[out])
    ended = reach(vertex, slow(vertex, "POST", JOBS, job()), "FAILED")
    said = "Resources are insufficient in region: us-central1. Try a different region or use a different accelerator."
    assert ended["error"] == {"code": 8, "message": said}
    assert logs(vertex, ended, "service")[-2]["textPayload"] == said


def test_flex_start_waits_for_machines(vertex: Fake) -> None:
    vertex.fault(stockout=["g2-standard-4"])
    patient = slow(vertex, "POST", JOBS, scheduled(L4, strategy="FLEX_START", maxWaitDuration="0s"))
    hasty = slow(vertex, "POST", JOBS, scheduled(L4, strategy="FLEX_START", maxWaitDuration="0.2s"))
    assert reach(vertex, hasty, "FAILED")["error"]["code"] == 8
    assert get(vertex, patient)["state"] == "JOB_STATE_PENDING"
    vertex.fault(stockout=[])
    reach(vertex, patient, "SUCCEEDED")


def test_quotas_refuse_or_queue(vertex: Fake) -> None:
    metric = "custom_model_training_nvidia_l4_gpus"
    vertex.fault(quota={f"aiplatform/us-central1/{metric}": 2})
    refused = vertex.ask("POST", JOBS, job(pool(machineSpec=L4), pool(machineSpec=L4, replicas=2)))
    said = f"The following quota metrics exceed quota limits: aiplatform.googleapis.com/{metric}"
    error = refused.json()["error"]
    assert (refused.status_code, error["status"], error["message"]) == (429, "RESOURCE_EXHAUSTED", said)
    long = "import time; time.sleep(60)"
    spec = {"machineSpec": L4, "containerSpec": {"imageUri": "local/examples", "command": ["python", "-c", long]}}
    first = slow(vertex, "POST", JOBS, job(pool(**spec), pool(**spec)))
    reach(vertex, first, "RUNNING")
    second = slow(vertex, "POST", JOBS, job(pool(machineSpec=L4)))
    spot = slow(vertex, "POST", JOBS, scheduled(L4, strategy="SPOT"))
    reach(vertex, spot, "SUCCEEDED")
    assert get(vertex, second)["state"] == "JOB_STATE_QUEUED"
    vertex.call("POST", f"{API}/{first['name']}:cancel", {})
    reach(vertex, second, "SUCCEEDED")


def test_sixty_submissions_a_minute_and_region(vertex: Fake) -> None:
    quiet, other = (JOBS.replace("us-central1", region) for region in ("us-east4", "europe-west4"))
    vertex.fault(minute_s=60)
    answers = [vertex.ask("POST", quiet, {}) for _ in range(61)]
    assert [each.status_code for each in answers[:60]] == [400] * 60
    error = answers[60].json()["error"]
    assert error["message"] == (
        "Quota exceeded for quota metric 'Job or LRO submission requests' and limit 'Job or LRO submission requests per"
        " minute per region' of service 'aiplatform.googleapis.com' for consumer 'project_number:210020003000'."
    )
    assert error["status"] == "RESOURCE_EXHAUSTED" and error["details"][0]["reason"] == "RATE_LIMIT_EXCEEDED"
    assert vertex.ask("POST", other, {}).status_code == 400
    vertex.fault(minute_s=0.05)
    until(lambda: vertex.ask("POST", quiet, {}).status_code == 400)


FILTERS = {
    'displayName="one"': ["one"],
    'display_name="one" AND labels.team="a"': ["one"],
    'display_name:"t*"': ["two", "three"],
    'display_name!="one"': ["two", "three"],
    'NOT display_name="one" AND labels.team="b"': ["three"],
    'labels.team="a" OR labels.team="b"': ["one", "two", "three"],
    "labels.team:*": ["one", "two", "three"],
    "labels.none:*": [],
    'labels.accel-key="k1"': ["one"],
    'state="JOB_STATE_SUCCEEDED" AND (display_name="two" OR display_name="three")': ["two", "three"],
    'state!="JOB_STATE_SUCCEEDED"': [],
    'create_time>"2020-01-01T00:00:00Z"': ["one", "two", "three"],
    'create_time<"2020-01-01T00:00:00Z"': [],
}


def test_lists_are_filtered_and_come_in_pages(vertex: Fake) -> None:
    for name, labels in (("one", {"team": "a", "accel-key": "k1"}), ("two", {"team": "a"}), ("three", {"team": "b"})):
        reach(vertex, slow(vertex, "POST", JOBS, job(name=name, labels=labels)), "SUCCEEDED")
    for text, names in FILTERS.items():
        found = vertex.call("GET", JOBS, filter=text).get("customJobs", [])
        assert [each["displayName"] for each in found] == names[::-1], text
    for text in ("name=x", 'state>"x"', '(state="x"', "labels=x", "one two"):
        assert vertex.ask("GET", JOBS, filter=text).status_code == 400, text
    first = vertex.call("GET", JOBS, pageSize=2, readMask="name,state")
    assert [set(each) for each in first["customJobs"]] == [{"name", "state"}] * 2
    second = vertex.call("GET", JOBS, pageSize=2, pageToken=first["nextPageToken"])
    assert [each["displayName"] for each in second["customJobs"]] == ["one"] and "nextPageToken" not in second


def test_lists_are_late_when_they_are_told_to_be(vertex: Fake) -> None:
    vertex.fault(list_lag_s=1)
    began = time.monotonic()
    made = slow(vertex, "POST", JOBS, job())
    assert get(vertex, made)["displayName"] == "one"
    if time.monotonic() < began + 1:
        assert listed(vertex) == [] or time.monotonic() >= began + 1
    until(lambda: listed(vertex))
    reach(vertex, made, "SUCCEEDED")
    until(lambda: listed(vertex)[0]["state"] == "JOB_STATE_SUCCEEDED")


def test_what_is_not_there_cannot_be_preempted(vertex: Fake) -> None:
    made = slow(vertex, "POST", JOBS, job())
    assert preempt(vertex, f"{P}/locations/us-central1/customJobs/1").status_code == 404
    reach(vertex, made, "SUCCEEDED")
    assert preempt(vertex, key(made)).status_code == 404

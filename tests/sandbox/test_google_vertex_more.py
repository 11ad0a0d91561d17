"""Vertex AI of the sandbox's Google: tuning jobs, persistent resources, Tensorboards, many jobs."""

import json
from typing import Any

import pytest

from tests.support.google_fake import Fake, P
from tests.support.google_vertex import API, JOBS, N1, REGION, get, job, listed, local, pool, printed, reach, slow
from tests.support.soak import soak_only
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_vertex"]
TUNING = f"{API}/{REGION}/hyperparameterTuningJobs"
KEPT = f"{API}/{REGION}/persistentResources"
BOARDS = f"{API}/{REGION}/tensorboards"
RATE = {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 0.2}}
LAYERS = {"parameterId": "layers", "integerValueSpec": {"minValue": "1", "maxValue": "2"}}
KIND = {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}}


def tuning(code: str, *parameters: Any, trials: int = 4, parallel: int = 2, **more: Any) -> dict[str, Any]:
    study = {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}], "parameters": list(parameters)}
    spec = {"workerPoolSpecs": [local(code)]}
    return {"displayName": "tune", "studySpec": {**study, **more}, "maxTrialCount": trials,
            "parallelTrialCount": parallel, "trialJobSpec": spec}  # fmt: skip


def test_trials_have_their_values_as_arguments(vertex: Fake) -> None:
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], json.loads(os.environ['CLUSTER_SPEC'])['task']]))"
    made = slow(vertex, "POST", TUNING, tuning(code, LAYERS, KIND, algorithm="GRID_SEARCH", trials=9))
    seen = 0

    def ended() -> bool:
        nonlocal seen
        found = get(vertex, made)
        seen = max(seen, sum(trial["state"] == "ACTIVE" for trial in found["trials"]))
        return found["state"] == "JOB_STATE_SUCCEEDED"

    until(ended)
    found = get(vertex, made)
    assert seen == 2 and [trial["id"] for trial in found["trials"]] == ["1", "2", "3", "4"], "the grid has no more"
    assert {trial["state"] for trial in found["trials"]} == {"SUCCEEDED"}
    second = found["trials"][1]
    values = [{"parameterId": "layers", "value": 1}, {"parameterId": "kind", "value": "b"}]
    assert second["parameters"] == values
    arguments, task = json.loads(printed(vertex, {"name": second["customJob"]})[0])
    assert arguments == ["--layers=1", "--kind=b"] and task["trial"] == "2"
    assert get(vertex, {"name": second["customJob"]})["displayName"] == "tune-2"


def test_trials_that_fail(vertex: Fake) -> None:
    made = slow(vertex, "POST", TUNING, tuning("raise SystemExit(1)", RATE, trials=2))
    found = reach(vertex, made, "FAILED")
    assert [trial["state"] for trial in found["trials"]] == ["INFEASIBLE"] * 2
    assert "non-zero status of 1" in found["trials"][0]["infeasibleReason"] and found["error"]["code"] == 3


def test_a_tuning_job_is_cancelled(vertex: Fake) -> None:
    made = slow(vertex, "POST", TUNING, tuning("import time; time.sleep(600)", RATE))
    until(lambda: any(trial["state"] == "ACTIVE" for trial in get(vertex, made)["trials"]))
    vertex.call("POST", f"{API}/{made['name']}:cancel", {})
    assert reach(vertex, made, "CANCELLED")["error"]["code"] == 1
    assert {item["state"] for item in listed(vertex)} == {"JOB_STATE_CANCELLED"}


@pytest.mark.parametrize(
    "change, field",
    [
        ({"maxTrialCount": 0}, "max_trial_count"),
        ({"parallelTrialCount": None}, "parallel_trial_count"),
        ({"studySpec": {"metrics": [{}]}}, "study_spec.parameters"),
        ({"trialJobSpec": {}}, "trial_job_spec.worker_pool_specs"),
    ],
)
def test_tuning_jobs_that_are_refused(vertex: Fake, change: Any, field: str) -> None:
    answer = vertex.ask("POST", TUNING, {**tuning("", RATE), **change})
    assert answer.status_code == 400 and f"Field: {field};" in answer.text


def test_a_persistent_resource_takes_jobs(vertex: Fake) -> None:
    body = {"resourcePools": [{"machineSpec": N1, "replicaCount": 1}], "labels": {"team": "a"}}
    vertex.fault(method="*", delay_s=4)
    operation = slow(vertex, "POST", KEPT, body, persistentResourceId="kept")
    assert vertex.call("GET", f"{KEPT}/kept")["state"] == "PROVISIONING"
    early = vertex.ask("POST", JOBS, job(persistentResourceId="kept"))
    assert early.status_code == 400 and "no PersistentResource kept that is RUNNING" in early.text
    made = vertex.finished(API, operation)["response"]
    assert made["state"] == "RUNNING" and made["startTime"] and made["resourcePools"][0]["replicaCount"] == "1"
    assert made["name"] == "projects/210020003000/locations/us-central1/persistentResources/kept"
    again = vertex.ask("POST", KEPT, body, persistentResourceId="kept")
    assert again.status_code == 409 and "already exists" in again.text
    other = vertex.ask(
        "POST", JOBS, job(pool(machineSpec={"machineType": "e2-standard-4"}), persistentResourceId="kept")
    )
    assert "has no machines e2-standard-4" in other.text
    reach(vertex, slow(vertex, "POST", JOBS, job(persistentResourceId="kept")), "SUCCEEDED")
    vertex.finished(API, vertex.call("PATCH", f"{KEPT}/kept", {"labels": {"team": "b"}}, updateMask="labels"))
    assert vertex.call("GET", KEPT)["persistentResources"][0]["labels"] == {"team": "b"}
    vertex.finished(API, vertex.call("DELETE", f"{KEPT}/kept"))
    assert vertex.ask("GET", f"{KEPT}/kept").status_code == 404


def test_a_persistent_resource_without_machines(vertex: Fake) -> None:
    vertex.fault(stockout=["n1-standard-4"])
    failed = vertex.finished(
        API, slow(vertex, "POST", KEPT, {"resourcePools": [{"machineSpec": N1}]}, persistentResourceId="b")
    )
    assert failed["error"]["code"] == 8 and vertex.call("GET", f"{KEPT}/b")["state"] == "ERROR"
    vertex.finished(API, vertex.call("DELETE", f"{KEPT}/b"))
    refused = vertex.ask("POST", KEPT, {"labels": {"A": "x"}}, persistentResourceId="Big")
    said = refused.json()["error"]["message"]
    assert "1.Field: persistent_resource_id; Message: persistent_resource_id can only contain numbers" in said
    assert "2.Field: persistent_resource.labels; " in said and "3.Field: persistent_resource.resource_pools; " in said


def test_tensorboards(vertex: Fake) -> None:
    made = vertex.finished(API, vertex.call("POST", BOARDS, {"displayName": "board"}))["response"]
    assert vertex.call("GET", f"{API}/{made['name']}")["displayName"] == "board"
    account = {"accountId": "vertex-boards"}
    email = vertex.call("POST", f"iam.googleapis.com/v1/{P}/serviceAccounts", account)["email"]
    assert "service account is required" in vertex.ask("POST", JOBS, job(tensorboard=made["name"])).text
    slow(vertex, "POST", JOBS, job(tensorboard=made["name"], serviceAccount=email))
    vertex.finished(API, vertex.call("DELETE", f"{API}/{made['name']}"))
    gone = vertex.ask("POST", JOBS, job(tensorboard=made["name"], serviceAccount=email))
    assert gone.status_code == 400 and "does not exist" in gone.text


@soak_only
def test_many_jobs(vertex: Fake) -> None:
    """As many as a sweep has, at a rate that is a thousandth of a minute's."""
    vertex.fault(minute_s=0.001)
    names = [f"many-{number}" for number in range(300)]
    for name in names:
        slow(vertex, "POST", JOBS, job(name=name, labels={"sweep": "m"}))
    seen: list[str] = []
    token = ""
    while True:
        page = vertex.call("GET", JOBS, filter="labels.sweep=m", pageToken=token)
        seen += [item["displayName"] for item in page["customJobs"]]
        if not (token := page.get("nextPageToken", "")):
            break
    assert seen == names[::-1]

"""The levers of a Google budget against the sandbox's Google: what they change, and what takes it back."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pulumi
import pytest
import requests

from accel.budget import acting
from accel.budget.levers import Change, LeverError, drill
from accel.budget.spending import Limit, Reading
from accel.budget.state import State, StateConflict
from accel.clouds.google.rest import GIVEN
from components.gcp.budget_function.cloud import Cloud
from components.gcp.budget_function.handler import reading
from components.gcp.budget_function.levers import Pools, Queues, Records, Regional, TpuRequests, levers
from components.gcp.budget_function.notices import next_notices
from components.gcp.budget_function.plan import STOP, Plan, PlannedBudget, PlannedCluster, of_json, to_json
from components.gcp.budget_function.store import BucketStore
from components.gcp.stop_hooks import reason
from tests.sandbox.test_google_container import CLUSTERS, cluster, network, pool
from tests.support.google_fake import Fake, P
from tests.support.google_tpus import TPU, ZONE, queued, reach, request, state
from tests.support.serving import OneAnswer
from tests.support.waiting import until

pytest_plugins = ["tests.support.google_fake", "tests.support.google_tpus"]
__all__ = ["network"]
PATH = f"{P}/locations/us-central1-a/clusters/ml"
POOL = f"{CLUSTERS}/ml/nodePools"
LIMIT = Limit("ml", 1.0, "actual", None)
OVER = Reading("ml", "2026-11-01", 1000, "USD", 1000)


@pytest.fixture
def cloud(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    for api in ("container", "tpu", "batch", "aiplatform"):
        monkeypatch.setenv(f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api.upper()}", f"{fake.url}/{api}.googleapis.com/")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE", f"{fake.url}/compute.googleapis.com/compute/v1/")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", f"{fake.url}/storage.googleapis.com/storage/v1/")
    monkeypatch.setenv("GCE_METADATA_HOST", fake.url.partition("://")[2])
    return Cloud()


@pytest.fixture
def bucket(fake: Fake) -> Iterator[str]:
    buckets = "storage.googleapis.com/storage/v1/b"
    fake.call("POST", buckets, {"name": "stop"}, project="accel-sandbox")
    yield "stop"
    for item in fake.call("GET", f"{buckets}/stop/o").get("items", []):
        fake.ask("DELETE", f"{buckets}/stop/o/{item['name'].replace('/', '%2F')}")
    fake.ask("DELETE", f"{buckets}/stop")


def planned(**pools: str) -> list[PlannedCluster]:
    return [PlannedCluster(PATH, "192.0.2.1", "", pools, [])]


def autoscaling(fake: Fake, name: str = "gpus") -> Any:
    return fake.call("GET", f"{POOL}/{name}").get("autoscaling", {})


def test_a_clusters_api_server_learns_the_functions_email(cloud: Cloud, fake: Fake) -> None:
    """RBAC allows it by that; a token without the scope has a number in its place."""
    assert cloud.token == fake.token
    told = f"{fake.url}/computeMetadata/v1/instance/service-accounts/default/token"
    bare = requests.get(told, headers={"Metadata-Flavor": "Google"}, timeout=120).json()["access_token"]
    assert bare != fake.token


def test_pools_come_to_nothing_and_back(network: Fake, cloud: Cloud, bucket: str) -> None:
    before = {"enabled": True, "totalMaxNodeCount": 4, "locationPolicy": "ANY"}
    network.done("POST", CLUSTERS, cluster())
    network.done("POST", POOL, pool(autoscaling=before, initialNodeCount=0))
    network.done("POST", POOL, pool("busy", autoscaling={"enabled": True, "maxNodeCount": 3}, initialNodeCount=2))
    lever, store = Pools(cloud, planned(gpus="gpus", busy="busy")), BucketStore(cloud, bucket)
    assert [change.text.partition(":")[0] for change in lever.plan()] == ["node pool gpus", "node pool busy"]

    rehearsed = drill([lever], running=True)
    outcome = acting.look([LIMIT], [OVER], [lever], store, 1000)
    assert list(outcome.state.changes) == rehearsed and outcome.failures == ()
    assert not autoscaling(network).get("enabled")
    # GKE has no maximum of 0: what has nodes keeps them, and takes no more.
    assert autoscaling(network, "busy") == {"enabled": True, "minNodeCount": 0, "maxNodeCount": 1}
    assert lever.kind not in outcome.state.finished, "it is looked at again"
    assert acting.look([LIMIT], [OVER], [lever], store, 1500).done == (), "nothing is done twice"
    network.done("POST", f"{POOL}/busy:setSize", {"nodeCount": 0})
    outcome = acting.look([LIMIT], [OVER], [lever], store, 2000)
    assert lever.kind in outcome.state.finished and not autoscaling(network, "busy").get("enabled")
    kept = outcome.state
    assert {change.name.rpartition("/")[2]: change.before for change in kept.changes if change.kind == lever.kind} == {
        "gpus": before,
        "busy": {"enabled": True, "maxNodeCount": 3},
    }
    assert acting.look([LIMIT], [OVER], [lever], store, 3000).done == (), "nothing is done twice"

    # As a function leaves it that was killed before it had switched the pool off.
    narrow = {"enabled": True, "minNodeCount": 0, "maxNodeCount": 1}
    network.done("POST", f"{POOL}/busy:setAutoscaling", {"autoscaling": narrow})
    done = acting.resume([lever], store, 4000)
    assert done.failures == () and done.state.stopped is None
    assert autoscaling(network) == before and autoscaling(network, "busy") == {"enabled": True, "maxNodeCount": 3}
    # What somebody has changed since is left to them.
    (change, other) = lever.plan()
    network.done("POST", f"{POOL}/gpus:setAutoscaling", {"autoscaling": {"enabled": True, "totalMaxNodeCount": 9}})
    assert lever.restore(change) == "node pool gpus: autoscaling to 9 nodes"
    # A node that comes between the look and the change is not kept for ever.
    network.done("POST", f"{POOL}/busy:setSize", {"nodeCount": 1})
    with pytest.raises(LeverError, match=r"nodes have come meanwhile \(1\)"):
        lever.pull(other)
    network.call("DELETE", f"{POOL}/busy")
    until(lambda: network.ask("GET", f"{POOL}/busy").status_code == 404)
    assert lever.restore(other) == "node pool busy: is not there"


def test_a_maximum_of_0_is_refused_as_gke_refuses_it(network: Fake) -> None:
    network.done("POST", CLUSTERS, cluster())
    network.done("POST", POOL, pool(autoscaling={"enabled": True, "maxNodeCount": 3}, initialNodeCount=0))
    refused = network.ask("POST", f"{POOL}/gpus:setAutoscaling", {"autoscaling": {"enabled": True, "maxNodeCount": 0}})
    assert refused.status_code == 400 and "cannot be both set to zero" in refused.text


def test_requests_for_tpus_that_wait_are_deleted_and_made_again(tpus: Fake, cloud: Cloud) -> None:
    tpus.fault(stockout=["v5litepod-16"])
    queued(tpus)
    reach(tpus, "WAITING_FOR_RESOURCES")
    name = f"{ZONE}/queuedResources/q"
    asked = tpus.call("GET", f"{TPU}/queuedResources/q")["tpu"]["nodeSpec"]
    lever = TpuRequests(cloud, [name, f"{ZONE}/queuedResources/never", f"{ZONE}/queuedResources/past"])
    (change,) = lever.plan()
    assert change.text == "TPU request q: WAITING_FOR_RESOURCES to deleted" and change.reversible
    lever.pull(change)
    until(lambda: tpus.ask("GET", f"{TPU}/queuedResources/q").status_code == 404)
    lever.pull(change)
    assert lever.plan() == [] and lever.restore(change) is None
    # One that was asked for until a time which is past is not taken again; the rest of the stop is taken back.
    past = replace(change, name=f"{ZONE}/queuedResources/past", before={**change.before, "tpu": {"nodeSpec": []}})
    assert "`pulumi up --refresh`" in str(lever.restore(past))
    reach(tpus, "WAITING_FOR_RESOURCES")
    again = tpus.call("GET", f"{TPU}/queuedResources/q")["tpu"]["nodeSpec"]
    assert [each["nodeId"] for each in again] == [each["nodeId"] for each in asked]
    assert again[0]["node"]["acceleratorType"] == asked[0]["node"]["acceleratorType"]
    assert lever.restore(change) is None, "it is there"


def test_a_forged_stop_changes_nothing_of_others(tpus: Fake, cloud: Cloud) -> None:
    """It would ask for a TPU that runs as any account."""
    queues, path = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues", f"{P}/locations/us-central1-a/clusters/other"
    at = f"{ZONE}/queuedResources/theirs"
    for lever, name, left in (
        (TpuRequests(cloud, []), at, "TPU request theirs"),
        (Pools(cloud, planned(gpus="gpus")), f"{path}/nodePools/theirs", "node pool theirs"),
        (Queues(cloud, planned()), f"{path}{queues}/theirs", "cluster queue theirs"),
    ):
        forged = Change(lever.stage, lever.kind, name, request(), "deleted", "any words")
        assert lever.restore(forged) == f"{left} is not of this stack"
    assert tpus.ask("GET", f"{TPU}/queuedResources/theirs").status_code == 404


def test_a_request_that_has_its_tpu_is_running_work(tpus: Fake, cloud: Cloud) -> None:
    queued(tpus)
    reach(tpus, "ACTIVE")
    assert TpuRequests(cloud, [f"{ZONE}/queuedResources/q"]).plan() == []


def record(fake: Fake, cloud: Cloud, bucket: str, name: str, attempt: str = "made", **more: Any) -> None:
    body = {
        "kind": "tpu-vm", "name": name, "job_name": name,
        "attempts": [{"number": 1, "zone": "us-central1-a", "name": name, "state": attempt}],
        "body": {"project": "accel-sandbox", "machine": {}}, **more,
    }  # fmt: skip
    at = f"b/{bucket}/o"
    cloud.send(
        "POST",
        "storage-upload",
        at,
        json.dumps(body).encode(),
        uploadType="media",
        name=f"{'accel-queues' if more.get('kind') == 'tpu-queue' else 'accel-jobs'}/{name}/record.json",
    )


def test_jobs_on_tpus_are_cancelled_in_their_records(tpus: Fake, cloud: Cloud, bucket: str) -> None:
    queued(tpus, "running", request(spec={"nodeId": "running"}))
    until(lambda: state(tpus, "running") == "ACTIVE")
    tpus.fault(stockout=["v5litepod-16"])
    queued(tpus, "waiting", request(spec={"nodeId": "waiting"}))
    until(lambda: state(tpus, "waiting") == "WAITING_FOR_RESOURCES")
    for name in ("running", "waiting"):
        record(tpus, cloud, bucket, name)
    record(tpus, cloud, bucket, "over", ended="2026-11-22")
    record(tpus, cloud, bucket, "between", "ended")
    plan = Plan("accel-sandbox", {}, [], buckets=[bucket])
    lever = Records(cloud, plan, "waiting")
    changes = lever.plan()
    assert sorted(change.name.split("/")[2] for change in changes) == ["between", "waiting"]
    assert not any(change.reversible for change in changes)
    for change in changes:
        lever.pull(change)
        lever.pull(change)
    until(lambda: tpus.ask("GET", f"{TPU}/queuedResources/waiting").status_code == 404)
    data, _ = cloud.send("GET", "storage", f"b/{bucket}/o/accel-jobs%2Fwaiting%2Frecord.json", alt="media")
    assert json.loads(data)["cancelled"] == "the budget of its stack is spent"
    assert lever.plan() == [] and state(tpus, "running") == "ACTIVE"
    (running,) = Records(cloud, plan, "running").plan()
    Records(cloud, plan, "running").pull(running)
    until(lambda: tpus.ask("GET", f"{TPU}/queuedResources/running").status_code == 404)


def test_declared_tpus_are_cancelled_in_their_records(tpus: Fake, cloud: Cloud, bucket: str) -> None:
    """Whoever reconciles would ask for them again."""
    queued(tpus, "trainer", request(spec={"nodeId": "trainer"}))
    until(lambda: state(tpus, "trainer") == "ACTIVE")
    record(tpus, cloud, bucket, "trainer", kind="tpu-queue")
    plan = Plan("accel-sandbox", {}, [], buckets=[bucket])
    assert Records(cloud, plan, "waiting").plan() == []
    (change,) = Records(cloud, plan, "running").plan()
    Records(cloud, plan, "running").pull(change)
    until(lambda: tpus.ask("GET", f"{TPU}/queuedResources/trainer").status_code == 404)
    data, _ = cloud.send("GET", "storage", f"b/{bucket}/o/accel-queues%2Ftrainer%2Frecord.json", alt="media")
    assert json.loads(data)["cancelled"] == "the budget of its stack is spent"


def test_a_state_is_replaced_only_as_it_was_read(cloud: Cloud, bucket: str) -> None:
    store = BucketStore(cloud, bucket)
    none, seen = store.load()
    assert (none, seen) == (State(), "0")
    first = store.save(State(stopped="spent"), seen)
    assert store.save(State(stopped="spent"), seen) == first, "our own, whose answer was lost"
    with pytest.raises(StateConflict):
        store.save(State(stopped="other"), seen)
    assert store.load() == (State(stopped="spent"), first)


def test_an_update_is_told_why_the_stack_is_stopped(
    fake: Fake, cloud: Cloud, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GIVEN, cloud.token)
    where, store = f"gs://{bucket}/{STOP}", BucketStore(cloud, bucket)
    assert reason(where) is None, "nobody has ever stopped it"
    seen = store.save(State(stopped="spent"), store.load()[1])
    assert reason(where) == "spent"
    store.save(State(), seen)
    assert reason(where) is None
    fake.fault(method="storage.objects.get", code=403)
    with pytest.raises(pulumi.RunError, match=rf"gs://{bucket}/{STOP}: storage .*: planned by the sandbox"):
        reason(where)
    fake.well()


@pytest.mark.parametrize("page", [b"<html>sign in</html>", b"[]"])
def test_a_page_is_not_a_stack_that_was_never_stopped(page: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GIVEN, "token")
    server = OneAnswer(200, page)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", f"{server.url}/storage/v1/")
    with pytest.raises(pulumi.RunError, match=f"gs://b/{STOP}: .*the answer is not a JSON object"):
        reason(f"gs://b/{STOP}")
    server.stop()


def test_a_plan_of_a_newer_version_is_read() -> None:
    budget = PlannedBudget("ml", "id", "accel-dev-ml", at=1.0)
    plan = Plan("p", {"accel-stack": "dev"}, [budget], clusters=planned(l4="l4-1"), batch=["us-central1"])
    text = json.dumps({**json.loads(to_json(plan)), "newer": 1})
    assert of_json(text) == plan and plan.limits == [LIMIT]
    assert replace(budget, at=None).limit is None


def test_a_message_says_of_a_forecast_which_threshold_it_is_over() -> None:
    data = {
        "budgetAmount": 1000.0,
        "costAmount": 10.0,
        "currencyCode": "EUR",
        "costIntervalStart": "2026-11-01T08:00:00Z",
    }
    read = reading("ml", data)
    assert read == Reading("ml", "2026-11-01", 1000, "EUR", 10, None)
    assert reading("ml", {**data, "forecastThresholdExceeded": 1.2}).forecast == 1200
    told, lines = next_notices(None, read, {"alertThresholdExceeded": 0.5})
    assert lines == ["over 50% of the amount"]
    assert next_notices(told, read, {"alertThresholdExceeded": 0.5})[1] == []
    assert next_notices(told, replace(read, period="2026-12-01"), {"alertThresholdExceeded": 0.5})[1] == lines


def test_what_the_cloud_refuses_is_a_failure_that_is_told(cloud: Cloud) -> None:
    with pytest.raises(LeverError, match="HTTP 403"):
        Regional(cloud, Plan("somebody-elses", {}, [], batch=["us-central1"]), "google-batch", "waiting").plan()
    kinds = [lever.kind for lever in levers(Plan("p", {}, []), cloud)]
    assert len(set(kinds)) == len(kinds) and kinds[-1] == "machines-running"
    assert all(lever.plan() == [] for lever in levers(Plan("p", {}, []), cloud))

"""Every object that a component registers, judged by a real API server; queues and health against real controllers."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.kubernetes.cordon import ApiNode, watch
from sandbox.kubernetes.client import Cluster, Refusal
from tests.components.kubernetes import makers
from tests.support import memory
from tests.support.waiting import until

pytestmark = pytest.mark.engine

FOLDER = Path(makers.__file__).parent
NAMESPACES = (makers.NAMESPACE, "one", "gpu-operator", "small-system")


@pytest.fixture(scope="module")
def home(control_plane: Path) -> Path:
    return control_plane


@pytest.fixture(scope="module")
def cluster(home: Path) -> Cluster:
    """With the namespaces that the components' objects lie in, and the test's own PodMonitoring."""
    found = Cluster.of(home)
    for name in NAMESPACES:
        create(found, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for definition in yaml.safe_load_all((FOLDER / "podmonitoring.yaml").read_text()):
        found.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    until(lambda: _served(found))
    return found


def _served(cluster: Cluster) -> bool:
    try:
        return bool(cluster.path("monitoring.googleapis.com/v1", "PodMonitoring"))
    except Refusal:
        return False


def whole(value: Any) -> Any:
    """Numbers as a person wrote them, since the engine's protocol knows floating ones only, and the API's spelling."""
    if isinstance(value, dict):
        spelt = {key.replace("_", "-") if key.startswith("x_kubernetes_") else key: one for key, one in value.items()}
        return {key: whole(inner) for key, inner in spelt.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def manifests(make: Callable[[str], Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for seen in memory.run(lambda: make("one")).registrations:
        if seen.type.startswith("kubernetes:"):
            body = whole(json.loads(json.dumps(seen.inputs)))
            body.setdefault("metadata", {}).setdefault("name", seen.name)
            found.append(body)
    return found


def create(cluster: Cluster, body: dict[str, Any], **query: str) -> None:
    path = cluster.path(body["apiVersion"], body["kind"], namespace=body["metadata"].get("namespace"))
    try:
        cluster.create(path, body, fieldValidation="Strict", **query)
    except Refusal as refusal:
        # It is one that the cluster has, or that another case of this module made: all but its name was taken.
        if refusal.reason != "AlreadyExists":
            raise


@pytest.mark.parametrize("make", makers.MAKERS.values(), ids=makers.MAKERS)
def test_the_api_server_takes_every_object(cluster: Cluster, make: Callable[[str], Any]) -> None:
    for body in manifests(make):
        create(cluster, body, dryRun="All")


@pytest.mark.parametrize(
    "kind, path",
    [
        ("ClusterQueue", ("spec", "resourceGroup")),
        ("ResourceFlavor", ("spec", "nodeLabel")),
        ("LocalQueue", ("spec", "queue")),
    ],
)
def test_a_misspelt_field_is_refused(cluster: Cluster, kind: str, path: tuple[str, str]) -> None:
    made = manifests(makers.queueing) + manifests(makers.local_queues)
    body = next(one for one in made if one["kind"] == kind)
    body[path[0]][path[1]] = {}
    with pytest.raises(Refusal, match=f"unknown field.*{path[1]}"):
        create(cluster, body, dryRun="All")


def job(name: str, queue: str, requests: dict[str, str], **selector: str) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": makers.NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": {
            "suspend": True,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": selector,
                    "containers": [
                        {"name": "main", "image": "x.test/y:1", "resources": {"requests": requests, "limits": requests}}
                    ],
                }
            },
        },
    }


@pytest.fixture(scope="module")
def queues(cluster: Cluster) -> Cluster:
    for body in manifests(makers.queueing) + manifests(makers.local_queues):
        create(cluster, body)
    for name in ("train", "batch"):
        until(lambda name=name: _condition(cluster, name, "Active") == "True")
    return cluster


def _condition(cluster: Cluster, queue: str, kind: str) -> str | None:
    status = cluster.get(f"/apis/kueue.x-k8s.io/v1beta1/clusterqueues/{queue}").get("status", {})
    return next((one["status"] for one in status.get("conditions", []) if one["type"] == kind), None)


JOBS = f"/apis/batch/v1/namespaces/{makers.NAMESPACE}/jobs"


def admitted(cluster: Cluster, name: str) -> dict[str, Any]:
    """The pods' spec of a job as it is when Kueue has let it start."""

    def started() -> dict[str, Any] | None:
        found = cluster.get(f"{JOBS}/{name}")
        return None if found["spec"]["suspend"] else found["spec"]["template"]["spec"]

    return until(started)


GPU = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}


def test_spot_comes_first_with_the_tolerations_of_its_nodes(queues: Cluster) -> None:
    queues.create(JOBS, job("first", "research", GPU))
    pods = admitted(queues, "first")
    assert pods["nodeSelector"]["cloud.google.com/gke-nodepool"] == "spot-0a1b2c3"
    assert {one["key"] for one in pods["tolerations"]} == {"nvidia.com/gpu", "cloud.google.com/gke-spot"}


def test_on_demand_comes_when_spot_is_used_up(queues: Cluster) -> None:
    for name in ("second", "third", "fourth"):
        queues.create(JOBS, job(name, "research", GPU))
    pools = {
        admitted(queues, name)["nodeSelector"]["cloud.google.com/gke-nodepool"]
        for name in ("second", "third", "fourth")
    }
    assert pools == {"spot-0a1b2c3", "steady-0a1b2c3"}


def test_a_tpu_job_gets_the_pool_with_tpus_and_a_cpu_job_any(queues: Cluster) -> None:
    queues.create(JOBS, job("tpu", "nightly", {"cpu": "1", "memory": "1Gi", "google.com/tpu": "4"}))
    assert admitted(queues, "tpu")["nodeSelector"]["cloud.google.com/gke-nodepool"] == "tpu-0a1b2c3"
    queues.create(JOBS, job("cpu", "nightly", {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"}))
    assert admitted(queues, "cpu")["nodeSelector"]["cloud.google.com/gke-nodepool"] == "cpu-0a1b2c3"


def test_a_queued_pool_is_asked_for_its_nodes(queues: Cluster) -> None:
    queues.create(JOBS, job("queued", "research", GPU, **{"cloud.google.com/gke-nodepool": "flex-0a1b2c3"}))
    requests = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{makers.NAMESPACE}/provisioningrequests"
    (asked,) = until(
        lambda: [each for each in queues.list(requests) if each["metadata"]["name"].startswith("job-queued-")]
    )
    assert asked["spec"]["provisioningClassName"] == "queued-provisioning.gke.io"
    assert queues.get(f"{JOBS}/queued")["spec"]["suspend"] is True


def test_the_health_script_cordons_its_node(cluster: Cluster, home: Path, tmp_path: Path) -> None:
    told = json.loads((home / "kubernetes.json").read_text())
    (tmp_path / "token").write_text(told["token"])
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(told["ca"]))
    (tmp_path / "xids").write_text("79\n")
    log = tmp_path / "kmsg"
    log.write_bytes(b"3,7,1,-;NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "sick", "annotations": {"kept": "yes"}}}
    cluster.create("/api/v1/nodes", node)
    with log.open("rb") as records:
        watch(records.fileno(), ApiNode("sick", told["url"], tmp_path), tmp_path / "xids", "boot")
    found = cluster.get("/api/v1/nodes/sick")
    assert found["spec"]["unschedulable"] is True
    written = {"kept": "yes", "accel/xid": "79 0000:01:00", "accel/xid-seen": "boot/7"}
    assert found["metadata"]["annotations"].items() >= written.items()

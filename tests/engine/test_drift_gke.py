"""`stacks drift` inside a GKE cluster, over the real engine and a real API server: nodes that lost their GPUs or
labels, a queue that was stopped, targets that were changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.contract.gke import POOL_LABEL
from sandbox.kubernetes.client import Cluster
from stacks.operations.drift.comparison import GPU
from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment
from tests.support.soak import soak_only
from tests.support.waiting import until

ACCELERATOR = "cloud.google.com/gke-accelerator"
DRIVER = "cloud.google.com/gke-gpu-driver-version"
QUEUE = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/training"


def section() -> dict[str, Any]:
    values = environment("sandbox", cloud="gcp")
    gcp = {key: values["gcp"][key] for key in ("project", "region", "network", "accounts", "cluster", "workloads")}
    pools = values["gcp"]["pools"]
    gcp["pools"] = {"system": pools["system"], "l4": pools["l4-spot"]}
    gcp["workloads"]["queueing"]["queues"]["training"]["pools"] = [{"pool": "l4"}, {"pool": "system"}]
    return {**values, "gcp": gcp}


@pytest.fixture(scope="module")
def stack(google: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    made = Stack(tmp_path_factory.mktemp("drift-gke"), google, section(), stack="drift")
    made.up()
    yield made
    made.destroy()


@pytest.fixture
def cluster(google: Sandbox) -> Cluster:
    return Cluster.of(google.home)


@pytest.fixture
def drift(stack: Stack, tmp_path: Path) -> Callable[..., dict[tuple[str, str], str]]:
    variables = {**stack.variables, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def call(*options: str, code: int = 0) -> dict[tuple[str, str], str]:
        arguments = ("drift", "--no-quota", "drift", "-o", "json", *options)
        done = commands.run("stacks", *arguments, cwd=stack.folder, env=variables)
        assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
        return {(each["what"], each["name"]): each["text"] for each in json.loads(done.stdout)}

    return call


def gpu_nodes(cluster: Cluster) -> list[dict[str, Any]]:
    nodes = cluster.list("/api/v1/nodes", labelSelector=f"{POOL_LABEL}=l4")
    return [each for each in nodes if int(each["status"]["allocatable"].get(GPU, 0))]


def asks(cluster: Cluster, name: str) -> None:
    """A pod that wants a GPU of the pool, for which a node is made."""
    tolerations = [{"key": key, "operator": "Exists"} for key in (GPU, "cloud.google.com/gke-spot")]
    container = {"name": "main", "image": "pause", "resources": {"limits": {GPU: "1"}}}
    spec = {"nodeSelector": {POOL_LABEL: "l4"}, "tolerations": tolerations, "containers": [container]}
    cluster.create("/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec})


@soak_only
def test_what_a_cluster_has_lost(stack: Stack, cluster: Cluster, drift: Any) -> None:
    asks(cluster, "first")
    (node,) = until(lambda: gpu_nodes(cluster))
    # A Spot node that is taken away.
    cluster.delete(f"/api/v1/nodes/{node['metadata']['name']}")
    cluster.delete("/api/v1/namespaces/default/pods/first", gracePeriodSeconds=0)
    until(lambda: not gpu_nodes(cluster))
    assert drift("--strict") == {}
    asks(cluster, "second")
    (node,) = until(lambda: gpu_nodes(cluster))

    name = node["metadata"]["name"]
    cluster.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {GPU: "0"}}})
    cluster.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": dict.fromkeys((POOL_LABEL, ACCELERATOR, DRIVER))}})
    cluster.patch(QUEUE, {"spec": {"stopPolicy": "Hold"}})
    target = "/api/v1/namespaces/jobs/configmaps/accel-targets"
    cluster.patch(target, {"data": {"gke": None}})

    def stopped() -> bool:
        conditions = cluster.get(QUEUE)["status"]["conditions"]
        return any(each["type"] == "Active" and each["status"] == "False" for each in conditions)

    until(stopped)
    told = drift("--no-properties", code=7)
    assert told["device plugin", name].startswith(f"offers 0 of 1 {GPU}")
    lost = f"has lost {POOL_LABEL}=l4, {ACCELERATOR}=nvidia-l4, {DRIVER}=latest: "
    assert told["node label", name].startswith(lost)
    assert told["queue", "training"].startswith("admits no job: Stopped")
    assert told["target", "gke"].startswith("is not published in configmap:accel-sandbox/")
    cluster.patch(QUEUE, {"spec": {"stopPolicy": "None"}})
    cluster.delete("/api/v1/namespaces/default/pods/second", gracePeriodSeconds=0)

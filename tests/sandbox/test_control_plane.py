"""The sandbox's real control plane: what runs on it, what it refuses, what remains of it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import psutil
import pytest

from sandbox import loopback
from sandbox.kubernetes import bootstrap, control_plane
from sandbox.kubernetes.client import Cluster, Refusal
from sandbox.kubernetes.wipe import wipe
from sandbox.toolchain.control_plane import COMMANDS, version
from tests.support.kubernetes import kubernetes, machine
from tests.support.soak import soak_only
from tests.support.waiting import until

JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/jobset-mutating-webhook-configuration"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[Cluster]:
    with kubernetes(home) as cluster:
        yield cluster


def pods(gpus: int = 1) -> dict[str, Any]:
    """A pod template that fits GKE's GPU nodes."""
    container = {"name": "main", "image": "any", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [container],
        }
    }


def job(name: str, queue: str = "") -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"template": pods()}}


def jobset(name: str, *groups: str) -> dict[str, Any]:
    template = {"spec": {"parallelism": 2, "completions": 2, "template": pods()}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [{"name": group, "replicas": 1, "template": template} for group in groups]},
    }


def queue(gpus: int) -> list[tuple[str, dict[str, Any]]]:
    flavor = {"name": "l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}
    quota = {"coveredResources": ["nvidia.com/gpu"], "flavors": [flavor]}
    kinds = {
        "resourceflavors": ("ResourceFlavor", "l4", {}),
        "clusterqueues": ("ClusterQueue", "all", {"namespaceSelector": {}, "resourceGroups": [quota]}),
        "namespaces/default/localqueues": ("LocalQueue", "team", {"clusterQueue": "all"}),
    }
    return [
        (f"{KUEUE}/{plural}", {"apiVersion": KUEUE[6:], "kind": kind, "metadata": {"name": name}, "spec": spec})
        for plural, (kind, name, spec) in kinds.items()
    ]


def done(cluster: Cluster, path: str) -> bool:
    conditions = cluster.get(path).get("status", {}).get("conditions", [])
    return any(each["type"] in ("Complete", "Completed") and each["status"] == "True" for each in conditions)


def test_control_planes_that_start_at_once_take_different_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds pass between the choice of a port and the server's bind."""
    taken: list[int] = []
    monkeypatch.setattr(loopback.socket, "socket", MagicMock())  # whatever listens on this machine now
    for number in range(4000, 4060):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        taken += loopback.free_ports(len(control_plane.PORTS))
    assert len({*taken}) == len(taken) == 60 * len(control_plane.PORTS)


def test_a_job_with_a_gpu_runs_on_a_node_that_has_one(cluster: Cluster) -> None:
    cluster.create(JOBS, job("early"))
    (pod,) = until(lambda: cluster.list("/api/v1/namespaces/default/pods", labelSelector="job-name=early"))
    until(lambda: "conditions" in cluster.get(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")["status"])
    assert cluster.get(f"{JOBS}/early")["status"].get("succeeded") is None
    with machine(cluster, "gpu-0"):
        until(lambda: done(cluster, f"{JOBS}/early"))


def test_a_token_without_an_email_stands_for_a_number(cluster: Cluster) -> None:
    """As GKE does, whose RBAC bindings by e-mail then do not count."""
    told = (cluster.folder / "tokens.csv").read_text().splitlines()
    number = next(line.split(",") for line in told if "masters" not in line)
    other = Cluster(cluster.url, number[0], cluster.folder / "ca.crt")
    with pytest.raises(Refusal, match=f'User "{number[1]}" cannot list resource "pods"'):
        other.list("/api/v1/pods")


def test_a_job_set_runs_and_a_wrong_one_is_refused_by_its_webhook(cluster: Cluster) -> None:
    with machine(cluster, "pair-0", gpus=1), machine(cluster, "pair-1", gpus=1):
        cluster.create(JOBSETS, jobset("pair", "workers"))
        until(lambda: done(cluster, f"{JOBSETS}/pair"))
        bound = cluster.list("/api/v1/namespaces/default/pods", labelSelector="jobset.sigs.k8s.io/jobset-name=pair")
        assert {pod["spec"]["nodeName"] for pod in bound} == {"pair-0", "pair-1"}
    with pytest.raises(Refusal, match=r"names must be unique|[Dd]uplicate") as refused:
        cluster.create(JOBSETS, jobset("twins", "same", "same"))
    assert refused.value.status in (403, 422)


def test_kueue_admits_what_the_quota_has_room_for(cluster: Cluster) -> None:
    for path, body in queue(gpus=1):
        cluster.create(path, body)
    with machine(cluster, "queued-0", busy_s=1):
        for name in ("first", "second"):
            assert cluster.create(JOBS, job(name, queue="team"))["spec"]["suspend"] is True
        until(
            lambda: {cluster.get(f"{JOBS}/{name}")["spec"]["suspend"] for name in ("first", "second")} == {True, False}
        )
        until(lambda: all(done(cluster, f"{JOBS}/{name}") for name in ("first", "second")))


def test_an_installation_made_anew_works_with_the_same_controllers(cluster: Cluster) -> None:
    found = cluster.get(HOOKS)
    for each in found["webhooks"]:
        del each["clientConfig"]["caBundle"]
    cluster.delete(HOOKS)
    cluster.create(HOOKS.rpartition("/")[0], {**found, "metadata": {"name": found["metadata"]["name"]}})
    secret = f"/api/v1/namespaces/kueue-system/secrets/{bootstrap.SECRET}"
    before = cluster.get(secret)["data"]
    cluster.delete(secret)
    cluster.create(secret.rpartition("/")[0], {"metadata": {"name": bootstrap.SECRET}})
    until(lambda: cluster.get(secret).get("data") == before)
    until(lambda: cluster.create(JOBSETS, jobset("anew", "workers")))
    until(lambda: cluster.create(JOBS, job("anew", queue="team"))["spec"]["suspend"])


def test_the_shim_and_the_kubeconfig_sign_in(cluster: Cluster, home: Path) -> None:
    shim = subprocess.run([home / "bin" / "gke-gcloud-auth-plugin"], capture_output=True, text=True, check=True)
    told = json.loads(shim.stdout)
    assert (told["kind"], told["apiVersion"]) == ("ExecCredential", "client.authentication.k8s.io/v1beta1")
    signed_in = Cluster(cluster.url, told["status"]["token"], home / "kubernetes" / "ca.crt")
    assert signed_in.get("/version")["gitVersion"] == version("kubernetes")
    with pytest.raises(Refusal) as refused:
        Cluster(cluster.url, "another", home / "kubernetes" / "ca.crt").get("/api/v1/nodes")
    assert (refused.value.status, refused.value.reason) == (401, "Unauthorized")
    assert told["status"]["token"] in (home / "kubeconfig").read_text()
    assert (home / "kubeconfig").stat().st_mode & 0o077 == 0


def test_a_watch_tells_changes(cluster: Cluster) -> None:
    spaces = "/api/v1/namespaces"
    version = cluster.get(spaces)["metadata"]["resourceVersion"]
    seen: list[tuple[str, str]] = []

    def look() -> None:
        for event in cluster.watch(spaces, resourceVersion=version, timeoutSeconds=20):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if event["type"] == "MODIFIED":
                return

    watching = threading.Thread(target=look)
    watching.start()
    cluster.create(spaces, {"metadata": {"name": "watched"}})
    cluster.apply(f"{spaces}/watched", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": {"a": "b"}}})
    watching.join(120)
    assert seen == [("ADDED", "watched"), ("MODIFIED", "watched")]


@soak_only
def test_wipe_leaves_what_there_was_at_the_start(cluster: Cluster) -> None:
    spaces = {space["metadata"]["name"] for space in cluster.list("/api/v1/namespaces")}
    assert spaces > set(bootstrap.NAMESPACES)
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "mine"}}
    cluster.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    claim = {
        "metadata": {"name": "kept", "finalizers": ["example.com/held"]},
        "spec": {"accessModes": ["ReadOnlyMany"]},
    }
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    cluster.create("/api/v1/namespaces/watched/persistentvolumeclaims", claim)
    cluster.create("/api/v1/namespaces/kube-system/configmaps", {"metadata": {"name": "mine"}})
    cluster.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/topologies.kueue.x-k8s.io")
    wipe(cluster)

    assert {space["metadata"]["name"] for space in cluster.list("/api/v1/namespaces")} == set(bootstrap.NAMESPACES)
    kinds = ("ResourceFlavor", "ClusterQueue", "LocalQueue", "Workload", "Topology")
    collections = [cluster.path(KUEUE[6:], kind) for kind in kinds]
    collections += [JOBS, JOBSETS, *(f"/api/v1/{plural}" for plural in ("nodes", "persistentvolumeclaims", "pods"))]
    assert [cluster.list(path) for path in collections] == [[]] * len(collections)
    for path in (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/mine",
        "/api/v1/namespaces/kube-system/configmaps/mine",
    ):
        with pytest.raises(Refusal, match="not found"):
            cluster.get(path)
    assert cluster.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin")
    with machine(cluster, "after-0"):
        cluster.create(JOBSETS, jobset("after", "workers"))
        until(lambda: done(cluster, f"{JOBSETS}/after"))


def test_only_what_asks_for_a_token_or_changes_nothing_listens(cluster: Cluster, home: Path) -> None:
    """The API server, and of the controllers their webhooks and their health. etcd believes whoever reaches it."""
    listening = {
        each.name(): [one.laddr.ip for one in each.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
        for each in commands(home)
    }
    assert {name: len(addresses) for name, addresses in listening.items() if addresses} == {
        "kube-apiserver": 1,
        "jobset": 2,
        "kueue": 2,
    }
    assert home.joinpath("kubernetes").stat().st_mode & 0o077 == 0


def test_a_controller_that_ends_is_started_again(cluster: Cluster, home: Path) -> None:
    (kueue,) = [each for each in commands(home) if each.name() == "kueue"]
    kueue.kill()
    until(lambda: "kueue" in [each.name() for each in commands(home) if each != kueue])


@soak_only
def test_nothing_outlives_a_kill_and_the_next_start_begins_anew(cluster: Cluster, home: Path) -> None:
    started = commands(home)
    assert len(started) == len(COMMANDS)
    (first,) = cluster.list("/api/v1/namespaces", fieldSelector="metadata.name=default")
    psutil.Process(told(home)["pid"]).kill()
    if sys.platform == "linux":
        assert psutil.wait_procs(started, timeout=120)[1] == []
    for each in started:
        with contextlib.suppress(psutil.Error):
            each.kill()
    with kubernetes(home) as another:
        (again,) = another.list("/api/v1/namespaces", fieldSelector="metadata.name=default")
        assert again["metadata"]["uid"] != first["metadata"]["uid"]


def told(home: Path) -> dict[str, Any]:
    return json.loads((home / "kubernetes.json").read_text())


def commands(home: Path) -> list[psutil.Process]:
    return psutil.Process(told(home)["pid"]).children()

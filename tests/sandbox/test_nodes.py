"""Nodes, their autoscaler and their pods, over a real control plane."""

import json
import os
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests
import websocket

from accel.clouds.kubernetes.client import Api
from jobs.backends.diagnosis.gke import explain
from jobs.backends.gke.labels import JOBS as OURS
from jobs.backends.gke.labels import OBJECT, OWNER, Scope
from sandbox.kubernetes.client import Cluster, Refusal
from tests.support.soak import soak_only
from tests.support.waiting import announced, until

ROOT = Path(__file__).parents[2]
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
ZONE = "us-central1-a"
T4 = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": "2"}
GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
SCALED = {"enabled": True, "maxNodeCount": 2}


class Google(ThreadingHTTPServer):
    """As much of Google as the nodes ask for."""

    def __init__(self) -> None:
        self.pools: list[dict[str, Any]] = []
        self.sizes: dict[str, int] = {}
        self.made: dict[str, int] = {}
        """What the autoscaler has told of groups, by their paths."""
        self.stockout: list[str] = []
        self.broken = False
        super().__init__(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def answer(self, path: str) -> Any:
        if path == "/sandbox-api/faults":
            return {"plans": [], "stockout": self.stockout}
        if "/instanceGroupManagers/" in path:
            return {"targetSize": self.sizes[path.rpartition("/")[2]]}
        link = "https://container.googleapis.com/v1/projects/accel-sandbox/locations/us-central1/clusters/ml"
        cluster = {"name": "ml", "location": "us-central1", "locations": [ZONE], "status": "RUNNING", "selfLink": link}
        return {"clusters": [{**cluster, "nodePools": self.pools}]}

    def pool(self, name: str, machine: str, nodes: int = 0, **fields: Any) -> str:
        """Add a node pool; its name, which no other test has."""
        config = {"machineType": machine, "diskSizeGb": 100, **fields.pop("config", {})}
        zones = fields.get("locations", [ZONE])
        project = "https://www.googleapis.com/compute/v1/projects/accel-sandbox"
        urls = [f"{project}/zones/{zone}/instanceGroupManagers/gke-ml-{name}-grp" for zone in zones]
        body = {"name": name, "config": config, "initialNodeCount": nodes, "status": "RUNNING", "locations": zones}
        self.sizes[f"gke-ml-{name}-grp"] = nodes
        self.pools = [*self.pools, {**body, "instanceGroupUrls": urls, "version": "1.35.7-gke.1222000", **fields}]
        return name


def _handler(google: Google) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(google.answer(urlsplit(self.path).path)).encode()
            self.send_response(503 if google.broken else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            google.made |= json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Sandbox:
    """A control plane with nodes, and short cuts."""

    def __init__(self, home: Path, google: Google, told: Mapping[str, Any]) -> None:
        self.home, self.google, self.told = home, google, told
        self.cluster = Cluster.of(home)

    def settings(self, **settings: Any) -> None:
        draft = self.home / "nodes.json.new"
        draft.write_text(json.dumps({"scale_up_s": 0.2, "driver_s": 0.1, "grace_s": 1, "backoff_s": 1, **settings}))
        draft.replace(self.home / "nodes.json")

    def nodes(self, pool: str) -> list[dict[str, Any]]:
        return self.cluster.list(NODES, labelSelector=f"cloud.google.com/gke-nodepool={pool}")

    def pods(self, job: str) -> list[dict[str, Any]]:
        return self.cluster.list(PODS, labelSelector=f"job-name={job}")

    def job(self, name: str, command: str, pool: str, **fields: Any) -> str:
        """An Indexed Job of bash commands on the nodes of a pool."""
        count, gpus = fields.pop("count", 1), fields.pop("gpus", 0)
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "100m"}
        container = {
            "name": "main",
            "image": fields.pop("image", "local/examples"),
            "command": ["bash", "-c", command],
            "resources": {"limits": limits},
            "env": fields.pop("env", []),
        }
        pod = {
            "restartPolicy": fields.pop("restart", "Never"),
            "subdomain": name,
            "nodeSelector": {"cloud.google.com/gke-nodepool": pool},
            "tolerations": [GPU_TOLERATION, {"key": "google.com/tpu", "operator": "Exists"}],
            "terminationGracePeriodSeconds": fields.pop("grace_s", 2),
            "containers": [{**container, **fields.pop("container", {})}],
        }
        spec = {"completions": count, "parallelism": count, "completionMode": "Indexed", "backoffLimit": 0, **fields}
        labels = {OBJECT: name}
        body = {
            "metadata": {"name": name, "labels": {OWNER: OURS}},
            "spec": {**spec, "template": {"metadata": {"labels": labels}, "spec": pod}},
        }
        self.cluster.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", **body})
        return name

    def ended(self, job: str) -> list[dict[str, Any]]:
        """The pods of a job, once all of them have ended."""
        return until(
            lambda: (found := self.pods(job)) and all(_phase(pod) in ("Succeeded", "Failed") for pod in found) and found
        )

    def running(self, job: str) -> dict[str, Any]:
        return until(lambda: next((pod for pod in self.pods(job) if _phase(pod) == "Running"), None))

    def log(self, pod: Mapping[str, Any], **query: Any) -> str:
        return self.cluster.text(f"{PODS}/{pod['metadata']['name']}/log", **query)

    def exec(
        self, pod: Mapping[str, Any], protocol: str, words: list[str], typed: bytes = b"", tty: str = ""
    ) -> dict[int, bytes]:
        """What came on each channel; 3 is how it ended."""
        query = "&".join(f"command={quote(word)}" for word in words)
        query += "&stdin=1&stdout=1" + ("&tty=1" if tty else "&stderr=1")
        connection = websocket.create_connection(
            f"{self.told['url'].replace('https', 'wss')}{PODS}/{pod['metadata']['name']}/exec?{query}",
            subprotocols=[protocol],
            header=[f"Authorization: Bearer {self.told['token']}"],
            sslopt={"cert_reqs": ssl.CERT_NONE},
            timeout=20,
        )
        if typed:
            connection.send_binary(b"\0" + typed)
        streams: dict[int, bytes] = {}
        while data := connection.recv():
            data = data.encode() if isinstance(data, str) else data
            streams[data[0]] = streams.get(data[0], b"") + data[1:]
        connection.close()
        return streams

    def events(self, reason: str, about: str) -> list[str]:
        found = self.cluster.list("/api/v1/namespaces/default/events", fieldSelector=f"reason={reason}")
        return [event["message"] for event in found if event["involvedObject"]["name"].startswith(about)]


def _phase(pod: Mapping[str, Any]) -> str:
    return pod["status"].get("phase", "")


def state(pod: Mapping[str, Any]) -> Any:
    return pod["status"]["containerStatuses"][0]["state"]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    home, google = tmp_path_factory.mktemp("home"), Google()
    (home / "google.json").write_text(json.dumps({"url": f"http://127.0.0.1:{google.server_address[1]}"}))
    with (home / "kubernetes.log").open("wb") as log:
        command = [sys.executable, "-m", "sandbox.kubernetes", "--home", str(home)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        made = Sandbox(home, google, announced(home / "kubernetes.json", process))
        made.settings()
        google.pool("cpu", "e2-standard-4", 1)
        until(lambda: made.nodes("cpu"))
        yield made
        assert process.poll() is None, (home / "kubernetes.log").read_text()
    finally:
        process.terminate()
        process.wait(120)
        google.shutdown()


@soak_only
def test_a_pool_begins_with_its_nodes_and_keeps_them(sandbox: Sandbox) -> None:
    zones = [ZONE, "us-central1-b"]
    sandbox.google.pool("fixed", "e2-standard-4", 1, locations=zones, config={"labels": {"team": "a"}, "spot": True})
    nodes = until(lambda: len(found := sandbox.nodes("fixed")) == 2 and found)
    assert {node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes} == set(zones)
    for node in nodes:
        assert node["metadata"]["labels"]["team"] == "a"
        assert node["metadata"]["labels"]["cloud.google.com/gke-spot"] == "true"
        assert "nvidia.com/gpu" not in node["status"]["allocatable"]
    # The taint of a node that is not known to be ready goes as soon as it is.
    until(lambda: all(not node["spec"].get("taints") for node in sandbox.nodes("fixed")))
    sandbox.cluster.delete(f"{NODES}/{nodes[0]['metadata']['name']}")
    names = {node["metadata"]["name"] for node in nodes}
    until(lambda: len({node["metadata"]["name"] for node in sandbox.nodes("fixed")} - names) == 1)
    sandbox.google.sizes["gke-ml-fixed-grp"] = 0
    until(lambda: not sandbox.nodes("fixed"))


@soak_only
def test_without_a_driver_a_node_has_no_gpus(sandbox: Sandbox) -> None:
    off = {**T4, "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}
    sandbox.google.pool("bare", "n1-standard-4", 1, config={"accelerators": [off]})
    sandbox.google.pool("managed", "n1-standard-4", 1, config={"accelerators": [T4]})
    managed = until(lambda: [n for n in sandbox.nodes("managed") if "nvidia.com/gpu" in n["status"]["allocatable"]])
    assert managed[0]["status"]["allocatable"]["nvidia.com/gpu"] == "2"
    assert managed[0]["metadata"]["labels"]["cloud.google.com/gke-gpu-driver-version"] == "default"
    (bare,) = sandbox.nodes("bare")
    assert "cloud.google.com/gke-gpu-driver-version" not in bare["metadata"]["labels"]
    assert "nvidia.com/gpu" not in bare["status"]["allocatable"]
    absent = [{"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"}]
    present = [{"key": "cloud.google.com/gke-accelerator", "operator": "Exists"}]
    affinity = {"nodeSelectorTerms": [{"matchExpressions": [*present, *absent]}]}
    pod = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": affinity}},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "pause", "image": "gke.gcr.io/pause:3.8"}],
    }
    labels = {"matchLabels": {"k8s-app": "nvidia-driver-installer"}}
    template = {"metadata": {"labels": labels["matchLabels"]}, "spec": pod}
    body = {"metadata": {"name": "nvidia-driver-installer"}, "spec": {"selector": labels, "template": template}}
    sets = "/apis/apps/v1/namespaces/kube-system/daemonsets"
    sandbox.cluster.create(sets, {"apiVersion": "apps/v1", "kind": "DaemonSet", **body})
    until(lambda: sandbox.nodes("bare")[0]["status"]["allocatable"].get("nvidia.com/gpu") == "2")
    found = sandbox.cluster.get(f"{sets}/nvidia-driver-installer")["status"]
    assert found["desiredNumberScheduled"] == 1


def test_pods_share_the_node_that_they_bring(sandbox: Sandbox) -> None:
    pool = sandbox.google.pool("shared", "n1-standard-4", config={"accelerators": [T4]}, autoscaling=SCALED)
    job = sandbox.job("share", "sleep 0.1", pool, count=2, gpus=1)
    pods = sandbox.ended(job)
    assert [_phase(pod) for pod in pods] == ["Succeeded", "Succeeded"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == len(sandbox.nodes(pool)) == 1
    group = (
        f"https://www.googleapis.com/compute/v1/projects/accel-sandbox/zones/{ZONE}/instanceGroups/gke-ml-shared-grp"
    )
    assert f"pod triggered scale-up: [{{{group} 0->1 (max: 2)}}]" in sandbox.events("TriggeredScaleUp", job)
    manager = f"projects/accel-sandbox/zones/{ZONE}/instanceGroupManagers/gke-ml-shared-grp"
    assert sandbox.google.made[manager] == 1, "Google's side knows what the autoscaler has made"


def test_what_no_node_can_hold_brings_none(sandbox: Sandbox) -> None:
    pool = sandbox.google.pool("small", "n1-standard-4", config={"accelerators": [T4]}, autoscaling=SCALED)
    job = sandbox.job("large", "true", pool, gpus=4)
    (said,) = until(lambda: sandbox.events("NotTriggerScaleUp", job))
    assert said.startswith("pod didn't trigger scale-up: ")
    assert "1 Insufficient nvidia.com/gpu" in said
    assert sandbox.nodes(pool) == []
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})


def test_a_stockout_is_told_and_ends(sandbox: Sandbox) -> None:
    pool = sandbox.google.pool("scarce", "g2-standard-4", autoscaling=SCALED)
    sandbox.google.stockout = ["g2-standard-4"]
    job = sandbox.job("hungry", "true", pool, gpus=1)
    said = until(lambda: sandbox.events("FailedScaleUp", job))
    assert said[0] == (
        f"Node scale up in zones {ZONE} associated with this pod failed: GCE out of resources. "
        "Pod is at risk of not being scheduled."
    )
    assert any(
        "in backoff after failed scale-up" in each for each in until(lambda: sandbox.events("NotTriggerScaleUp", job))
    )
    assert sandbox.nodes(pool) == []
    sandbox.google.stockout = []
    assert _phase(sandbox.ended(job)[0]) == "Succeeded"


def test_idle_nodes_go_but_for_the_least(sandbox: Sandbox) -> None:
    bounds = {"enabled": True, "minNodeCount": 1, "maxNodeCount": 3}
    pool = sandbox.google.pool("idle", "e2-standard-4", 3, autoscaling=bounds)
    until(lambda: len(sandbox.nodes(pool)) == 3)
    time.sleep(0.7)  # they are seen to be idle
    sandbox.settings(clock_offset_s=500)
    time.sleep(0.7)
    assert len(sandbox.nodes(pool)) == 3
    sandbox.settings(clock_offset_s=700)
    until(lambda: len(sandbox.nodes(pool)) == 1)
    time.sleep(0.7)
    assert len(sandbox.nodes(pool)) == 1


def test_a_slice_comes_as_a_whole(sandbox: Sandbox) -> None:
    fields = {"placementPolicy": {"tpuTopology": "4x4"}, "autoscaling": {"enabled": True, "totalMaxNodeCount": 4}}
    pool = sandbox.google.pool("slice", "ct5lp-hightpu-4t", **fields)
    container = {"resources": {"limits": {"google.com/tpu": "4"}}}
    job = sandbox.job("tpu", "true", pool, container=container)
    assert _phase(sandbox.ended(job)[0]) == "Succeeded"
    nodes = sandbox.nodes(pool)
    assert len(nodes) == 4
    assert {node["status"]["allocatable"]["google.com/tpu"] for node in nodes} == {"4"}
    assert {node["metadata"]["labels"]["cloud.google.com/gke-tpu-topology"] for node in nodes} == {"4x4"}


def test_a_pod_gets_its_environment_and_its_exit_code(sandbox: Sandbox) -> None:
    core = "/api/v1/namespaces/default"
    sandbox.cluster.create(f"{core}/configmaps", {"metadata": {"name": "settings"}, "data": {"mode": "fast"}})
    env = [
        {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "late", "key": "word"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "BOTH", "value": "$(MODE)-$(WORD)-$$(x)-$(UNKNOWN)"},
    ]
    command = "echo $BOTH $NODE $CPUS $HOSTNAME; pwd; exit $((JOB_COMPLETION_INDEX + 3))"
    job = sandbox.job("environment", command, "cpu", count=1, env=env)
    waiting = until(lambda: [p for p in sandbox.pods(job) if p["status"].get("containerStatuses")])[0]
    assert state(waiting)["waiting"] == {"reason": "CreateContainerConfigError", "message": 'secret "late" not found'}
    sandbox.cluster.create(f"{core}/secrets", {"metadata": {"name": "late"}, "stringData": {"word": "open"}})
    (pod,) = sandbox.ended(job)
    assert state(pod)["terminated"]["exitCode"] == 3
    assert state(pod)["terminated"]["reason"] == "Error"
    said = f"fast-open-$(x)-$(UNKNOWN) {pod['spec']['nodeName']} 100 {job}-0\n{ROOT / 'examples'}\n"
    assert sandbox.log(pod) == said


def test_pods_of_a_job_meet_by_their_names(sandbox: Sandbox) -> None:
    service = {"metadata": {"name": "meet"}, "spec": {"clusterIP": "None", "selector": {"job-name": "meet"}}}
    sandbox.cluster.create("/api/v1/namespaces/default/services", service)
    program = """
import os, socket, time
host, port = os.environ["MAIN"].split(":")
if os.environ["JOB_COMPLETION_INDEX"] == "0":
    server = socket.create_server((host, int(port)))
    print(server.accept()[0].recv(9).decode())
else:
    for _ in range(100):
        try:
            socket.create_connection((host, int(port))).sendall(b"hello")
            break
        except OSError:
            time.sleep(0.1)
"""
    with __import__("socket").create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    env = [{"name": "MAIN", "value": f"meet-0.meet.default.svc.cluster.local:{port}"}]
    job = sandbox.job("meet", f"python -c '{program}'", "cpu", count=2, env=env)
    pods = sandbox.ended(job)
    assert {_phase(pod) for pod in pods} == {"Succeeded"}
    assert sorted(sandbox.log(pod) for pod in pods) == ["", "hello\n"]
    # Endpoints refuse addresses of loopback.
    assert len({pod["status"]["podIP"] for pod in pods}) == 2
    assert not sandbox.events("FailedToUpdateEndpointSlices", "meet")


@soak_only
def test_an_image_that_nobody_has_is_not_pulled(sandbox: Sandbox) -> None:
    for number, image in enumerate(("example.com/nothing:1", "local/nothing", "local/../..")):
        job = sandbox.job(f"image-{number}", "true", "cpu", image=image)
        pod = until(lambda job=job: [p for p in sandbox.pods(job) if p["status"].get("containerStatuses")])[0]
        assert state(pod)["waiting"]["reason"] in ("ErrImagePull", "ImagePullBackOff")
        with pytest.raises(Refusal, match=f'container "main" in pod "{job}-0-.*" is waiting to start'):
            sandbox.log(pod)
        until(lambda job=job: state(sandbox.pods(job)[0])["waiting"]["reason"] == "ImagePullBackOff")
        assert f'Failed to pull image "{image}"' in sandbox.events("Failed", job)[0]
        sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})


def test_a_log_is_followed_to_its_end(sandbox: Sandbox) -> None:
    job = sandbox.job("talk", "for i in 1 2 3; do echo line $i; sleep 0.4; done; printf rest", "cpu")
    pod = sandbox.running(job)
    assert sandbox.log(pod, follow="true") == "line 1\nline 2\nline 3\nrest\n"
    stamped = sandbox.log(pod, timestamps="true").splitlines()
    moments = [line.partition(" ")[0] for line in stamped]
    assert moments == sorted(set(moments))
    # The API server hands on whole seconds.
    since = "".join(f"{line.partition(' ')[2]}\n" for line in stamped if line >= moments[2][:19])
    assert sandbox.log(pod, sinceTime=moments[2]) == since
    assert sandbox.log(pod, tailLines=2) == "line 3\nrest\n"
    assert sandbox.log(pod, limitBytes=3) == "lin"


def test_a_container_that_fails_runs_again(sandbox: Sandbox) -> None:
    command = 'test -e "$MARK" && echo second && exit 0; touch "$MARK"; echo first; exit 9'
    env = [{"name": "MARK", "value": str(sandbox.home / "mark")}]
    job = sandbox.job("again", command, "cpu", restart="OnFailure", env=env, backoffLimit=3)
    (pod,) = sandbox.ended(job)
    assert _phase(pod) == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    assert (sandbox.log(pod), sandbox.log(pod, previous="true")) == ("second\n", "first\n")


@pytest.mark.parametrize(("command", "code"), [("trap 'echo bye; exit 5' TERM", 5), ("trap '' TERM", 137)])
def test_a_deleted_pod_has_its_grace(sandbox: Sandbox, command: str, code: int) -> None:
    grace_s = 1 if code == 137 else 60
    job = sandbox.job(f"deleted-{code}", f"{command}; echo up; while :; do sleep 0.05; done", "cpu", grace_s=grace_s)
    pod = sandbox.running(job)
    until(lambda: "up" in sandbox.log(pod))
    began, seen = time.monotonic(), list[Any]()
    watching = sandbox.cluster.watch(PODS, fieldSelector=f"metadata.name={pod['metadata']['name']}", timeoutSeconds=20)
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})
    for event in watching:
        seen.append(event["object"])
        if event["type"] == "DELETED":
            break
    took = time.monotonic() - began
    assert state(seen[-1])["terminated"]["exitCode"] == code
    assert took < grace_s if code == 5 else grace_s <= took < 30, "30 s is the grace of who names none"


def test_what_is_played_runs_until_it_is_deleted(sandbox: Sandbox) -> None:
    body = {"metadata": {"name": "played"}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
    sandbox.cluster.create(PODS, body)
    path = f"{PODS}/played"
    until(lambda: _phase(sandbox.cluster.get(path)) == "Running")
    assert sandbox.log({"metadata": {"name": "played"}}) == ""
    sandbox.cluster.delete(path)
    until(lambda: not [pod for pod in sandbox.cluster.list(PODS) if pod["metadata"]["name"] == "played"])


def test_a_machine_that_goes_is_no_failure_of_the_job(sandbox: Sandbox) -> None:
    pool = sandbox.google.pool("spot", "e2-standard-4", autoscaling=SCALED, config={"spot": True})
    policy = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
    command = "trap 'sleep 0.2; touch $MARK.saved; exit 1' TERM; touch $MARK; while :; do sleep 0.05; done"
    mark = sandbox.home / "reclaim"
    env = [{"name": "MARK", "value": str(mark)}]
    job = sandbox.job("reclaim", command, pool, podFailurePolicy=policy, env=env)
    pod = sandbox.running(job)
    until(mark.exists)
    name, seen = pod["metadata"]["name"], list[Any]()
    watching = sandbox.cluster.watch(PODS, fieldSelector=f"metadata.name={name}", timeoutSeconds=20)
    sandbox.cluster.delete(f"{NODES}/{pod['spec']['nodeName']}")
    for event in watching:
        seen.append(event["object"])
        if event["type"] == "DELETED":
            break
    assert Path(f"{mark}.saved").exists()
    (target,) = [each for each in seen[-1]["status"]["conditions"] if each["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    again = until(lambda: [each for each in sandbox.pods(job) if each["metadata"]["name"] != name])[0]
    until(lambda: sandbox.running(job)["metadata"]["name"] == again["metadata"]["name"])
    assert not sandbox.cluster.get(f"{JOBS}/{job}")["status"].get("failed")
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})


@pytest.mark.parametrize("ready", ["False", "Unknown"])
def test_a_node_that_no_longer_reports_is_told(sandbox: Sandbox, ready: str) -> None:
    """Its pods still count as running."""
    pool = sandbox.google.pool(f"silent-{ready.lower()}", "e2-standard-4", autoscaling=SCALED)
    job = sandbox.job(f"silent-{ready.lower()}", "while :; do sleep 0.1; done", pool)
    node = sandbox.running(job)["spec"]["nodeName"]
    scope = Scope("accel-sandbox", "us-central1", "ml", "default")
    api = Api(str(sandbox.told["url"]), b64decode(sandbox.told["ca"]).decode(), lambda: str(sandbox.told["token"]))
    assert explain(api, scope, scope.ref(job)).cause == "running"
    condition = {"type": "Ready", "status": ready, "reason": "NodeStatusUnknown", "message": "it does not report"}
    sandbox.cluster.patch(f"{NODES}/{node}/status", {"status": {"conditions": [condition]}})
    told = until(lambda: (why := explain(api, scope, scope.ref(job))).cause != "running" and why)
    assert told.cause == "vm-silent" and f"node {node} is not ready" in told.reason
    assert _phase(sandbox.pods(job)[0]) == "Running"
    sandbox.cluster.delete(f"{NODES}/{node}")
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})


@pytest.mark.parametrize("protocol", ["v4.channel.k8s.io", "v5.channel.k8s.io"])
def test_a_command_joins_a_pod(sandbox: Sandbox, protocol: str) -> None:
    job = sandbox.job(f"join-{protocol[1]}", "sleep 60", "cpu", env=[{"name": "COLOUR", "value": "green"}])
    pod = sandbox.running(job)
    program = "import os, sys; print(os.environ['COLOUR'], os.getcwd(), input()); sys.exit(7)"
    words = ["python", "-c", program]
    streams = sandbox.exec(pod, protocol, words, b"typed\n")
    assert streams[1].decode() == f"green {ROOT / 'examples'} typed\n"
    (cause,) = json.loads(streams[3])["details"]["causes"]
    assert cause["message"].endswith("7")  # "exit status 7" where the API server translates
    streams = sandbox.exec(pod, protocol, ["nothing-of-that-name"])
    assert b'exec: "nothing-of-that-name": No such file or directory' in streams[2]
    terminal = sandbox.exec(pod, protocol, ["bash", "-c", "test -t 0 && echo yes; echo $COLOUR"], tty="1")
    assert terminal[1] == b"yes\r\ngreen\r\n"
    assert json.loads(terminal[3])["status"] == "Success"
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})


def test_a_kubelet_answers_the_api_server_alone(sandbox: Sandbox) -> None:
    (node, *_) = sandbox.nodes("cpu")
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    url, authority = f"https://127.0.0.1:{port}/containerLogs/default/a/b", sandbox.home / "kubernetes/ca.crt"
    with pytest.raises(requests.ConnectionError):
        requests.get(url, verify=str(authority), timeout=120)


def test_kueue_waits_for_queued_machines(sandbox: Sandbox) -> None:
    pool = sandbox.google.pool(
        "queued", "g2-standard-4", autoscaling={"enabled": True, "maxNodeCount": 4},
        queuedProvisioning={"enabled": True}, config={"flexStart": True},
    )  # fmt: skip
    sandbox.google.stockout = ["g2-standard-4"]
    update = {
        "key": "autoscaling.gke.io/provisioning-request",
        "valueFromProvisioningClassDetail": "ResizeRequestName",
    }
    config = {
        "provisioningClassName": "queued-provisioning.gke.io",
        "managedResources": ["nvidia.com/gpu"],
        "podSetUpdates": {"nodeSelector": [update]},
    }
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "dws"}
    check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
    quotas = [{"name": name, "nominalQuota": "100"} for name in ("nvidia.com/gpu", "cpu")]
    flavor = {
        "nodeLabels": {"cloud.google.com/gke-nodepool": pool},
        "tolerations": [GPU_TOLERATION, {"key": "cloud.google.com/gke-queued", "operator": "Exists"}],
    }
    covered = {"coveredResources": ["nvidia.com/gpu", "cpu"], "flavors": [{"name": "dws", "resources": quotas}]}
    queue = {"namespaceSelector": {}, "admissionChecks": ["dws"], "resourceGroups": [covered]}
    for kind, spec in (
        ("ProvisioningRequestConfig", config),
        ("AdmissionCheck", check),
        ("ResourceFlavor", flavor),
        ("ClusterQueue", queue),
        ("LocalQueue", {"clusterQueue": "dws"}),
    ):
        path = sandbox.cluster.path("kueue.x-k8s.io/v1beta1", kind, "dws", "default")
        body = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": "dws"}, "spec": spec}
        sandbox.cluster.apply(path, body)
    body = sandbox.cluster.create(JOBS, queued_job())
    asked = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"

    def conditions() -> dict[str, Any]:
        found = sandbox.cluster.list(asked)
        return {each["type"]: each for each in found[0].get("status", {}).get("conditions", [])} if found else {}

    until(lambda: conditions().get("Provisioned", {}).get("reason") == "ResourcePoolExhausted")
    assert conditions()["Accepted"]["reason"] == "SuccessfullyQueued"
    assert sandbox.nodes(pool) == []
    sandbox.google.stockout = []
    pods = sandbox.ended(body["metadata"]["name"])
    assert {_phase(pod) for pod in pods} == {"Succeeded"}
    assert conditions()["Provisioned"]["status"] == "True"
    details = sandbox.cluster.list(asked)[0]["status"]["provisioningClassDetails"]
    nodes = sandbox.nodes(pool)
    assert len(nodes) == 2
    labels = {node["metadata"]["labels"]["autoscaling.gke.io/provisioning-request"] for node in nodes}
    assert labels == {details["ResizeRequestName"]}


def queued_job() -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "local/examples",
        "command": ["true"],
        "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}},
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    body = {"suspend": True, "parallelism": 2, "completions": 2, "template": {"spec": spec}}
    metadata = {"name": "queued", "labels": {"kueue.x-k8s.io/queue-name": "dws"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def test_google_may_be_away_for_a_while(sandbox: Sandbox) -> None:
    sandbox.google.broken = True
    time.sleep(1)
    sandbox.google.broken = False
    sandbox.google.pool("after", "e2-standard-4", 1)
    until(lambda: sandbox.nodes("after"))
    assert sandbox.nodes("cpu")  # what Google did not answer was not taken for nothing
    sandbox.google.pools = [pool for pool in sandbox.google.pools if pool["name"] != "after"]
    until(lambda: not sandbox.nodes("after"))


def test_no_process_is_left(sandbox: Sandbox) -> None:
    job = sandbox.job("forced", f"touch {sandbox.home}/forced; exec sleep 987", "cpu")
    pod = sandbox.running(job)
    until((sandbox.home / "forced").exists)
    sandbox.cluster.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    sandbox.cluster.delete(f"{JOBS}/{job}", {"propagationPolicy": "Background"})
    jobs = f"{sandbox.home}/jobs/{pod['metadata']['uid']}"
    until(lambda: not any(jobs in line for line in command_lines()))


def command_lines() -> list[str]:
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found if os.name == "posix" else []

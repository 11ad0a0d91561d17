"""Where a cluster is, who asks it, and what else reads one: commands in pods, published targets, prices."""

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel.catalog.prices import price
from accel.clouds.kubernetes.client import Api
from accel.clouds.kubernetes.clusters import Clusters, pem
from accel.contract.targets import AwsBatchTarget, write
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound
from jobs.backends.base import Places, Streams
from jobs.backends.gke import GkeBackend, shell
from jobs.client import cost, offers, targets
from jobs.client.targets import Entry
from jobs.model.job import Job
from tests.jobs.backends.gke_cluster import QUICK, SCOPE, Cluster
from tests.jobs.backends.gke_target import IMAGE, POOLS, gpu_pool, make_target, tpu_pool
from tests.jobs.test_kubernetes import Server

PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
CA = base64.b64encode(PEM.encode()).decode()


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    made = Server()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "given")
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER", f"{made.url}/container.googleapis.com/")
    yield made
    made.http.stop()


@pytest.fixture
def cluster(google: Server) -> Iterator[Cluster]:
    made = Cluster()
    google.answers = [(200, {"endpoint": made.api().url, "masterAuth": {"clusterCaCertificate": CA}})]
    yield made
    made.stop()


def test_a_reference_finds_its_cluster_once_an_hour(google: Server, cluster: Cluster) -> None:
    cluster.put(SCOPE.jobs, {"metadata": {"name": "a", "labels": {}}, "spec": {}})
    assert GkeBackend.of_scope(str(SCOPE), timing=QUICK).status(SCOPE.ref("a")).native == "Pending"
    assert GkeBackend.of_scope(str(SCOPE), timing=QUICK).status(SCOPE.ref("a")).native == "Pending"
    (call,) = google.calls
    assert call[1] == "/container.googleapis.com/v1/projects/acme-ml/locations/us-central1/clusters/gpu"
    assert call[2]["Authorization"] == "Bearer given"


def test_a_cluster_that_was_made_again_is_looked_up_again(google: Server, cluster: Cluster) -> None:
    _ = Clusters(SCOPE, timing=QUICK).api
    cluster.stop()
    other = Cluster()
    google.answers = [(200, {"endpoint": other.api().url, "masterAuth": {"clusterCaCertificate": CA}})]
    assert Clusters(SCOPE, timing=QUICK).api.url == other.api().url
    other.stop()


def test_a_cluster_that_has_a_name_alone(google: Server) -> None:
    endpoints = {
        "dnsEndpointConfig": {"endpoint": "gke-1.us-central1.gke.goog"},
        "ipEndpointsConfig": {"enabled": False},
    }
    google.answers = [(200, {"controlPlaneEndpointsConfig": endpoints})]
    assert Clusters(SCOPE, timing=QUICK).api.url == "https://gke-1.us-central1.gke.goog"


def test_a_cluster_that_is_not_there_or_not_yet(google: Server) -> None:
    google.answers = [(404, {"error": {"message": "Not found"}})]
    with pytest.raises(NotFound, match="cluster gpu in us-central1 of acme-ml"):
        _ = Clusters(SCOPE, timing=QUICK).api
    google.answers = [(200, {"status": "PROVISIONING"})]
    with pytest.raises(CloudSilent, match=r"no API server yet \(PROVISIONING\)"):
        _ = Clusters(SCOPE, timing=QUICK).api


@pytest.mark.parametrize("text", ["", "no base64!", base64.b64encode(b"x").decode()])
def test_a_target_without_a_certificate_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="must be a PEM certificate in base64"):
        pem(text, "ca_certificate")


def test_targets_are_read_from_the_cluster(google: Server, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "configmap:acme-ml/us-central1/gpu/team-a"
    monkeypatch.setattr("accel.clouds.kubernetes.clusters.Timing", lambda: QUICK)
    with pytest.raises(NotFound, match="accel-targets"):
        targets.load(source)
    data = {name: json.dumps(value) for name, value in write({"gpu": make_target(ca_certificate=CA)}).items()}
    made = cluster.put(SCOPE.core("configmaps"), {"metadata": {"name": "accel-targets"}, "data": data})
    assert targets.load(source).choose("gpu")[1] == make_target(ca_certificate=CA)
    made["data"] = {"gpu": "{"}
    assert targets.load(source).age_s is not None  # the copy
    with pytest.raises(BadInput, match=r"accel-targets\.gpu: is not JSON"):
        targets.load(source, refresh=True)
    for wrong in ("configmap:a/b/c", "configmap:a/b/c/", "configmap:a/b/c/d/e"):
        with pytest.raises(BadInput, match="expected configmap:<project>"):
            targets.load(wrong)


def job(**fields: Any) -> Job:
    return Job(**{"name": "a", "image": IMAGE, **fields})


def test_a_pool_is_priced_by_its_machine_and_a_slice_as_a_whole() -> None:
    one = cost.of(job(accelerator={"type": "a100", "count": 4}, timeout_s=3600, spot=False), "gpu", make_target())
    (place,) = one.environments
    assert (place.name, place.rates[0].machine, one.region, one.attempts) == ("a100", "a2-highgpu-4g", "us-central1", 1)
    assert one.worst == place.rates[0].on_demand and not one.at_least
    two = cost.of(
        job(accelerator={"type": "a100", "count": 4}, timeout_s=3600, spot=False, nodes=2), "gpu", make_target()
    )
    assert two.worst == 2 * (one.worst or 0)
    tpu = cost.of(job(accelerator={"type": "v5e-16"}, timeout_s=3600), "gpu", make_target())
    assert (
        tpu.environments[0].rates[0].machine == "v5litepod-16" and tpu.worst == tpu.environments[0].rates[0].on_demand
    )
    attached = gpu_pool("t4", "nvidia-tesla-t4", 2, machine_type="n1-standard-8")
    host = cost.of(job(accelerator={"type": "t4", "count": 2}), "gpu", make_target(pools={"t4": attached}))
    assert host.environments[0].rates[0].machine == "n1-standard-8+nvidia-tesla-t4x2"
    parts = [price("gcp", "us-central1", each).on_demand or 0 for each in ("n1-standard-8", "n1+nvidia-tesla-t4x2")]
    assert all(parts) and host.environments[0].rates[0].on_demand == sum(parts)


def test_both_forms_of_eight_chips_cost_the_slice() -> None:
    label = "tpu-v5-lite-podslice"
    pools = {f"v5e-{hosts}": tpu_pool(f"v5e-{hosts}", label, "2x4", 8 // hosts, hosts) for hosts in (1, 2)}
    for nodes in (1, 2):
        found = cost.of(
            job(accelerator={"type": "v5e-8"}, nodes=nodes, timeout_s=3600), "gpu", make_target(pools=pools)
        )
        assert [each.name for each in found.environments] == [f"v5e-{nodes}"]
        assert found.worst == price("gcp", "us-central1", "v5litepod-8").on_demand


def test_what_spot_takes_away_is_at_least_said() -> None:
    spot = cost.of(job(accelerator={"type": "a100"}, timeout_s=3600, spot=True), "gpu", make_target())
    assert spot.at_least and any("lost_retries" in note for note in spot.notes)
    assert not cost.of(
        job(accelerator={"type": "a100"}, timeout_s=3600, spot=True, lost_retries=2), "g", make_target()
    ).at_least


def test_offers_stand_beside_those_of_other_clouds() -> None:
    from tests.jobs.backends.aws_batch_target import make_target as aws_target

    small = make_target(pools={"cpu": POOLS["cpu"]})
    aws: AwsBatchTarget = aws_target()
    entries = {
        name: Entry(name, each.kind, each) for name, each in {"gke": make_target(), "cpu": small, "aws": aws}.items()
    }
    decision = offers.decide(job(accelerator={"type": "l4"}, cpus=4, memory_mib=8000), entries)
    assert [offer.target for offer in decision.offers] == ["gke"]
    assert {each.target for each in decision.rejections} == {"cpu", "aws"}
    spot = offers.decide(job(accelerator={"type": "a100"}, spot=True), entries).offers[0]
    assert spot.capacity == "spot" and any("20%" in note for note in spot.notes)


class Sockets:
    """One websocket: it answers the handshake, sends `frames`, and keeps what it is sent."""

    def __init__(self, frames: list[bytes], wait_for: bytes = b"") -> None:
        self.received: list[bytes] = []
        self.request = ""
        self._frames, self._wait_for = frames, wait_for
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def done(self) -> None:
        self._thread.join(60)
        self._listener.close()

    def _serve(self) -> None:
        link, _ = self._listener.accept()
        with link:
            while "\r\n\r\n" not in self.request:
                self.request += link.recv(4096).decode()
            headers = dict(line.split(": ", 1) for line in self.request.split("\r\n")[1:] if ": " in line)
            proof = hashlib.sha1((headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode())  # noqa: S324
            accept = base64.b64encode(proof.digest()).decode()
            chosen = headers["Sec-WebSocket-Protocol"].split(",")[0]
            answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            link.sendall(f"{answer}Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {chosen}\r\n\r\n".encode())
            while self._wait_for and self._wait_for not in self.received:
                self.received.append(self._frame(link))
            for frame in self._frames:
                link.sendall(b"\x82" + bytes([len(frame)]) + frame)

    def _frame(self, link: socket.socket) -> bytes:
        head = link.recv(2)
        mask = link.recv(4)
        data = link.recv(head[1] & 127)
        return bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))


class _Exec(Api):
    """Commands go to another port than the rest."""

    port = 0

    def socket(self, path: str, query: list[tuple[str, str]], protocols: list[str]) -> Any:
        self.url = f"http://127.0.0.1:{self.port}"
        return super().socket(path, query, protocols)


def run(
    cluster: Cluster, sockets: Sockets, *, streams: Streams | None = None, **asked: Any
) -> tuple[int, bytes, bytes]:
    out, err = bytearray(), bytearray()
    api = _Exec(cluster.api().url, None, lambda: "token", timing=QUICK)
    api.port = sockets.port
    streams = streams or Streams(lambda is_error, data: (err if is_error else out).extend(data))
    code = shell.run(api, SCOPE, SCOPE.ref("a"), ["sh", "-c", "x y"], asked.get("task"), streams)
    sockets.done()
    return code, bytes(out), bytes(err)


def end(status: dict[str, Any]) -> bytes:
    return b"\x03" + json.dumps(status).encode()


def failure(code: str) -> bytes:
    return end({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": code}]}})


@pytest.fixture
def running(cluster: Cluster) -> Cluster:
    cluster.put(SCOPE.jobs, {"metadata": {"name": "a"}, "spec": {}})
    pod = {"metadata": {"name": "a-1", "labels": {"accel.dev/job": "a"}}, "status": {"phase": "Running"}}
    cluster.put(SCOPE.core("pods"), pod)
    return cluster


def test_a_command_in_a_pod(running: Cluster) -> None:
    sockets = Sockets([b"\x01", b"\x01out", b"\x02err", failure("3")])
    assert run(running, sockets) == (3, b"out", b"err")
    line = sockets.request.split("\r\n")[0]
    assert "/pods/a-1/exec?container=main&command=sh&command=-c&command=x%20y&stdin=false&" in line
    assert "Authorization: Bearer token" in sockets.request and "v5" not in sockets.request
    assert run(running, Sockets([end({"status": "Success"})]))[0] == 0


def test_input_is_handed_on_and_its_end_is_told(running: Cluster) -> None:
    chunks = iter([b"one", b"two", b""])
    out = bytearray()
    streams = Streams(lambda is_error, data: out.extend(data), read=lambda most: next(chunks))
    sockets = Sockets([b"\x01ok", end({"status": "Success"})], wait_for=b"\xff\x00")
    assert run(running, sockets, streams=streams)[0] == 0
    assert sockets.received == [b"\x00one", b"\x00two", b"\xff\x00"] and out == b"ok"


def test_an_end_that_is_not_told_is_no_success(running: Cluster) -> None:
    with pytest.raises(CloudSilent):
        run(running, Sockets([b"\x01out"]))
    with pytest.raises(CloudRefused, match="oops"):
        run(running, Sockets([end({"status": "Failure", "reason": "InternalError", "message": "oops"})]))


def test_a_pod_must_run_and_be_named_where_there_are_several(running: Cluster) -> None:
    sockets = Sockets([])
    with pytest.raises(BadInput, match="has no tasks, not 1"):
        run(running, sockets, task=1)
    running.objects[f"{SCOPE.jobs}/a"]["spec"] = {"completionMode": "Indexed", "completions": 2}
    for index in range(2):
        labels = {"accel.dev/job": "a", "batch.kubernetes.io/job-completion-index": str(index)}
        pod = {"metadata": {"name": f"a-{index}", "labels": labels}, "status": {"phase": "Running"}}
        running.put(SCOPE.core("pods"), pod)
    with pytest.raises(BadInput, match="--task is missing; tasks that run: 0, 1"):
        run(running, sockets)
    api = running.api()
    assert shell.places(api, SCOPE, SCOPE.ref("a")) == Places(word="task", running=(0, 1))
    running.objects[f"{SCOPE.core('pods')}/a-1"]["status"]["phase"] = "Failed"
    with pytest.raises(BadInput, match="no pod of it runs now"):
        run(running, sockets, task=1)
    sockets._listener.close()
    assert shell.places(api, SCOPE, SCOPE.ref("a")).running == (0,)


def test_what_each_pod_asks_for_is_known(running: Cluster) -> None:
    limits = {"nvidia.com/gpu": "2", "google.com/tpu": 4}
    container = {"name": "main", "resources": {"limits": limits}}
    running.objects[f"{SCOPE.jobs}/a"]["spec"] = {"template": {"spec": {"containers": [container]}}}
    found = shell.places(running.api(), SCOPE, SCOPE.ref("a"))
    assert found == Places(word=None, running=(0,), gpus=2, chips=4)
    running.objects[f"{SCOPE.core('pods')}/a-1"]["status"]["phase"] = "Pending"
    with pytest.raises(BadInput, match="no pod of it runs now"):
        shell.places(running.api(), SCOPE, SCOPE.ref("a"))


def test_no_node_of_a_cluster_is_entered(running: Cluster) -> None:
    backend = GkeBackend.of_scope(str(SCOPE))
    with pytest.raises(BadInput, match="--host"):
        backend.run(SCOPE.ref("a"), ["true"], Streams(lambda is_error, data: None), host=True)

"""The sandbox's control plane in a process of its own, and a machine that runs pods as a kubelet would report it."""

import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox.environment import project
from sandbox.kubernetes.client import Cluster, Refusal
from sandbox.kubernetes.nodes import PLAYED

from .forking import Forked
from .waiting import announced


@contextmanager
def kubernetes(home: Path) -> Generator[Cluster]:
    """Run `python -m sandbox.kubernetes` for a folder. Without Google's part it has no nodes of its own."""
    (home / "kubernetes.json").unlink(missing_ok=True)
    with (home / "kubernetes.log").open("wb") as log:
        command = ["-m", "sandbox.kubernetes", "--home", home]
        process = Forked(command, project(), os.environ, log.fileno(), log.fileno())
    try:
        announced(home / "kubernetes.json", process)
        yield Cluster.of(home)
    finally:
        process.terminate()
        process.wait(120)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of one that runs, for all modules that leave their own namespaces behind and nothing else."""
    home = tmp_path_factory.mktemp("home")
    with kubernetes(home):
        yield home


@contextmanager
def machine(cluster: Cluster, name: str, gpus: int = 8, busy_s: float = 0) -> Generator[None]:
    """A node with GPUs, whose pods succeed `busy_s` seconds after they were bound."""
    size = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    body = {
        "metadata": {
            "name": name,
            "annotations": {PLAYED: "yes"},
            "labels": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
        },
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {
            "capacity": size,
            "allocatable": size,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
    cluster.create("/api/v1/nodes", body)
    stop = threading.Event()
    kubelet = threading.Thread(target=_run_pods, args=(cluster, name, busy_s, stop))
    kubelet.start()
    try:
        yield
    finally:
        stop.set()
        kubelet.join()
        cluster.delete(f"/api/v1/nodes/{name}")


def _run_pods(cluster: Cluster, node: str, busy_s: float, stop: threading.Event) -> None:
    seen: dict[str, float] = {}
    while not stop.wait(0.1):
        for pod in cluster.list("/api/v1/pods", fieldSelector=f"spec.nodeName={node}"):
            place = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            bound = seen.setdefault(pod["metadata"]["uid"], time.monotonic())
            try:
                if "deletionTimestamp" in pod["metadata"]:
                    cluster.delete(place, gracePeriodSeconds=0)
                elif pod["status"]["phase"] == "Pending":
                    cluster.patch(f"{place}/status", {"status": {"phase": "Running"}})
                elif pod["status"]["phase"] == "Running" and time.monotonic() >= bound + busy_s:
                    cluster.patch(f"{place}/status", {"status": {"phase": "Succeeded"}})
            except Refusal as refusal:
                if refusal.status not in (404, 409):  # gone, or changed meanwhile
                    raise

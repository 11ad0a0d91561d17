"""A GKE target with pools of several kinds, and requests for it, for tests of the backend."""

from typing import Any

from accel.contract.gke import GkePool, GkeTarget, GkeVolume, Taint
from jobs.backends.base import Request
from jobs.backends.gke.request import render
from tests.jobs.backends.small_request import small_request

GPU_TAINT = Taint(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE")
TPU_TAINT = Taint(key="google.com/tpu", value="present", effect="NO_SCHEDULE")
SPOT_TAINT = Taint(key="cloud.google.com/gke-spot", value="true", effect="NO_SCHEDULE")
IMAGE = "us-docker.pkg.dev/acme/ml/train:1.0"


def pool(key: str, **changes: Any) -> GkePool:
    values: dict[str, Any] = {
        "name": f"{key}-1a2b3c4",
        "key": key,
        "machine_type": "e2-standard-8",
        "zones": ["us-central1-a", "us-central1-b"],
        "capacity": "on-demand",
        "max_nodes": 10,
        "cpu_m": 7500,
        "memory_mib": 27_000,
        "disk_gib": 80,
    }
    values |= changes
    values["labels"] = {"cloud.google.com/gke-nodepool": values["name"], **changes.get("labels", {})}
    return GkePool(**values)


def gpu_pool(key: str, kind: str, gpus: int, **changes: Any) -> GkePool:
    labels = {"cloud.google.com/gke-accelerator": kind, **changes.pop("labels", {})}
    values = {"accelerator": kind, "gpus": gpus, "taints": [GPU_TAINT], "driver": "default", "labels": labels}
    return pool(key, **(values | changes))


def tpu_pool(key: str, label: str, topology: str, chips: int, hosts: int, **changes: Any) -> GkePool:
    labels = {"cloud.google.com/gke-tpu-accelerator": label, "cloud.google.com/gke-tpu-topology": topology}
    values = {
        "tpu_accelerator": label,
        "tpu_topology": topology,
        "tpu_chips": chips,
        "hosts": hosts,
        "max_nodes": hosts,
        "taints": [TPU_TAINT],
        "labels": labels,
    }
    return pool(key, **(values | changes))


POOLS = {
    each.key: each
    for each in (
        pool("cpu"),
        gpu_pool(
            "a100", "nvidia-tesla-a100", 4, machine_type="a2-highgpu-4g", cpu_m=46_000, memory_mib=320_000, max_nodes=4
        ),
        gpu_pool(
            "spot",
            "nvidia-tesla-a100",
            4,
            machine_type="a2-highgpu-4g",
            cpu_m=46_000,
            memory_mib=320_000,
            max_nodes=8,
            capacity="spot",
            labels={"cloud.google.com/gke-spot": "true"},
            taints=[GPU_TAINT, SPOT_TAINT],
        ),
        gpu_pool("l4", "nvidia-l4", 1, machine_type="g2-standard-8", cpu_m=7500, memory_mib=27_000),
        gpu_pool(
            "mig",
            "nvidia-tesla-a100",
            7,
            machine_type="a2-highgpu-1g",
            cpu_m=11_000,
            memory_mib=78_000,
            gpu_partition="1g.5gb",
        ),
        tpu_pool(
            "v5e",
            "tpu-v5-lite-podslice",
            "4x4",
            4,
            4,
            machine_type="ct5lp-hightpu-4t",
            cpu_m=110_000,
            memory_mib=180_000,
        ),
        tpu_pool(
            "v5e-one",
            "tpu-v5-lite-podslice",
            "2x2",
            4,
            1,
            machine_type="ct5lp-hightpu-4t",
            cpu_m=110_000,
            memory_mib=180_000,
            max_nodes=3,
        ),
    )
}


def make_target(**changes: Any) -> GkeTarget:
    """A queue over all pools, with JobSet."""
    values: dict[str, Any] = {
        "project": "acme-ml",
        "location": "us-central1",
        "cluster": "gpu",
        "endpoint": "203.0.113.10",
        "ca_certificate": "",
        "namespace": "team-a",
        "queue": "team-a",
        "priorities": ["normal", "urgent"],
        "service_account": "runner",
        "jobset": True,
        "pools": POOLS,
        "volumes": {"data": GkeVolume(claim="training-pvc"), "public": GkeVolume(claim="public", read_only=True)},
    }
    return GkeTarget(**{**values, **changes})


def make_request(target: GkeTarget | None = None, text: str = "golden", **fields: Any) -> Request:
    """The request of a small job under the key of a text."""
    values: dict[str, Any] = {"image": IMAGE, "command": ["python", "train.py"], **fields}
    return small_request(render, "gpu", target or make_target(), text, **values)


def spec_of(target: GkeTarget | None = None, **fields: Any) -> dict[str, Any]:
    """The spec of its pods."""
    body = make_request(target, **fields).body["objects"][-1]
    job = body["spec"]["replicatedJobs"][0]["template"]["spec"] if body["kind"] == "JobSet" else body["spec"]
    return job["template"]["spec"]


def pools_of(spec: dict[str, Any]) -> list[str]:
    """The pools that a pod may run in."""
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return terms[0]["matchExpressions"][0]["values"]

"""A GPU pool whose driver does not come, tried by the engine: the update fails and says which pool and whose driver."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.kubernetes.client import Cluster
from tests.support.engine import Engine, Sandbox
from tests.support.google_fake import COMPUTE, CONTAINER, Fake
from tests.support.soak import soak_only
from tests.support.waiting import until

ZONE, CLUSTERS = "us-central1-a", f"{CONTAINER}/us-central1-a/clusters"
SUBNETS = f"{COMPUTE}/regions/us-central1/subnetworks"
PROGRAM = """
import pulumi
import pulumi_kubernetes as k8s
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.node_labels import gke_pool
from components.kubernetes.pools import Pool
from components.kubernetes.probe import DriverProbe, DriverProbeArgs, DriverProbeSpec

spec = GpuPoolSpec(
    machine_type="g2-standard-4", max_nodes=1, driver="operator", image_type="UBUNTU_CONTAINERD", secure_boot=False
)
pool = Pool(facts=gke_pool("l4", spec, "l4-1a2b3c4", ["us-central1-a"]), name="l4-1a2b3c4")
# What stands for nvidia-smi: it is scheduled only where the node offers a GPU.
probe = DriverProbeSpec(image="local/examples", command=["python", "-c", "print('a GPU')"], timeout_s=10)
provider = k8s.Provider("it", kubeconfig=__KUBECONFIG__)
args = DriverProbeArgs(spec=probe, namespace="default", pools={"l4": pool})
DriverProbe("driver-probe", args, pulumi.ResourceOptions(providers=[provider]))
"""


@pytest.fixture
def bare_node(google: Sandbox) -> Iterator[Cluster]:
    """A cluster with a node of a pool whose driver Google leaves to others, and nobody installs."""
    told = json.loads((google.home / "google.json").read_text())
    fake = Fake(google.home, told["url"], (google.home / "key").read_text())
    fake.done("POST", f"{COMPUTE}/global/networks", {"name": "bare", "autoCreateSubnetworks": False})
    fake.done("POST", SUBNETS, {"name": "bare", "network": "global/networks/bare", "ipCidrRange": "10.0.0.0/20"})
    body = {"name": "bare", "initialNodeCount": 1, "network": "bare", "subnetwork": "bare"}
    fake.done("POST", CLUSTERS, {"cluster": body})
    driver = {"gpuDriverVersion": "INSTALLATION_DISABLED"}
    gpus = {"acceleratorType": "nvidia-l4", "acceleratorCount": "1", "gpuDriverInstallationConfig": driver}
    config = {"machineType": "g2-standard-4", "imageType": "UBUNTU_CONTAINERD", "accelerators": [gpus]}
    body = {"name": "l4-1a2b3c4", "config": config, "initialNodeCount": 1}
    fake.done("POST", f"{CLUSTERS}/bare/nodePools", {"nodePool": body})
    cluster = Cluster.of(google.home)
    until(lambda: node_of(cluster))
    yield cluster
    fake.done("DELETE", f"{CLUSTERS}/bare")
    fake.done("DELETE", f"{SUBNETS}/bare")
    fake.done("DELETE", f"{COMPUTE}/global/networks/bare")


def node_of(cluster: Cluster) -> dict[str, Any] | None:
    """The pool's node, once it takes pods."""
    for node in cluster.list("/api/v1/nodes", labelSelector="cloud.google.com/gke-nodepool=l4-1a2b3c4"):
        if any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"]):
            return node
    return None


@soak_only
def test_a_driver_that_does_not_come_fails_the_update(google: Sandbox, bare_node: Cluster, tmp_path: Path) -> None:
    told = json.loads((google.home / "kubernetes.json").read_text())
    where = {"server": told["url"], "certificate-authority-data": told["ca"]}
    kubeconfig = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": where}],
        "users": [{"name": "it", "user": {"token": told["token"]}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    program = PROGRAM.replace("__KUBECONFIG__", repr(json.dumps(kubeconfig)))
    engine = Engine(tmp_path / "bare", google, program, config={})
    refused = engine.up(check=False)
    try:
        assert refused.exit_code != 0 and "driver-probe-l4" in refused.text, refused.text
        (said,) = [text for text in refused.diagnostics if "is not ready" in text]
        assert "driver-probe-l4-operator" in said and "timed out" in said
        assert "Insufficient nvidia.com/gpu" in said, "the reason is told, and not only that time is over"
        node = node_of(bare_node)
        assert node and "nvidia.com/gpu" not in node["status"]["allocatable"]
    finally:
        engine.destroy()

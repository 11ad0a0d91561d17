"""Network, cluster and workloads of the production files as stacks of their own, each on the one before, with
drivers that are proven."""

from pathlib import Path
from typing import Any

from sandbox.kubernetes.client import Cluster
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

# What stands for nvidia-smi: it is scheduled only where the node offers a GPU.
PROBE = {"image": "local/examples", "command": ["python", "-c", "print('a GPU')"], "timeout_s": 60}
LAYERS = ("gke-prod-network", "gke-prod-cluster", "gke-prod-workloads")


def layer(name: str) -> dict[str, Any]:
    """What a stack's file says, in the sandbox's project and without what keeps it from being destroyed."""
    values = put("gcp.project", "accel-sandbox", environment(name, "gcp"))
    if name == "gke-prod-cluster":
        values = put("gcp.cluster.deletion_protection", False, values)
    if name == "gke-prod-workloads":
        values = put("gcp.workloads.namespaces.jobs.protect", False, values)
        values = put("gcp.workloads.verify", PROBE, values)
    return values


@soak_only
def test_three_layers(google: Sandbox, tmp_path: Path) -> None:
    stacks = [Stack(tmp_path / name, google, layer(name), stack=name) for name in LAYERS]
    network, cluster, workloads = (stack.up().outputs for stack in stacks)
    assert network["gcp_network"]["subnets"].keys() == {"us-central1"}
    told = cluster["clusters"]["cluster"]
    small, large = workloads["targets"]["small"], workloads["targets"]["large"]
    assert small["endpoint"] == told["endpoint"]
    assert small["pools"] == {key: told["pools"][key] for key in ("l4-spot", "l4")}
    assert large["pools"]["h100"]["gpus"] == 8

    for stack in stacks:
        assert stack.up("--expect-no-changes").ops("same") == {}, stack.stack
    kept = Cluster.of(google.home)
    probes = kept.list("/apis/batch/v1/namespaces/jobs/jobs")
    assert {one["metadata"]["name"].rpartition("-")[0] for one in probes} == {
        f"driver-probe-{pool}-latest" for pool in ("l4", "l4-spot", "h100")
    }, "pools that began with no node, and each was proven"
    assert all(one["status"].get("succeeded") == 1 for one in probes)
    assert len(kept.list("/apis/kueue.x-k8s.io/v1beta1/clusterqueues")) == 2

    # A pool that the other stack does not have is told of before anything is made.
    wrong = put("gcp.workloads.targets.small", {"namespace": "jobs", "pools": ["l5"]}, layer(LAYERS[2]))
    stacks[2].write_environment(wrong)
    refused = stacks[2].preview(check=False)
    assert "gcp.workloads.targets.small.pools[0]: no 'l5'; nearest: l4" in refused.text
    stacks[2].write_environment(layer(LAYERS[2]))

    for stack in reversed(stacks):
        stack.destroy()
    assert kept.list("/apis/kueue.x-k8s.io/v1beta1/clusterqueues") == []

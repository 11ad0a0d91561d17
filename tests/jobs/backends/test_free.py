"""Free GPUs of a target: what each platform's answer comes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from accel.contract.gke import POOL_LABEL
from accel.diagnostics.errors import CloudRefused
from jobs.backends.aws_batch import AwsBatchBackend
from jobs.backends.free_gpus import FreeGpus
from jobs.backends.gke import GkeBackend
from jobs.backends.gke.quota import KUEUE, free
from tests.jobs.backends import gke_target
from tests.jobs.backends.aws_batch_target import QUICK, make_target
from tests.jobs.backends.gke_cluster import Cluster


class Environments:
    """DescribeComputeEnvironments, of environments that Batch has scaled to so many vCPUs."""

    def __init__(self, **desired: int) -> None:
        self.desired = desired
        self.state = "ENABLED"

    def describe_compute_environments(self, computeEnvironments: list[str]) -> dict[str, Any]:  # noqa: N803
        return {
            "computeEnvironments": [
                {
                    "computeEnvironmentArn": arn,
                    "state": self.state,
                    "computeResources": {"maxvCpus": 192, "desiredvCpus": self.desired[arn.rpartition("/")[2]]},
                }
                for arn in computeEnvironments
            ]
        }


def test_aws_batch_counts_the_gpus_that_max_vcpus_leaves() -> None:
    target = make_target()
    backend = AwsBatchBackend("gpu", target, timing=QUICK)
    first, second = (each.name for each in target.environments)
    backend._clients.batch = batch = Environments(**{first: 4, second: 192})
    assert isinstance(backend, FreeGpus)
    # A g5.xlarge has 1 GPU and 4 vCPUs.
    assert [str(each) for each in backend.free()] == [f"{first}: 47 of 48", f"{second}: 0 of 48"]
    batch.state = "DISABLED"
    assert [each.free for each in backend.free()] == [0, 0]
    plain = [each.model_copy(update={"instance_types": ["c5"]}) for each in target.environments]
    backend._target = target.model_copy(update={"environments": plain})
    assert list(backend.free()) == []


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.stop()


def node(cluster: Cluster, name: str, labels: dict[str, str], **spec: Any) -> None:
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "46", "nvidia.com/gpu": "4"}},
    }
    cluster.put("/api/v1/nodes", body)


def pod(cluster: Cluster, name: str, where: str | None, gpus: int, phase: str = "Running") -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"containers": [container, {"name": "log"}], **({"nodeName": where} if where else {})}
    cluster.put("/api/v1/pods", {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}})


def test_gke_counts_what_nodes_have_left_and_may_still_come(cluster: Cluster) -> None:
    target = gke_target.make_target(queue="team", pools={"a100": gke_target.POOLS["a100"]})
    node(cluster, "n1", {POOL_LABEL: "a100"})
    node(cluster, "n2", {"cloud.google.com/gke-nodepool": target.pools["a100"].name})
    node(cluster, "n3", {POOL_LABEL: "a100"}, unschedulable=True)
    node(cluster, "other", {POOL_LABEL: "elsewhere"})
    pod(cluster, "mine", "n1", 3)
    pod(cluster, "done", "n2", 4, "Succeeded")
    pod(cluster, "waits", None, 4, "Pending")
    cluster.put(
        f"{KUEUE}/namespaces/{target.namespace}/localqueues",
        {"metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}},
    )
    flavors = [
        {
            "name": "a100",
            "resources": [{"name": "cpu", "nominalQuota": "46k"}, {"name": "nvidia.com/gpu", "nominalQuota": 12}],
        }
    ]
    reserved = [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "5"}]}]
    cluster.put(
        f"{KUEUE}/clusterqueues",
        {
            "metadata": {"name": "all"},
            "spec": {"resourceGroups": [{"flavors": flavors}]},
            "status": {"flavorsReservation": reserved},
        },
    )
    found = [str(each) for each in free(cluster.api(), target)]
    # 1 on n1 and 4 on n2; one more node of 4 may come.
    assert found == ["a100: 9 of 16 (5 idle)", "quota of team: 7 of 12"]
    cluster.forbidden.add("clusterqueues")
    assert [each.place for each in free(cluster.api(), target)] == ["a100"]
    cluster.forbidden.add("pods")
    with pytest.raises(CloudRefused):
        free(cluster.api(), target)


def test_a_target_without_gpus_asks_nobody(cluster: Cluster) -> None:
    target = gke_target.make_target(pools={"cpu": gke_target.POOLS["cpu"]})
    assert list(free(cluster.api(), target)) == [] and not cluster.calls
    assert isinstance(GkeBackend("gke", target), FreeGpus)

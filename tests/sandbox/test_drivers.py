"""When a node of the sandbox has its GPUs: a pod of a DaemonSet that installs the driver has to be ready, not only
running."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sandbox.kubernetes.loop import Drivers
from sandbox.kubernetes.nodes import NO_PLUGIN_LABEL, groups_of
from sandbox.kubernetes.pool import Pool
from sandbox.kubernetes.settings import Settings
from tests.sandbox.test_nodes_of_a_pool import gpus, pool

GPU = "nvidia.com/gpu"
READY, NOT_READY = {"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}


def pod(owner: str, node: str, phase: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": owner, "ownerReferences": [{"kind": "DaemonSet", "name": owner}]},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": [*conditions]},
    }


def has_gpus(of: Pool, *pods: dict[str, Any], labels: dict[str, str] | None = None) -> bool:
    """Whether the one node of a pool has its GPUs after a look at these pods."""
    node = groups_of(of)[0].node(10250)
    node["metadata"]["labels"] |= labels or {}
    patched: list[Any] = []
    cluster = SimpleNamespace(patch=lambda path, change: patched.append(change) or node)
    nodes = SimpleNamespace(all=lambda: [node], put=lambda body: None)
    here = [{**each, "spec": {"nodeName": node["metadata"]["name"]}} for each in pods]
    drivers = Drivers(cast(Any, cluster), cast(Any, nodes), cast(Any, SimpleNamespace(all=lambda: here)))
    for _ in range(2):  # the driver is seen, and then there after no time
        drivers.tick([of], Settings(driver_s=0))
    return [change["status"]["allocatable"] for change in patched] == [{GPU: "1"}]


@pytest.mark.parametrize("name", ["nvidia-driver-installer", "nvidia-driver-daemonset"])
@pytest.mark.parametrize(
    ("phase", "conditions", "installed"),
    [
        ("Running", [READY], True),
        ("Running", [NOT_READY], False),
        ("Running", [], False),
        ("Running", [{"type": "ContainersReady", "status": "True"}], False),
        ("Pending", [NOT_READY], False),
        ("Failed", [NOT_READY], False),
    ],
)
def test_a_driver_is_there_once_its_pod_is_ready(
    name: str, phase: str, conditions: list[dict[str, str]], installed: bool
) -> None:
    bare = pool("n1-standard-4", gpus(driver="INSTALLATION_DISABLED"))
    assert has_gpus(bare, pod(name, "n", phase, *conditions)) == installed


@pytest.mark.parametrize(("condition", "reported"), [(READY, True), (NOT_READY, False)])
def test_an_own_device_plugin_reports_gpus_once_its_pod_is_ready(condition: dict[str, str], reported: bool) -> None:
    managed = pool("n1-standard-4", gpus(driver="LATEST"))
    plugin = pod("nvidia-device-plugin-daemonset", "n", "Running", condition)
    assert has_gpus(managed, plugin, labels={NO_PLUGIN_LABEL: "true"}) == reported


def test_what_gke_installs_needs_no_pod() -> None:
    assert has_gpus(pool("n1-standard-4", gpus(driver="LATEST")))

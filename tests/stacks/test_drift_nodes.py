"""What a node of GKE lacks, and what is none of our business."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accel.contract.gke import POOL_LABEL, GkePool
from stacks.operations.drift.comparison import GPU, SETTLING, judge_node

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
DRIVER = "cloud.google.com/gke-gpu-driver-version"
OWN = {"team": "ml", DRIVER: "latest", "cloud.google.com/machine-family": "g2"}


def pool(**changed: Any) -> GkePool:
    given = {"name": "l4-1", "key": "l4", "machine_type": "g2-standard-8", "zones": [], "capacity": "spot"}
    sizes = {"max_nodes": 1, "labels": OWN, "cpu_m": 1, "memory_mib": 1, "gpus": 1, "driver": "latest"}
    return GkePool.model_validate(given | sizes | changed)


def node(age: timedelta, **changed: Any) -> dict[str, Any]:
    labels = {POOL_LABEL: "l4", "team": "ml", DRIVER: "latest"} | changed.pop("labels", {})
    metadata = {"name": "n", "labels": labels, "creationTimestamp": (NOW - age).isoformat()}
    status: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {}, "capacity": {}}
    return {"metadata": metadata, "status": {**status, **changed}}


OLD, NEW = SETTLING + timedelta(minutes=1), SETTLING - timedelta(minutes=1)


@pytest.mark.parametrize(
    "each, of, found",
    [
        (node(OLD), pool(), ["device plugin"]),
        (node(OLD, allocatable={GPU: "1"}), pool(), []),
        (node(OLD, allocatable={GPU: "1"}), pool(gpus=2), ["device plugin"]),
        # Drivers are being installed.
        (node(NEW), pool(), []),
        (node(NEW, capacity={GPU: "1"}), pool(), ["device plugin"]),
        (node(OLD, conditions=[]), pool(), []),
        (node(OLD), pool(gpus=0, driver=None), []),
        (node(OLD, allocatable={GPU: "1"}), pool(key="other"), ["node label"]),
        (node(OLD, allocatable={GPU: "1"}, labels={"team": "web"}), pool(), ["node label"]),
        (node(OLD, allocatable={GPU: "1"}, labels={DRIVER: ""}), pool(), ["node label"]),
    ],
)
def test_what_a_node_lacks(each: dict[str, Any], of: GkePool, found: list[str]) -> None:
    assert [drift.what for drift in judge_node(each, of, NOW)] == found

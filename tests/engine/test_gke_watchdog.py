"""Queues with provisioning get their watchdog, and it knows the pools by the names that they have now."""

import json
from pathlib import Path
from typing import Any

from sandbox.kubernetes.client import Cluster
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

PLACE = "/api/v1/namespaces/kube-system/configmaps/accel-provisioning-watchdog"
DEPLOYMENT = "/apis/apps/v1/namespaces/kube-system/deployments/accel-provisioning-watchdog"
FLEX = {
    "kind": "gpu",
    "machine_type": "g2-standard-8",
    "capacity": "flex-start",
    "queued_provisioning": True,
    "driver": "default",
}


def values(**pool: Any) -> dict[str, Any]:
    found = environment("sandbox", "gcp")
    for part in ("vms", "batch", "vertex", "images"):
        del found["gcp"][part]
    found = put("gcp.pools.flex", {**FLEX, "max_nodes": 2, **pool}, found)
    found["gcp"]["workloads"].pop("verify", None)
    return found


def queued(found: dict[str, Any]) -> dict[str, Any]:
    found = put("gcp.workloads.queueing.queues.training.pools", [{"pool": "flex"}], found)
    return put("gcp.workloads.queueing.provisioning", {"watchdog": {"age_limit_s": 7200}}, found)


@soak_only
def test_the_watchdog_comes_and_goes_with_provisioning(google: Sandbox, tmp_path: Path) -> None:
    stack = Stack(tmp_path / "watched", google, queued(values()), stack="watched")
    stack.up()
    cluster = Cluster.of(google.home)
    first = json.loads(cluster.get(PLACE)["data"]["pools.json"])
    assert "flex" in first and first["flex"].startswith("flex-")
    (container,) = cluster.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"]
    told = {each["name"]: each["value"] for each in container["env"]}
    check = cluster.get(f"/apis/kueue.x-k8s.io/v1beta1/admissionchecks/{told['CHECK']}")
    assert (check["metadata"]["name"], told["AGE_S"]) == ("accel-queueing", "7200")
    assert stack.up("--expect-no-changes").ops("same") == {}

    # A pool that is replaced keeps its key and has another name.
    stack.write_environment(queued(values(driver="latest")))
    stack.up()
    now = json.loads(cluster.get(PLACE)["data"]["pools.json"])
    assert now.keys() == first.keys() and now["flex"] != first["flex"]

    stack.write_environment(values())
    stack.up()
    maps = cluster.list("/api/v1/namespaces/kube-system/configmaps")
    assert PLACE.rpartition("/")[2] not in {each["metadata"]["name"] for each in maps}
    stack.destroy()

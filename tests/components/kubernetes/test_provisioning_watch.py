"""The watchdog's judgement: which waits it ends, and how; and that it runs as one file of an older Python."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import components.kubernetes.provisioning_watch as watch
from accel.contract import gke
from components.kubernetes.provisioning_watch import Act, Limits, PendingRequest, decide, missing, waits, workload_of
from tests.support import memory

from . import makers

SCRIPT = Path(watch.__file__)
DAY = 86_400.0
GIVE_UP = Limits(age_s=7 * DAY, settle_s=900, recreate=False, most=2)
RECREATE = Limits(age_s=7 * DAY, settle_s=900, recreate=True, most=2)
POOLS = {"flex": "flex-0a1b2c3", "steady": "steady-0a1b2c3"}
OLD = PendingRequest(8 * DAY, 8 * DAY)
GONE = PendingRequest(3600, 3600, "pool flux is gone")


def workload(*true: str, active: bool = True, asked: str | None = None, marked: bool = False) -> dict[str, Any]:
    return {
        "metadata": {
            "labels": {watch.ASKING_AGAIN: "yes"} if marked else {},
            "annotations": {watch.ASKED_AGAIN: asked} if asked else {},
        },
        "spec": {"active": active},
        "status": {"conditions": [{"type": each, "status": "True"} for each in true]},
    }


RESERVED = workload("QuotaReserved")
OVER = "; nodes were asked for anew 2 times before"


@pytest.mark.parametrize(
    "found, asked, limits, act",
    [
        # It waits as it should.
        (RESERVED, [PendingRequest(6 * DAY, 6 * DAY)], GIVE_UP, Act()),
        (RESERVED, [], GIVE_UP, Act()),
        (workload("QuotaReserved", "Admitted"), [OLD], GIVE_UP, Act()),
        (workload("Finished"), [OLD], GIVE_UP, Act()),
        # Its pool is gone.
        (RESERVED, [GONE], GIVE_UP, Act("anew", "pool flux is gone", 1)),
        (RESERVED, [PendingRequest(3600, 60, "pool flux is gone")], GIVE_UP, Act()),
        (workload("QuotaReserved", asked="1; old"), [GONE], GIVE_UP, Act("anew", "pool flux is gone", 2)),
        (workload("QuotaReserved", asked="2; old"), [GONE], RECREATE, Act("give-up", "pool flux is gone" + OVER)),
        # It is too old.
        (RESERVED, [OLD], GIVE_UP, Act("give-up", "no nodes came in 168 h")),
        (RESERVED, [OLD], RECREATE, Act("anew", "no nodes came in 168 h", 1)),
        (workload(asked="2; old"), [OLD], RECREATE, Act("give-up", "no nodes came in 168 h" + OVER)),
        (RESERVED, [PendingRequest(8 * DAY, 8 * DAY, deleted=True)], GIVE_UP, Act()),
        # It is on its way back into the queue.
        (workload("QuotaReserved", active=False, marked=True), [OLD], GIVE_UP, Act()),
        (workload(active=False, marked=True), [OLD], GIVE_UP, Act("delete", "asked anew")),
        (workload(active=False, marked=True), [PendingRequest(1, 1, deleted=True)], GIVE_UP, Act()),
        (workload(active=False, marked=True), [], GIVE_UP, Act("wake")),
        (workload(marked=True), [], GIVE_UP, Act("wake")),
        # It was stopped, by the watchdog or by somebody else.
        (workload(active=False), [OLD], GIVE_UP, Act("delete", "the workload is not active")),
        (workload(active=False), [], GIVE_UP, Act()),
    ],
)
def test_what_is_done(found: dict[str, Any], asked: list[PendingRequest], limits: Limits, act: Act) -> None:
    assert decide(found, asked, limits) == act


@pytest.mark.parametrize(
    "selectors, details, says",
    [
        ([{"accel.dev/pool": "flex"}], {}, None),
        ([{"accel.dev/pool": "flux"}], {}, "pool flux is gone"),
        ([{"accel.dev/pool": "flex"}, {"accel.dev/pool": "flux"}], {}, "pool flux is gone"),
        ([{"cloud.google.com/gke-nodepool": "flex-0a1b2c3"}], {}, None),
        ([{"cloud.google.com/gke-nodepool": "flex-7777777"}], {}, "pool flex-7777777 is gone"),
        ([{"team": "ml"}], {}, None),
        ([], {"NodePoolName": "flex-0a1b2c3"}, None),
        # A pool that was replaced keeps its key, and has another name.
        ([{"accel.dev/pool": "flex"}], {"NodePoolName": "flex-7777777"}, "pool flex-7777777 is gone"),
        ([], {"NodePoolName": "nap-g2-1", "NodePoolAutoProvisioned": "true"}, None),
    ],
)
def test_which_pool_is_missing(selectors: list[dict[str, str]], details: dict[str, str], says: str | None) -> None:
    assert missing(selectors, details, POOLS) == says


def request(name: str, *true: str, kind: str = "Workload", api: str = "kueue.x-k8s.io/v1beta1") -> dict[str, Any]:
    owner = {"apiVersion": api, "kind": kind, "name": "job-a"}
    conditions = [{"type": each, "status": "True"} for each in true]
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "status": {"conditions": conditions}}


def test_only_requests_of_the_stacks_check_are_looked_at() -> None:
    assert workload_of(request("job-a-accel-queueing-12"), "accel-queueing") == "job-a"
    assert workload_of(request("job-a-dws-1"), "accel-queueing") is None
    assert workload_of(request("job-a-accel-queueing-mine"), "accel-queueing") is None
    assert workload_of(request("job-a-accel-queueing-1", kind="Job", api="batch/v1"), "accel-queueing") is None
    assert workload_of({"metadata": {"name": "by-hand"}}, "accel-queueing") is None


@pytest.mark.parametrize("kind", ["Provisioned", "Failed", "BookingExpired", "CapacityRevoked"])
def test_a_request_that_has_ended_does_not_wait(kind: str) -> None:
    assert waits(request("a", "Accepted"))
    assert waits({"metadata": {"name": "a"}})
    assert not waits(request("a", "Accepted", kind))


def test_the_names_are_the_contracts() -> None:
    for name in ("POOL_LABEL", "ASKED_AGAIN", "ASKING_AGAIN", "GIVEN_UP"):
        assert getattr(watch, name) == getattr(gke, name)


def test_it_runs_alone(tmp_path: Path) -> None:
    """As the pod has it: the one file, and nothing of the project beside it."""
    ast.parse(SCRIPT.read_text(), feature_version=(3, 9))
    alone = tmp_path / "watch.py"
    alone.write_text(SCRIPT.read_text())
    done = subprocess.run(
        [sys.executable, "-I", str(alone)], cwd=tmp_path, env={"PATH": ""}, capture_output=True, text=True, timeout=120
    )
    assert done.stderr.splitlines()[-1] == "KeyError: 'KUBERNETES_SERVICE_HOST'"


def made(kind: str) -> dict[str, Any]:
    return memory.run(lambda: makers.watchdog("one")).one(f":{kind}").inputs


def test_the_pod_may_do_little() -> None:
    spec = made("Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "@sha256:" in container["image"] and container["resources"]["limits"]["memory"]
    rules = made("ClusterRole")["rules"]
    assert {rule["resources"][0]: rule["verbs"] for rule in rules} == {
        "provisioningrequests": ["list", "delete"],
        "workloads": ["list", "get", "patch"],
        "podtemplates": ["get"],
    }


def test_the_pod_is_told_pools_and_limits() -> None:
    (container,) = made("Deployment")["spec"]["template"]["spec"]["containers"]
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "CHECK": "accel-q",
        "POOLS": "/etc/accel/pools.json",
        "EVERY_S": "60",
        "AGE_S": "604800",
        "SETTLE_S": "900",
        "AT_LIMIT": "recreate",
        "MOST": "3",
    }
    data = made("ConfigMap")["data"]
    assert data["pools.json"] == '{"flex": "flex-0a1b2c3", "steady": "steady-0a1b2c3"}'
    assert data["provisioning_watch.py"] == SCRIPT.read_text()

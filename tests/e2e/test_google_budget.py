"""A Google budget that is crossed, on a real control plane: new jobs are refused, queues held, pools come to nothing,
a request for a TPU is taken back, a running job saves its state. `drill` says so beforehand, `resume` undoes it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.google.billing import ACCOUNT
from sandbox.kubernetes.client import Cluster
from tests.support import commands
from tests.support.engine import Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only
from tests.support.waiting import until

from .conftest import Shell, shell_on
from .google import PROJECT, Call, caller

QUEUE = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/training"
TPU = f"tpu.googleapis.com/v2/projects/{PROJECT}/locations/us-central1-a/queuedResources"
BUDGET = {
    "billing_account": ACCOUNT,
    "amount": 1000,
    "recipients": {"billing_admins": True},
    "stop": {"running": {"after_min": 0}},
}
IDLE = {"scale_up_s": 0.2, "driver_s": 0.1, "grace_s": 3, "clock_offset_s": 700}
"""The sandbox's machines, ten minutes later: those without work go."""


def section(max_nodes: int = 4) -> dict[str, Any]:
    """A cluster with one pool of GPUs, its queue, and a request for a TPU."""
    values = environment("sandbox", cloud="gcp")
    kept = ("project", "region", "network", "accounts", "cluster", "pools", "workloads")
    gcp = {key: value for key, value in values["gcp"].items() if key in kept}
    gcp["pools"] = {key: gcp["pools"][key] for key in ("system", "l4-spot")}
    gcp["workloads"]["queueing"]["queues"]["training"]["pools"] = [{"pool": key} for key in ("l4-spot", "system")]
    gcp["vms"] = {"tpu_queues": {"waits": {"zone": "us-central1-a", "accelerator_type": "v5litepod-4"}}}
    gcp["budgets"] = {"ml": BUDGET}
    return put("gcp", put("pools.l4-spot.max_nodes", max_nodes, gcp), values)


@pytest.fixture(scope="module")
def call(google: Sandbox) -> Iterator[Call]:
    ask = caller(google)
    ask("POST", "sandbox-api/faults", {"stockout": ["v5litepod-4"]})
    yield ask
    ask("DELETE", "sandbox-api/faults")


@pytest.fixture(scope="module")
def gke(google: Sandbox, call: Call, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("budget"), google, section(), stack="budget")
    stack.up_targets()
    yield stack
    stack.destroy()


@pytest.fixture
def shell(gke: Stack, google: Sandbox, tmp_path: Path) -> Shell:
    return shell_on(google, gke.folder / "targets.json", tmp_path)


def spend(call: Call, budget: str, actual: float) -> Any:
    """What the billing account says; the function's call with it, once that has ended."""
    sent = call("POST", "sandbox-api/spend", {"budget": budget, "actual": actual})["messageId"]

    def ended() -> Any:
        calls = call("GET", "sandbox-api/functions")["calls"]
        return next((each for each in calls if each["message"] == sent and each["ended"]), None)

    return until(ended)


def autoscaling(call: Call) -> dict[str, Any]:
    """Of each pool, by the author's key."""
    found = call("GET", f"container.googleapis.com/v1/projects/{PROJECT}/locations/-/clusters")["clusters"]
    pools = [pool for cluster in found for pool in cluster["nodePools"]]
    return {pool["config"]["labels"]["accel.dev/pool"]: pool.get("autoscaling", {}) for pool in pools}


def requested(call: Call) -> list[str]:
    """The states of requests for TPUs."""
    return [each["state"]["state"] for each in call("GET", TPU).get("queuedResources", [])]


@soak_only
def test_a_crossed_budget_and_back(gke: Stack, google: Sandbox, call: Call, shell: Shell, tmp_path: Path) -> None:
    cluster, name = Cluster.of(google.home), gke.outputs()["gcp_budgets"]["ml"]["name"]
    before, up, saved = autoscaling(call), tmp_path / "up", tmp_path / "saved"
    code = f'trap "echo yes >> {saved}; exit 143" TERM; touch {up}; while :; do sleep 0.1; done'
    job = {"name": "train", "image": "local/examples", "cpus": 1, "memory_mib": 512, "command": ["sh", "-c", code]}
    (tmp_path / "job.yaml").write_text(json.dumps({**job, "accelerator": {"type": "l4"}, "spot": True}))
    submit = ("submit", str(tmp_path / "job.yaml"), "--to", "gke", "-o", "id", "--no-quota")
    ref = shell.jobs(*submit)
    until(up.exists)
    until(lambda: requested(call) == ["WAITING_FOR_RESOURCES"])

    def verb(*arguments: str, code: int = 0) -> str:
        done = commands.run("stacks", "budget", *arguments, "--stack", gke.stack, cwd=gke.folder, env=shell.variables)
        assert done.returncode == code, done
        return done.stdout

    def changes(told: list[dict[str, Any]]) -> list[tuple[str, ...]]:
        return [tuple(each[field] for field in ("stage", "kind", "name", "text")) for each in told]

    rehearsed = changes(json.loads(verb("drill", "-o", "json")))
    assert [stage for stage, *_ in rehearsed] == ["submissions", "maximums", "kueue", "waiting", "running"]
    first = spend(call, name, 400)
    assert first["code"] == 0, first["output"]
    assert "accepts new jobs" in verb("status")
    assert autoscaling(call) == before and requested(call) == ["WAITING_FOR_RESOURCES"]

    (crossed, again) = (spend(call, name, 1000), spend(call, name, 1010))
    assert "gke-pools is not through" in crossed["output"], crossed
    (google_part,) = json.loads(verb("status", "-o", "json"))
    assert changes(google_part["stop"]["changes"]) == rehearsed and not google_part["stop"]["failures"], again
    assert cluster.get(QUEUE)["spec"]["stopPolicy"] == "HoldAndDrain"
    until(saved.exists)
    until(lambda: requested(call) == [])
    (error, *_) = shell.fails(*submit, code=5)
    assert "accepts no new jobs: budget ml: 1,000.00 USD" in error

    # The pool that had a node takes no other, and once it is gone the next message switches the pool off.
    assert autoscaling(call)["l4-spot"]["totalMaxNodeCount"] == 1
    (google.home / "nodes.json").write_text(json.dumps(IDLE))
    until(lambda: not [one for one in cluster.list("/api/v1/nodes") if "l4-spot" in one["metadata"]["name"]])
    assert spend(call, name, 1020)["code"] == 0
    assert not autoscaling(call)["l4-spot"].get("enabled") and autoscaling(call)["system"] == before["system"]

    # An update that would undo the stop is refused, and says what to do.
    gke.write_environment(section(max_nodes=7))
    refused = gke.up(check=False)
    assert refused.exit_code and "`stacks budget resume`" in refused.text, refused.text
    gke.write_environment(section())

    up.unlink()
    assert "accepted again" in verb("resume")
    assert cluster.get(QUEUE)["spec"].get("stopPolicy", "None") == "None"
    assert autoscaling(call) == before
    until(lambda: requested(call) == ["WAITING_FOR_RESOURCES"])
    until(up.exists)
    shell.jobs("cancel", ref, "--yes")
    assert spend(call, name, 1030)["code"] == 0, "a person has waved it through"
    shell.jobs("cancel", shell.jobs(*submit), "--yes")

"""The budgets of a Google section: what their function is told that it may stop, on the engine in memory."""

from typing import Any

from accel.contract.budgets import Budget
from accel.contract.targets import read_one
from components.gcp.budget_function.plan import Plan, of_json
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.components.gcp.budget_makers import ACCOUNT
from tests.support import gcp
from tests.support.project import environment, put

BUDGET = {"billing_account": ACCOUNT, "amount": 1000, "recipients": {"emails": ["ml@mail.company.com"]}}
OBJECT = "storage/bucketObject:BucketObject"


def section(**budget: Any) -> dict[str, Any]:
    values = put("gcp.budgets.ml", {**BUDGET, **budget}, environment("sandbox", cloud="gcp"))
    zone = {"zone": "us-central1-a", "accelerator_type": "v5litepod-4"}
    return put("gcp.vms.tpu_queues", {"asked": zone}, put("gcp.project", gcp.PROJECT, values))


def ran(values: dict[str, Any]) -> Any:
    loaded = load_environment(values)
    return gcp.run(lambda: deploy(loaded))


def test_the_function_is_told_of_all_that_the_section_has() -> None:
    seen = ran(section(stop={"at": 0.9, "running": {"after_min": 30}}))
    (content,) = [one.inputs["content"] for one in seen.of(OBJECT) if one.name == "budget-stop-plan"]
    plan: Plan = of_json(content["value"])  # the provider takes every content for a secret
    (limit,) = plan.limits
    assert (limit.budget, limit.at, limit.running_after_s) == ("ml", 0.9, 1800)
    (cluster,) = plan.clusters
    # Pools of CPUs have what keeps the cluster going.
    assert sorted(cluster.pools) == ["l4", "l4-spot", "v5e"] and cluster.queues == ["training"]
    assert (plan.batch, plan.vertex, len(plan.buckets)) == (["us-central1"], ["us-central1"], 1)
    (queued,) = plan.tpu_queues
    assert queued.startswith(f"projects/{gcp.PROJECT}/locations/us-central1-a/queuedResources/asked-")
    assert plan.labels == {"accel-project": "accel", "accel-stack": "dev"}

    exported = seen.exports
    targets = {name: read_one(target) for name, target in exported["targets"].items()}
    assert set(targets) == {"tpu", "vm", "batch", "vertex", "gke"}
    where = {getattr(target, "stop", None) for target in targets.values()}
    assert where == {"gs://budget-stop-0a1b2c3/accel-budget/stop.json"}, "every client can see the stop"
    promise = Budget.model_validate(exported["gcp_budgets"]["ml"])
    assert (promise.kind, promise.stops_at, promise.function) == ("google", 0.9, "budget-stop-id")


def test_a_budget_that_only_tells_people_makes_no_function() -> None:
    seen = ran(section())
    assert len(seen.of("billing/budget:Budget")) == 1 and seen.of("cloudfunctionsv2/function:Function") == []
    assert all("stop" not in target for target in seen.exports["targets"].values())
    assert "function" not in seen.exports["gcp_budgets"]["ml"]

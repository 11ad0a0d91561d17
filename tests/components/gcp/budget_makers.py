"""One maker for each component of a Google budget, for tests and laws."""

from collections.abc import Callable
from typing import Any

import pulumi

from components.base import Component
from components.gcp.budget import GcpBudget, GcpBudgetArgs, GcpBudgetSpec
from components.gcp.budget_plan import BudgetPlan, BudgetPlanArgs, BudgetPlanSpec
from components.gcp.budget_stop import GcpBudgetStop, GcpBudgetStopArgs, GcpBudgetStopSpec
from tests.support.gcp import PROJECT

ACCOUNT = "012345-567890-ABCDEF"
GIVEN: dict[str, Any] = {
    "billing_account": ACCOUNT,
    "amount": 1000.5,
    "recipients": {"emails": ["ml@mail.company.com"]},
}


def out(value: str) -> pulumi.Output[str]:
    return pulumi.Output.from_input(value)


def budget(name: str, topic: str | None = None, **values: object) -> GcpBudget:
    spec = GcpBudgetSpec.model_validate({**GIVEN, **values})
    return GcpBudget(name, GcpBudgetArgs(spec=spec, project=PROJECT, topic=out(topic) if topic else None))


def stop(name: str, **values: object) -> GcpBudgetStop:
    spec = GcpBudgetStopSpec.model_validate({"readers": ["group:ml@company.com"], **values})
    return GcpBudgetStop(name, GcpBudgetStopArgs(spec=spec, project=PROJECT, region="us-central1", secrets=["chat"]))


def plan(name: str) -> BudgetPlan:
    args = BudgetPlanArgs(
        spec=BudgetPlanSpec(),
        bucket=out("stop"),
        text=out("{}"),
        buckets={"jobs": out("jobs")},
        member=out("serviceAccount:stop@p.iam.gserviceaccount.com"),
    )
    return BudgetPlan(name, args)


MAKERS: dict[str, Callable[[str], Component]] = {
    "google-budget": budget,
    "google-budget-forecast": lambda name: budget(
        name, f"projects/{PROJECT}/topics/stop", stop={"at": 1.2, "basis": "forecast", "running": {}}, period="year"
    ),
    "google-budget-stop": stop,
    "google-budget-plan": plan,
}

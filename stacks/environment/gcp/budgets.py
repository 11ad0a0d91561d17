"""The `budgets` of a Google section: components, the resources that the function may stop, and public outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pulumi

from accel.contract.budgets import Budget as Promise
from accel.contract.gke import GkeCluster
from components.base import once
from components.gcp.budget import GcpBudget, GcpBudgetArgs
from components.gcp.budget_function.plan import Plan, PlannedBudget, PlannedCluster, to_json
from components.gcp.budget_plan import BudgetPlan, BudgetPlanArgs, BudgetPlanSpec
from components.gcp.budget_stop import GcpBudgetStop, GcpBudgetStopArgs
from components.sdk import gcp

from ..export_model import promise_output
from .providers import gcp_provider, labels

if TYPE_CHECKING:
    from components.gcp.services import Services
    from components.gcp.stop_hooks import StopHooks

    from ..config import Environment
    from .config import Gcp

NAME = "budget-stop"


@dataclass
class Stopping:
    """The function that stops the section, and the resources collected for it to stop."""

    made: GcpBudgetStop
    tpu_queues: list[pulumi.Output[str]] = field(default_factory=list[pulumi.Output[str]])
    buckets: dict[str, pulumi.Output[str]] = field(default_factory=dict[str, pulumi.Output[str]])

    @property
    def stop(self) -> pulumi.Output[str]:
        """Return gs://<bucket>/<object>, where clients see whether the section is stopped."""
        return self.made.stop


def stopping(section: Gcp, hooks: StopHooks, on_gcp: pulumi.ResourceOptions) -> Stopping | None:
    """Return None where the function need not watch any budget."""
    watched = [spec for spec in section.budgets.values() if spec.watched]
    if not watched:
        return None
    secrets = [spec.recipients.chat_secret for spec in watched if spec.recipients.chat_secret]
    args = GcpBudgetStopArgs(
        spec=section.budget_stop,
        project=section.project,
        region=section.region,
        secrets=sorted(set(secrets)),
        hooks=hooks.function,
    )
    return Stopping(GcpBudgetStop(NAME, args, on_gcp))


def stop_of(stop: Stopping | None) -> dict[str, pulumi.Output[str]]:
    return {"stop": stop.stop} if stop else {}


def deploy(
    environment: Environment,
    section: Gcp,
    services: Services,
    stop: Stopping | None,
    cluster: pulumi.Output[GkeCluster] | None,
    pools: Mapping[str, pulumi.Output[str]],
) -> None:
    """Export `gcp_budgets`. `pools`: names of the accelerator pools created here, by their keys."""
    if not section.budgets:
        return
    on_budgets = pulumi.ResourceOptions(providers=[_provider(environment, section, services)])
    made = {
        key: GcpBudget(
            key,
            GcpBudgetArgs(
                spec=spec,
                project=section.project,
                topic=stop.made.topic if stop and spec.watched else None,
                services=services.enabled,
            ),
            on_budgets,
        )
        for key, spec in section.budgets.items()
    }
    function = _plan(environment, section, made, stop, cluster, pools, on_budgets) if stop else None
    known = pulumi.Output.all(ids={key: each.id for key, each in made.items()}, function=function)
    exported = promise_output(
        known,
        lambda found: _promises(section, found["ids"], found["function"]),
        optional=() if stop else ("function",),
    )
    pulumi.export("gcp_budgets", exported)
    if stop:
        pulumi.export("gcp_budget_stop", {"topic": stop.made.topic, "bucket": stop.made.bucket})


def _provider(environment: Environment, section: Gcp, services: Services) -> gcp.Provider:
    """Return a provider with a paying project, without which the Billing Budgets API refuses a person's credentials.
    Source: https://github.com/GoogleCloudPlatform/magic-modules/blob/main/mmv1/products/billingbudget/Budget.yaml"""
    pays: dict[str, Any] = {"billing_project": section.project, "user_project_override": True}
    return gcp_provider(environment, section, "gcp-budgets", services, **pays)


def _plan(
    environment: Environment,
    section: Gcp,
    made: Mapping[str, GcpBudget],
    stop: Stopping,
    cluster: pulumi.Output[GkeCluster] | None,
    pools: Mapping[str, pulumi.Output[str]],
    on_gcp: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """Write what the function may stop; return the function's name, once it has the permissions."""
    queueing = section.workloads.queueing if section.workloads else None
    queues = sorted(queueing.queues) if queueing else []
    own = {name: value for name, value in labels(environment).items() if name in ("accel-project", "accel-stack")}
    wired = pulumi.Output.all(
        budgets={key: {"id": each.id, "name": each.name} for key, each in made.items()},
        cluster=cluster,
        pools=dict(pools),
        tpu_queues=list(stop.tpu_queues),
        buckets=list(stop.buckets.values()),
    )
    text = promise_output(
        wired,
        lambda known: to_json(_planned(section, known, queues, own)),
        optional=() if cluster is not None else ("cluster",),
    )
    args = BudgetPlanArgs(
        spec=BudgetPlanSpec(), bucket=stop.made.bucket, text=text, buckets=stop.buckets, member=stop.made.member
    )
    plan = BudgetPlan(f"{NAME}-plan", args, on_gcp)
    return once(stop.made.function, plan.source)


def _planned(section: Gcp, known: Mapping[str, Any], queues: list[str], own: dict[str, str]) -> Plan:
    clusters: list[PlannedCluster] = []
    if (cluster := known["cluster"]) is not None:
        path = f"projects/{cluster.project}/locations/{cluster.location}/clusters/{cluster.name}"
        planned = PlannedCluster(path, cluster.endpoint, cluster.ca_certificate, dict(known["pools"]), queues)
        clusters = [planned] if planned.pools or queues else []
    regions = [one.region or section.region for one in section.batch.targets.values()] if section.batch else []
    return Plan(
        project=section.project,
        labels=own,
        budgets=[_budget(section, key, one) for key, one in known["budgets"].items()],
        clusters=clusters,
        buckets=sorted(set(known["buckets"])),
        batch=sorted(set(regions)),
        vertex=[section.region] if section.vertex else [],
        tpu_queues=sorted(known["tpu_queues"]),
    )


def _budget(section: Gcp, key: str, made: Mapping[str, str]) -> PlannedBudget:
    spec = section.budgets[key]
    secret, at = spec.recipients.chat_secret, spec.stop
    return PlannedBudget(
        key=key,
        id=made["id"],
        display_name=made["name"],
        chat_secret=f"projects/{section.project}/secrets/{secret}" if secret else None,
        at=at.at if at else None,
        basis=at.basis if at else "actual",
        running_after_s=at.running_after_s if at else None,
    )


def _promises(section: Gcp, ids: Mapping[str, str], function: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, spec in section.budgets.items():
        at = spec.stop
        promise = Promise(
            kind="google",
            name=f"billingAccounts/{spec.billing_account}/budgets/{ids[key]}",
            amount=spec.amount,
            currency=spec.currency,
            stops_at=at.at if at else None,
            basis=at.basis if at else "actual",
            region=section.region if at else None,
            function=function if at else None,
        )
        made[key] = promise.model_dump(mode="json", by_alias=True, exclude_none=True)
    return made

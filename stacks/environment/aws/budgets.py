"""The `budgets` of an AWS section: the components, and what others may know of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from accel.budget.spending import Limit
from accel.contract.budgets import Budget as Promise
from components.aws.budget import Budget, BudgetSpec
from components.aws.budget_stop import BudgetStop, BudgetStopArgs
from components.aws.claim_table import ClaimTable
from components.aws.compute_environment import ComputeEnvironment
from components.aws.job_queue import JobQueue
from components.aws.stop_hooks import tag_of

from ..config import Aws
from ..export_model import promised


def limit(key: str, spec: BudgetSpec) -> Limit | None:
    """Where a budget stops the stack; None where it only tells people."""
    return Limit(key, spec.stop.at, spec.stop.basis, spec.stop.running_after_s) if spec.stop else None


@dataclass(frozen=True)
class Stopping:
    """What queues and environments carry, which a budget may stop."""

    tags: Mapping[str, pulumi.Input[str]]
    """None where no budget stops anything."""
    hooks: pulumi.ResourceHookBinding
    """There without a budget too: the update that takes it away is held up by them where it has stopped the stack."""


def stop(section: Aws, claims: ClaimTable | None, hooks: pulumi.ResourceHookBinding) -> Stopping:
    """For every queue and environment of the section."""
    return Stopping(tag_of(section.region, claims.name) if claims and limits(section) else {}, hooks)


def limits(section: Aws) -> dict[str, Limit]:
    """Of the budgets that stop the stack, by the author's keys."""
    found = {key: limit(key, spec) for key, spec in section.budgets.items()}
    return {key: each for key, each in found.items() if each}


def deploy(
    section: Aws,
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    claims: ClaimTable | None,
    on_aws: pulumi.ResourceOptions,
) -> None:
    """Creates the components and exports `budgets`; nothing without the section."""
    if not section.budgets:
        return
    made = {key: Budget(key, spec, on_aws) for key, spec in section.budgets.items()}
    stops = limits(section)
    acting = _stop(section, made, stops, environments, queues, claims, on_aws) if stops and claims else None
    known = pulumi.Output.all(
        names={key: each.name for key, each in made.items()}, function=acting.function if acting else None
    )
    pulumi.export(
        "budgets",
        promised(
            known,
            lambda found: _promises(section, found["names"], found["function"]),
            optional=() if acting else ("function",),
        ),
    )


def _promises(section: Aws, names: Mapping[str, str], function: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, spec in section.budgets.items():
        at = spec.stop
        promise = Promise(
            kind="aws",
            name=names[key],
            amount=spec.amount,
            currency=spec.currency,
            stops_at=at.at if at else None,
            basis=at.basis if at else "actual",
            region=section.region,
            function=function if at else None,
        )
        made[key] = promise.model_dump(mode="json", by_alias=True)
    return made


def _stop(
    section: Aws,
    made: Mapping[str, Budget],
    stops: Mapping[str, Limit],
    environments: Mapping[str, ComputeEnvironment],
    queues: Mapping[str, JobQueue],
    claims: ClaimTable,
    on_aws: pulumi.ResourceOptions,
) -> BudgetStop:
    told = [section.budgets[key].recipients for key in stops]
    return BudgetStop(
        "budget-stop",
        BudgetStopArgs(
            spec=section.budget_stop,
            region=section.region,
            limits=stops,
            budget_names={key: made[key].name for key in stops},
            budget_topic_arns={key: topic for key in stops if (topic := made[key].stop_topic_arn)},
            queue_arns={name: queue.arn for name, queue in queues.items()},
            environment_arns={name: environment.arn for name, environment in environments.items()},
            claim_table=claims.name,
            claim_table_arn=claims.arn,
            emails=sorted({email for each in told for email in each.emails}),
            topic_arns=sorted({each.sns_topic_arn for each in told if each.sns_topic_arn}),
            permissions_boundary=section.roles.permissions_boundary,
        ),
        on_aws,
    )

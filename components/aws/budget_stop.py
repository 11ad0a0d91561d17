"""The Lambda function that stops an AWS section when its budget is crossed; the topics of its budgets call it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pulumi
from pydantic import Field

from accel.budget import levers
from accel.budget.spending import Limit
from accel.contract import stop
from accel.diagnostics.findings import Finding
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec, join
from ..sdk import aws
from . import functions, notifications, policies
from .arns import account_id, partition
from .budget_function import SETTINGS

TIMEOUT_S = 300
PACKAGE = "stack_budget"


class BudgetStopSpec(Spec):
    """Schedule and log retention of the function."""

    every_min: int = Field(
        default=5, ge=1, le=60, description="Interval in minutes at which the function continues an unfinished stop"
    )
    retention_days: int = Field(default=90, description="Retention of the function's log in days")

    def check(self) -> list[Finding]:
        return rules.retention("retention_days", self.retention_days)


@dataclass(frozen=True, kw_only=True)
class BudgetStopArgs:
    """The spec, the budgets, and the resources that the function may stop, each by the author's keys."""

    spec: BudgetStopSpec
    region: str
    limits: Mapping[str, Limit]
    budget_names: Mapping[str, pulumi.Input[str]]
    budget_topic_arns: Mapping[str, pulumi.Input[str]]
    queue_arns: Mapping[str, pulumi.Input[str]]
    environment_arns: Mapping[str, pulumi.Input[str]]
    claim_table: pulumi.Input[str]
    claim_table_arn: pulumi.Input[str]
    emails: Sequence[str] = ()
    """Recipients of a report of what was stopped."""
    topic_arns: Sequence[str] = ()
    """Topics that get the same report."""
    permissions_boundary: str | None = None


class BudgetStop(Component):
    """The function, its role and log, and its triggers."""

    TYPE = "accel:aws:BudgetStop"

    function: pulumi.Output[str]

    def __init__(self, name: str, args: BudgetStopArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        account, arn = account_id(self), join("arn:", partition(self))
        told: list[pulumi.Input[str]] = list(args.topic_arns)
        if args.emails:
            told.append(notifications.topic(self, f"{name}-done", args.emails, (), None).arn)
        function = functions.function(
            self,
            name,
            description="Stops the stack when its budget is crossed",
            role_description="Lambda: stops the stack when its budget is crossed",
            handler=f"{PACKAGE}.budget_function.handler",
            files=archive(),
            timeout_s=TIMEOUT_S,
            variables={SETTINGS: _settings(args, account, told)},
            policy=lambda log: _policy(args, arn, account, log, told),
            retention_days=args.spec.retention_days,
            grants=notifications.Grants(None, args.permissions_boundary),
        )
        self._wake(name, args, function)
        self.function = function.name
        self.finish()

    def _wake(self, name: str, args: BudgetStopArgs, function: aws.lambda_.Function) -> None:
        """Invoke the function by the topics and on a schedule: each run continues what the last one left unfinished."""
        functions.schedule(self, name, function, args.spec.every_min, "When to go on with a stop")
        for key, topic in args.budget_topic_arns.items():
            admission = functions.admit(self, f"{name}-{key}", function, "sns.amazonaws.com", topic)
            aws.sns.TopicSubscription(
                f"{name}-{key}",
                topic=cast(Any, topic),
                protocol="lambda",
                endpoint=function.arn,
                opts=self.child(depends_on=[admission]),
            )


def _settings(args: BudgetStopArgs, account: pulumi.Output[str], told: list[pulumi.Input[str]]) -> pulumi.Output[str]:
    return pulumi.Output.all(
        account=account,
        table=args.claim_table,
        queues=list(args.queue_arns.values()),
        environments=list(args.environment_arns.values()),
        told=told,
        names=dict(args.budget_names),
        topics=dict(args.budget_topic_arns),
    ).apply(lambda known: settings_text(args.region, args.limits, known))


def settings_text(region: str, limits: Mapping[str, Limit], known: Mapping[str, Any]) -> str:
    """Return budget_function.Settings as JSON, for names and ARNs that are already known."""
    return json.dumps(
        {
            "region": region,
            "account": known["account"],
            "table": known["table"],
            "budgets": {name: asdict(limits[key]) for key, name in known["names"].items() if name},
            "topics": {topic: known["names"][key] for key, topic in known["topics"].items() if topic},
            "queues": sorted(each for each in known["queues"] if each),
            "environments": sorted(each for each in known["environments"] if each),
            "told": sorted(each for each in known["told"] if each),
        },
        sort_keys=True,
    )


def _policy(
    args: BudgetStopArgs,
    arn: pulumi.Output[str],
    account: pulumi.Output[str],
    log: aws.cloudwatch.LogGroup,
    told: list[pulumi.Input[str]],
) -> pulumi.Output[str]:
    """`arn`: prefix of ARNs in this partition."""
    # Describe and list calls have no resource level.
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html
    looks = ["batch:DescribeComputeEnvironments", "batch:DescribeJobQueues", "batch:ListJobs"]
    row = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [stop.KEY]}}
    names = [join(arn, ":budgets::", account, ":budget/", name) for name in args.budget_names.values()]
    statements = [
        policies.allow(looks, "*"),
        policies.allow(["batch:UpdateJobQueue"], list(args.queue_arns.values())),
        policies.allow(["batch:UpdateComputeEnvironment"], list(args.environment_arns.values())),
        policies.allow(["dynamodb:GetItem", "dynamodb:PutItem"], args.claim_table_arn, Condition=row),
        policies.allow(["budgets:ViewBudget"], names),
        policies.allow(["logs:CreateLogStream", "logs:PutLogEvents"], join(log.arn, ":*")),
    ]
    if told:
        statements.append(policies.allow(["sns:Publish"], told))
    if any(limit.running_after_s is not None for limit in args.limits.values()):
        # A job's ARN contains its id, which is unknown beforehand.
        jobs = join(arn, f":batch:{args.region}:", account, ":job/*")
        statements.append(policies.allow(["batch:TerminateJob"], jobs))
    return policies.document(*statements)


def archive() -> dict[str, str]:
    """Return files by their paths in the archive: the function's own in a package, shared ones as in this project."""
    here, contract = Path(__file__).parent, Path(stop.__file__)
    own = [here / "budget_function.py"]
    shared = sorted(Path(levers.__file__).parent.glob("*.py"))
    # Not empty: the engine drops an asset with empty text.
    package = '"""What stops this stack when its budget is crossed."""\n'
    return {
        **{f"{folder}/__init__.py": package for folder in (PACKAGE, "accel", "accel/contract")},
        **{f"{PACKAGE}/{path.name}": path.read_text() for path in own},
        **{f"accel/budget/{path.name}": path.read_text() for path in shared},
        f"accel/contract/{contract.name}": contract.read_text(),
    }

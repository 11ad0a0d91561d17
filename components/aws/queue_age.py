"""A metric that AWS Batch does not have: how long the oldest RUNNABLE job of a queue has waited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pulumi

from ..base import Component
from ..sdk import aws
from . import policies, queue_age_function

RUNTIME = "python3.13"
"""Until June 2029. Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html"""
TIMEOUT_S = 120
MEMORY_MIB = 256


def queue_age(
    self: Component,
    name: str,
    *,
    every_min: int,
    namespace: str,
    queue_arns: Mapping[str, pulumi.Input[str]],
    permissions_boundary: str | None,
) -> None:
    """A function that looks at the queues on a schedule and publishes `queue_age_function.METRIC`, by queue."""
    role = aws.iam.Role(
        name,
        assume_role_policy=policies.assumed_by("lambda.amazonaws.com"),
        description="Lambda: the age of waiting Batch jobs",
        permissions_boundary=permissions_boundary,
        opts=self.child(),
    )
    allowed = aws.iam.RolePolicy(name, role=role.id, policy=_policy(namespace), opts=self.child())
    source = Path(queue_age_function.__file__).read_text()
    function = aws.lambda_.Function(
        name,
        description="How old the oldest RUNNABLE job of each queue is",
        runtime=RUNTIME,
        handler="index.handler",
        code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(source)}),
        role=role.arn,
        timeout=TIMEOUT_S,
        memory_size=MEMORY_MIB,
        # One run at a time: a slow one must not be joined by the next.
        reserved_concurrent_executions=1,
        environment=aws.lambda_.FunctionEnvironmentArgs(
            variables={"NAMESPACE": namespace, "QUEUES": _queues(queue_arns)}
        ),
        # Lambda tries the role when the function is made, and a run before the policy is there fails.
        opts=self.child(depends_on=[allowed]),
    )
    rule = aws.cloudwatch.EventRule(
        name,
        description="When to look at waiting Batch jobs",
        schedule_expression=f"rate({every_min} minute{'s' if every_min > 1 else ''})",
        opts=self.child(),
    )
    aws.lambda_.Permission(
        name,
        action="lambda:InvokeFunction",
        function=function.name,
        principal="events.amazonaws.com",
        source_arn=rule.arn,
        opts=self.child(),
    )
    aws.cloudwatch.EventTarget(name, rule=rule.name, target_id="function", arn=function.arn, opts=self.child())


def _queues(arns: Mapping[str, pulumi.Input[str]]) -> pulumi.Output[str]:
    return pulumi.Output.all(*arns.values()).apply(lambda known: json.dumps(sorted(arn for arn in known if arn)))


def _policy(namespace: str) -> pulumi.Output[str]:
    # Neither ListJobs nor PutMetricData has a resource level; the namespace is what can be held. Sources:
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
    condition = {"StringEquals": {"cloudwatch:namespace": namespace}}
    return policies.document(
        policies.allow(["batch:ListJobs"], "*"),
        policies.allow(["cloudwatch:PutMetricData"], "*", Condition=condition),
    )

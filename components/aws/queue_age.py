"""A metric that AWS Batch does not have: how long the oldest RUNNABLE job of a queue has waited."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pulumi

from ..base import Component, joined
from ..sdk import aws
from . import policies, queue_age_function
from .notifications import Grants

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
    retention_days: int,
    grants: Grants,
) -> None:
    """A function that looks at the queues on a schedule and publishes `queue_age_function.METRIC`, by queue.

    It reserves no concurrency: of the ten executions of a new account AWS lets none be reserved, and two runs at once
    publish the same figures. Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    """
    log = aws.cloudwatch.LogGroup(
        name, retention_in_days=retention_days, kms_key_id=grants.kms_key_arn, opts=self.child()
    )
    role = aws.iam.Role(
        name,
        assume_role_policy=policies.assumed_by("lambda.amazonaws.com"),
        description="Lambda: the age of waiting Batch jobs",
        permissions_boundary=grants.permissions_boundary,
        opts=self.child(),
    )
    allowed = aws.iam.RolePolicy(name, role=role.id, policy=_policy(namespace, log), opts=self.child())
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
        logging_config=aws.lambda_.FunctionLoggingConfigArgs(log_format="Text", log_group=log.name),
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


def _policy(namespace: str, log: aws.cloudwatch.LogGroup) -> pulumi.Output[str]:
    # Neither ListJobs nor PutMetricData has a resource level; the namespace is what can be held. Sources:
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
    condition = {"StringEquals": {"cloudwatch:namespace": namespace}}
    return policies.document(
        policies.allow(["batch:ListJobs"], "*"),
        policies.allow(["cloudwatch:PutMetricData"], "*", Condition=condition),
        policies.allow(["logs:CreateLogStream", "logs:PutLogEvents"], joined(log.arn, ":*")),
    )

"""Lambda functions of a stack: each with a log, a role and a policy of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pulumi

from ..base import Component
from ..sdk import aws
from . import policies
from .notifications import Grants

RUNTIME = "python3.13"
"""Supported until June 2029. Source: https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html"""
MEMORY_MIB = 256


def function(
    self: Component,
    name: str,
    *,
    description: str,
    role_description: str,
    handler: str,
    files: Mapping[str, str],
    timeout_s: int,
    variables: Mapping[str, pulumi.Input[str]],
    policy: Callable[[aws.cloudwatch.LogGroup], pulumi.Output[str]],
    retention_days: int,
    grants: Grants,
) -> aws.lambda_.Function:
    """Create a function. `policy` returns the permissions of its role for the log that it writes to."""
    log = aws.cloudwatch.LogGroup(
        name, retention_in_days=retention_days, kms_key_id=grants.kms_key_arn, opts=self.child()
    )
    role = aws.iam.Role(
        name,
        assume_role_policy=policies.trust_policy("lambda.amazonaws.com"),
        description=role_description,
        permissions_boundary=grants.permissions_boundary,
        opts=self.child(),
    )
    allowed = aws.iam.RolePolicy(name, role=role.id, policy=policy(log), opts=self.child())
    return aws.lambda_.Function(
        name,
        description=description,
        runtime=RUNTIME,
        handler=handler,
        code=pulumi.AssetArchive({path: pulumi.StringAsset(text) for path, text in files.items()}),
        role=role.arn,
        timeout=timeout_s,
        memory_size=MEMORY_MIB,
        logging_config=aws.lambda_.FunctionLoggingConfigArgs(log_format="Text", log_group=log.name),
        environment=aws.lambda_.FunctionEnvironmentArgs(variables=variables),
        # Lambda checks the role when the function is created, and a run before the policy exists fails.
        opts=self.child(depends_on=[allowed]),
    )


def admit(
    self: Component, name: str, target: aws.lambda_.Function, principal: str, source_arn: pulumi.Input[str]
) -> aws.lambda_.Permission:
    """Let a service invoke the function for one of its resources."""
    return aws.lambda_.Permission(
        name,
        action="lambda:InvokeFunction",
        function=target.name,
        principal=principal,
        source_arn=source_arn,
        opts=self.child(),
    )


def schedule(self: Component, name: str, target: aws.lambda_.Function, every_min: int, description: str) -> None:
    """Invoke the function every so many minutes."""
    rule = aws.cloudwatch.EventRule(
        name,
        description=description,
        schedule_expression=f"rate({every_min} minute{'s' if every_min > 1 else ''})",
        opts=self.child(),
    )
    admit(self, name, target, "events.amazonaws.com", rule.arn)
    aws.cloudwatch.EventTarget(name, rule=rule.name, target_id="function", arn=target.arn, opts=self.child())

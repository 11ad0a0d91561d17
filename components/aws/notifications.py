"""A topic, its subscribers, and its publishers: rules of EventBridge through a role, alarms by its policy."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pulumi

from ..base import Component
from ..sdk import aws
from . import policies

STATE_CHANGE = "Batch Job State Change"
"""Source: https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html"""

BLOCKED = "Batch Job Queue Blocked"
"""Source: https://docs.aws.amazon.com/batch/latest/userguide/batch-job-queue-blocked-events.html"""

_MESSAGE = '"<event>: job <job> (<id>) is <status> in <queue>. Reason: <reason>. Log stream: <log>."'
_PATHS = {
    "event": "$.detail-type",
    "job": "$.detail.jobName",
    "id": "$.detail.jobId",
    "status": "$.detail.status",
    "queue": "$.detail.jobQueue",
    "reason": "$.detail.statusReason",
    "log": "$.detail.container.logStreamName",
}
"""Fields of an event that a message contains. The whole event includes the container's variables, where people put
tokens. Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html"""


class Grants(NamedTuple):
    """The key that monitoring encrypts with, and the permissions boundary of its roles."""

    kms_key_arn: str | None
    permissions_boundary: str | None


def topic(
    self: Component, name: str, emails: Sequence[str], https: Sequence[str], kms_key_arn: str | None
) -> aws.sns.Topic:
    """Create the topic with its subscriptions. AWS drops an unconfirmed one with the topic, or after some days."""
    made = aws.sns.Topic(name, kms_master_key_id=kms_key_arn, opts=self.child())
    for protocol, endpoints in (("email", emails), ("https", https)):
        for endpoint in dict.fromkeys(endpoints):
            # Named by its content and not by its position: removing one from the list must not move the others.
            digest = hashlib.sha256(endpoint.encode()).hexdigest()[:8]
            aws.sns.TopicSubscription(
                f"{name}-{protocol}-{digest}",
                topic=made.arn,
                protocol=protocol,
                endpoint=endpoint,
                opts=self.child(),
            )
    return made


def tell(
    self: Component,
    name: str,
    to: aws.sns.Topic,
    rules: Mapping[str, aws.cloudwatch.EventRule],
    account: pulumi.Input[str],
    grants: Grants,
) -> None:
    """Send what the rules match to the topic, in one line. `rules`: by the name of the target."""
    if not rules:
        return
    role = _publisher(self, name, to, [rule.arn for rule in rules.values()], account, grants)
    for target, rule in rules.items():
        aws.cloudwatch.EventTarget(
            target,
            rule=rule.name,
            target_id="topic",
            arn=to.arn,
            role_arn=role,
            input_transformer=aws.cloudwatch.EventTargetInputTransformerArgs(
                input_paths=_PATHS, input_template=_MESSAGE
            ),
            opts=self.child(),
        )


def _publisher(
    self: Component,
    name: str,
    to: aws.sns.Topic,
    rule_arns: list[pulumi.Output[str]],
    account: pulumi.Input[str],
    grants: Grants,
) -> pulumi.Output[str]:
    """Create the role with which EventBridge publishes, for these rules only. A topic's policy cannot express that:
    EventBridge supports no Condition there, and without one any account's rule could publish. Sources:
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html,
    https://docs.aws.amazon.com/eventbridge/latest/userguide/cross-service-confused-deputy-prevention.html"""
    condition = {"ArnEquals": {"aws:SourceArn": rule_arns}, "StringEquals": {"aws:SourceAccount": account}}
    role = aws.iam.Role(
        f"{name}-publish",
        assume_role_policy=policies.trust_policy("events.amazonaws.com", condition),
        description="EventBridge: job events to the topic",
        permissions_boundary=grants.permissions_boundary,
        opts=self.child(),
    )
    statements = [policies.allow(["sns:Publish"], to.arn)]
    if grants.kms_key_arn:
        statements.append(policies.allow(["kms:Decrypt", "kms:GenerateDataKey"], grants.kms_key_arn))
    aws.iam.RolePolicy(f"{name}-publish", role=role.id, policy=policies.document(*statements), opts=self.child())
    return role.arn


def admit_alarms(
    self: Component,
    name: str,
    to: aws.sns.Topic,
    alarms: Sequence[aws.cloudwatch.MetricAlarm],
    account: pulumi.Input[str],
) -> None:
    """Allow these alarms to publish, and no other account. Source:
    https://repost.aws/knowledge-center/cloudwatch-receive-sns-for-alarm-trigger"""
    if not alarms:
        return
    statement = policies.allow(
        ["sns:Publish"],
        to.arn,
        Principal={"Service": "cloudwatch.amazonaws.com"},
        Condition={
            "ArnLike": {"aws:SourceArn": [alarm.arn for alarm in alarms]},
            "StringEquals": {"aws:SourceAccount": account},
        },
    )
    aws.sns.TopicPolicy(name, arn=to.arn, policy=policies.document(statement), opts=self.child())

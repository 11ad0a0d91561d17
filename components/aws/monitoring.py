"""Notifications about failed jobs and blocked queues, metrics, alarms, and a dashboard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import keys
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec, join
from ..sdk import aws
from . import notifications, policies
from .alarms import FailedJobs, IdleGpus, WaitingJobs, idle_gpus, queue_age, queue_alarms
from .dashboard import BLOCKED_EVENTS, JOB_EVENTS, dashboard
from .notifications import BLOCKED, STATE_CHANGE

QUEUES_OF_A_RULE = 14
"""Number of queues that fit a pattern with the longest ARNs, of 106 characters, and every state of a job."""
JobState = Literal["ALL", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED"]
"""States without SUBMITTED: Batch emits no event for a submission. Source:
https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html"""


class MonitoringSpec(Spec):
    """Monitoring of queues and instances, and the recipients of notifications."""

    emails: list[str] = Field(
        default_factory=list, description="Email addresses to notify; each gets a message to confirm before any other"
    )
    https_endpoints: list[str] = Field(
        default_factory=list,
        description="HTTPS endpoints to notify; each has to confirm. Use no secret ones: the state has them in "
        "plain text",
    )
    job_states: list[JobState] = Field(
        default=["FAILED"], description="States to notify of when a job enters one; ALL: every state, []: none"
    )
    array_children: bool = Field(default=False, description="Notify of each child of an array job too")
    blocked_queues: bool = Field(
        default=True,
        description="Notify of a job that blocks its queue, with the reason that Batch gives; a queue that is only "
        "long is not blocked",
    )
    failed_jobs: FailedJobs | None = Field(
        default=FailedJobs(), description="Alarm on failed jobs, for each queue; null: none"
    )
    waiting_jobs: WaitingJobs | None = Field(
        default=WaitingJobs(), description="Alarm on jobs that wait long, for each queue; null: none"
    )
    gpu_metrics: bool = Field(
        default=False, description="Run the CloudWatch agent on instances to collect GPU metrics, which are charged"
    )
    gpu_interval_s: int = Field(
        default=60, ge=60, le=300, description="Interval in seconds at which the agent measures"
    )
    idle_gpus: IdleGpus | None = Field(
        default=IdleGpus(), description="Alarm on idle GPUs, for each environment if gpu_metrics is true; null: none"
    )
    retention_days: int = Field(default=30, description="Retention in days of the logs of events and of the function")
    kms_key_arn: str | None = Field(
        default=None,
        description="ARN of a KMS key of your own for topic and logs; its policy has to allow CloudWatch's alarms "
        "and logs: docs/keys.md",
    )

    def check(self) -> list[Finding]:
        return (
            rules.subscriptions(self.emails, self.https_endpoints)
            + rules.key(self.kms_key_arn)
            + rules.retention("retention_days", self.retention_days)
        )


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """The spec and the monitored ARNs: queues and the environments' ECS clusters, by the author's keys."""

    spec: MonitoringSpec
    region: str
    prefix: str
    """Prefix of the names that AWS does not generate: <project>-<stack>."""
    namespace: str
    """Namespace of the metrics that are counted from events: <project>/<stack>."""
    queue_arns: Mapping[str, pulumi.Input[str]]
    cluster_arns: Mapping[str, pulumi.Input[str]]
    gpu_namespaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Namespaces in which the agents of each environment publish; empty without gpu_metrics."""
    permissions_boundary: str | None = None


class Monitoring(Component):
    """Topic, event log, metrics, alarms and dashboard. AWS Batch publishes no metrics of jobs and queues, so its events
    are counted: how many jobs entered a state, not how many are in it. A function measures how long jobs wait."""

    TYPE = "accel:aws:Monitoring"

    topic_arn: pulumi.Output[str]
    event_log: pulumi.Output[str]
    dashboard: pulumi.Output[str]

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        self.warn(keys.logs("kms_key_arn", args.spec.kms_key_arn))
        account = aws.get_caller_identity_output(opts=pulumi.InvokeOptions(parent=self)).account_id
        spec = args.spec
        topic = notifications.topic(self, name, spec.emails, spec.https_endpoints, spec.kms_key_arn)
        grants = notifications.Grants(spec.kms_key_arn, args.permissions_boundary)
        notifications.tell(self, name, topic, _told(self, name, args), account, grants)
        log = _event_log(self, name, args)
        _count(self, name, args, log)
        alarms = queue_alarms(self, name, spec.failed_jobs, topic, args.namespace, args.queue_arns)
        alarms += queue_alarms(self, name, spec.waiting_jobs, topic, args.namespace, args.queue_arns)
        if spec.waiting_jobs:
            queue_age(
                self,
                f"{name}-age",
                every_min=spec.waiting_jobs.every_min,
                namespace=args.namespace,
                queue_arns=args.queue_arns,
                retention_days=spec.retention_days,
                grants=grants,
            )
        alarms += idle_gpus(self, name, spec.idle_gpus, topic, args.gpu_namespaces)
        notifications.admit_alarms(self, name, topic, alarms, account)
        board = _dashboard(self, name, args, alarms)
        self.topic_arn = topic.arn
        self.event_log = log.name
        self.dashboard = board.dashboard_name
        self.finish()


def _rules(
    self: Component, name: str, args: MonitoringArgs, what: str, kinds: list[str], **detail: Any
) -> dict[str, aws.cloudwatch.EventRule]:
    """Create a rule for every few queues, by name: a pattern has at most 2,048 characters, unless AWS raised the quota.
    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html"""
    arns, made = list(args.queue_arns.values()), dict[str, aws.cloudwatch.EventRule]()
    for number, start in enumerate(range(0, len(arns), QUEUES_OF_A_RULE), 1):
        part = arns[start : start + QUEUES_OF_A_RULE]
        pattern = {"source": ["aws.batch"], "detail-type": kinds, "detail": {"jobQueue": part, **detail}}
        own = name if number == 1 else f"{name}-{number}"
        made[own] = aws.cloudwatch.EventRule(
            own, description=what, event_pattern=pulumi.Output.json_dumps(pattern, sort_keys=True), opts=self.child()
        )
    return made


def _told(self: Component, name: str, args: MonitoringArgs) -> dict[str, aws.cloudwatch.EventRule]:
    """Create the rules whose events go to the topic; return them by the name of their target."""
    spec, made = args.spec, dict[str, aws.cloudwatch.EventRule]()
    if spec.job_states:
        detail: dict[str, Any] = {} if "ALL" in spec.job_states else {"status": sorted(set(spec.job_states))}
        if not spec.array_children:
            # A failed array of 10,000 would send as many messages.
            detail["arrayProperties"] = {"index": [{"exists": False}]}
        made |= _rules(self, f"{name}-jobs", args, "Jobs to be told of", [STATE_CHANGE], **detail)
    if spec.blocked_queues:
        made |= _rules(self, f"{name}-blocked", args, "Jobs that block their queue", [BLOCKED])
    return made


def _event_log(self: Component, name: str, args: MonitoringArgs) -> aws.cloudwatch.LogGroup:
    group = aws.cloudwatch.LogGroup(
        f"{name}-events",
        # EventBridge offers only log groups with this prefix. Source:
        # https://repost.aws/knowledge-center/cloudwatch-log-group-eventbridge
        name_prefix=f"/aws/events/{args.prefix}-",
        retention_in_days=args.spec.retention_days,
        kms_key_id=args.spec.kms_key_arn,
        opts=self.child(),
    )
    rules = _rules(self, f"{name}-events", args, "Every job event, for the log", [STATE_CHANGE, BLOCKED])
    arns = [rule.arn for rule in rules.values()]
    # EventBridge writes logs by a policy of CloudWatch Logs, never by a role. An account has room for ten named ones;
    # that of a log group does not count, admits to this group only, and is deleted with it. Sources:
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html,
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutResourcePolicy.html
    services = {"Service": ["events.amazonaws.com", "delivery.logs.amazonaws.com"]}
    streams = join(group.arn, ":*")
    policy = aws.cloudwatch.LogResourcePolicy(
        f"{name}-events",
        resource_arn=group.arn,
        policy_document=policies.document(
            policies.allow(["logs:CreateLogStream"], streams, Principal=services),
            policies.allow(
                ["logs:PutLogEvents"],
                join(streams, ":*"),
                Principal=services,
                Condition={"ArnEquals": {"aws:SourceArn": arns[0] if len(arns) == 1 else arns}},
            ),
        ),
        opts=self.child(),
    )
    for own, rule in rules.items():
        aws.cloudwatch.EventTarget(
            own,
            rule=rule.name,
            target_id="log",
            arn=group.arn,
            # Events sent before the policy exists are lost.
            opts=self.child(depends_on=[policy]),
        )
    return group


def _count(self: Component, name: str, args: MonitoringArgs, log: aws.cloudwatch.LogGroup) -> None:
    """Define metrics of the event log: jobs by queue and state, blocked queues by queue. Source:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html"""
    counted = {
        "jobs": (JOB_EVENTS, STATE_CHANGE, {"Queue": "$.detail.jobQueue", "Status": "$.detail.status"}),
        "blocked": (BLOCKED_EVENTS, BLOCKED, {"Queue": "$.detail.jobQueue"}),
    }
    for what, (metric, kind, dimensions) in counted.items():
        aws.cloudwatch.LogMetricFilter(
            f"{name}-{what}",
            log_group_name=log.name,
            pattern=f'{{ $.detail-type = "{kind}" }}',
            metric_transformation=aws.cloudwatch.LogMetricFilterMetricTransformationArgs(
                name=metric, namespace=args.namespace, value="1", unit="Count", dimensions=dimensions
            ),
            opts=self.child(),
        )


def _dashboard(
    self: Component, name: str, args: MonitoringArgs, alarms: list[aws.cloudwatch.MetricAlarm]
) -> aws.cloudwatch.Dashboard:
    wired = pulumi.Output.all(
        queues=dict(args.queue_arns), clusters=dict(args.cluster_arns), alarms=[alarm.arn for alarm in alarms]
    )
    return aws.cloudwatch.Dashboard(
        name,
        # One of the few names that AWS does not generate; the account's dashboards share one list.
        dashboard_name=args.prefix,
        dashboard_body=wired.apply(
            lambda known: json.dumps(
                dashboard(region=args.region, namespace=args.namespace, gpu_namespaces=args.gpu_namespaces, **known),
                sort_keys=True,
            )
        ),
        opts=self.child(),
    )

"""Who is told when jobs fail and queues are blocked, what is counted, when an alarm rings, and a dashboard.

AWS Batch has no metric of how long the oldest RUNNABLE job of a queue has waited: a Lambda function publishes one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import keys
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec, joined
from ..sdk import aws
from . import notifications, policies, queue_age_function
from .dashboard import BLOCKED_EVENTS, JOB_EVENTS, dashboard
from .gpu_metrics import UTILISATION
from .notifications import BLOCKED, STATE_CHANGE, Grants
from .queue_age_function import METRIC

QUEUES_OF_A_RULE = 14
"""As many as fit a pattern with the longest ARNs, of 106 characters, and every state of a job."""
JobState = Literal["ALL", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED"]
"""SUBMITTED is not among them: Batch makes no event of a submission.
Source: https://docs.aws.amazon.com/batch/latest/userguide/batch_job_events.html"""
_RUNTIME = "python3.13"
"""Of the function that looks how long jobs wait; until June 2029. Source:
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html"""
_TIMEOUT_S = 120
_MEMORY_MIB = 256


class FailedJobs(Spec):
    """Rings for a queue where jobs fail in numbers."""

    jobs: int = Field(default=10, ge=1, description="as many in one period ring; children of arrays are counted")
    period_s: int = Field(default=3600, description="a multiple of 60")

    def findings(self) -> list[Finding]:
        return rules.alarm(period_s=self.period_s)


class IdleGpus(Spec):
    """Rings for an environment whose instances run and compute little."""

    below_percent: float = Field(default=10, gt=0, le=100, description="the average over all GPUs of the environment")
    period_s: int = Field(default=300, description="a multiple of 60, not shorter than gpu_interval_s")
    periods: int = Field(default=12, ge=1, description="as many in a row")

    def findings(self) -> list[Finding]:
        return rules.alarm(period_s=self.period_s, periods=self.periods)


class WaitingJobs(Spec):
    """Rings for a queue whose oldest RUNNABLE job waits long. AWS Batch has no such metric: a Lambda function of the
    stack looks, which costs a few cents a month."""

    minutes: int = Field(default=60, ge=5, le=10_080, description="a job RUNNABLE for longer rings; 10,080 is a week")
    every_min: int = Field(default=5, ge=1, le=60, description="how often the function looks")


class MonitoringSpec(Spec):
    """What is watched of queues and instances, and who is told."""

    emails: list[str] = Field(default_factory=list, description="each gets a message to confirm before any other")
    https_endpoints: list[str] = Field(
        default_factory=list, description="each has to confirm; no secret ones: they lie open in the state"
    )
    job_states: list[JobState] = Field(
        default=["FAILED"], description="jobs that come to one of them are told of; ALL is every state, [] is none"
    )
    array_children: bool = Field(default=False, description="tell of each child of an array job too")
    blocked_queues: bool = Field(
        default=True,
        description="tell of a job that blocks its queue, with Batch's reason; a long queue alone is not blocked",
    )
    failed_jobs: FailedJobs | None = Field(default=FailedJobs(), description="an alarm for each queue; null: none")
    waiting_jobs: WaitingJobs | None = Field(default=WaitingJobs(), description="an alarm for each queue; null: none")
    gpu_metrics: bool = Field(default=False, description="instances run the CloudWatch agent; its metrics are paid for")
    gpu_interval_s: int = Field(default=60, ge=60, le=300, description="how often the agent looks")
    idle_gpus: IdleGpus | None = Field(
        default=IdleGpus(), description="an alarm for each environment, with gpu_metrics; null: none"
    )
    retention_days: int = Field(default=30, description="how long the logs of events and of the function are kept")
    kms_key_arn: str | None = Field(
        default=None,
        description="for topic and logs; its policy has to admit CloudWatch's alarms and logs: docs/keys.md",
    )

    def findings(self) -> list[Finding]:
        return (
            rules.subscriptions(self.emails, self.https_endpoints)
            + rules.key(self.kms_key_arn)
            + rules.retention("retention_days", self.retention_days)
        )


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """The spec, and what it watches: ARNs of queues and of the environments' ECS clusters, by the author's keys."""

    spec: MonitoringSpec
    region: str
    prefix: str
    """Begins the names that AWS does not make up: <project>-<stack>."""
    namespace: str
    """Of the metrics that are counted from events: <project>/<stack>."""
    queue_arns: Mapping[str, pulumi.Input[str]]
    cluster_arns: Mapping[str, pulumi.Input[str]]
    gpu_namespaces: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where the agents of each environment publish; empty without gpu_metrics."""
    permissions_boundary: str | None = None


class Monitoring(Component):
    """A topic that is told of jobs and blocked queues, a log of every event, metrics from it, alarms, a dashboard.

    AWS Batch publishes no metrics of jobs and queues, so its events are counted: a count says how many jobs came to a
    state, not how many are in it. For how long jobs wait, a function looks.
    """

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
        alarms = _failed_job_alarms(self, name, spec.failed_jobs, topic, args.namespace, args.queue_arns)
        alarms += _waiting_job_alarms(self, name, spec.waiting_jobs, topic, args.namespace, args.queue_arns)
        if spec.waiting_jobs:
            _queue_age(
                self,
                f"{name}-age",
                every_min=spec.waiting_jobs.every_min,
                namespace=args.namespace,
                queue_arns=args.queue_arns,
                retention_days=spec.retention_days,
                grants=grants,
            )
        alarms += _idle_gpu_alarms(self, name, spec.idle_gpus, topic, args.gpu_namespaces)
        notifications.admit_alarms(self, name, topic, alarms, account)
        board = _dashboard(self, name, args, alarms)
        self.topic_arn = topic.arn
        self.event_log = log.name
        self.dashboard = board.dashboard_name
        self.finish()


def _rules(
    self: Component, name: str, args: MonitoringArgs, what: str, kinds: list[str], **detail: Any
) -> dict[str, aws.cloudwatch.EventRule]:
    """A rule for every few queues, by its name: a pattern has at most 2,048 characters, unless AWS raised the quota.

    Source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html
    """
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
    """The rules whose events go to the topic, by the name of their target."""
    spec, made = args.spec, dict[str, aws.cloudwatch.EventRule]()
    if spec.job_states:
        detail: dict[str, Any] = {} if "ALL" in spec.job_states else {"status": sorted(set(spec.job_states))}
        if not spec.array_children:
            # An array of 10,000 that fails would be as many messages.
            detail["arrayProperties"] = {"index": [{"exists": False}]}
        made |= _rules(self, f"{name}-jobs", args, "Jobs to be told of", [STATE_CHANGE], **detail)
    if spec.blocked_queues:
        made |= _rules(self, f"{name}-blocked", args, "Jobs that block their queue", [BLOCKED])
    return made


def _event_log(self: Component, name: str, args: MonitoringArgs) -> aws.cloudwatch.LogGroup:
    """Every event of the stack's queues, as JSON."""
    group = aws.cloudwatch.LogGroup(
        f"{name}-events",
        # EventBridge offers only log groups that begin so.
        # Source: https://repost.aws/knowledge-center/cloudwatch-log-group-eventbridge
        name_prefix=f"/aws/events/{args.prefix}-",
        retention_in_days=args.spec.retention_days,
        kms_key_id=args.spec.kms_key_arn,
        opts=self.child(),
    )
    rules = _rules(self, f"{name}-events", args, "Every job event, for the log", [STATE_CHANGE, BLOCKED])
    arns = [rule.arn for rule in rules.values()]
    # EventBridge writes logs by a policy of CloudWatch Logs, never by a role. An account has room for ten with names;
    # that of a log group is none of them, admits to this group alone, and goes with it. Sources:
    # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-use-resource-based.html,
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutResourcePolicy.html
    services = {"Service": ["events.amazonaws.com", "delivery.logs.amazonaws.com"]}
    streams = joined(group.arn, ":*")
    policy = aws.cloudwatch.LogResourcePolicy(
        f"{name}-events",
        resource_arn=group.arn,
        policy_document=policies.document(
            policies.allow(["logs:CreateLogStream"], streams, Principal=services),
            policies.allow(
                ["logs:PutLogEvents"],
                joined(streams, ":*"),
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
            # Before the policy is there, what is sent is lost.
            opts=self.child(depends_on=[policy]),
        )
    return group


def _count(self: Component, name: str, args: MonitoringArgs, log: aws.cloudwatch.LogGroup) -> None:
    """Metrics of the event log: jobs by queue and state, blocked queues by queue.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
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


def _failed_job_alarms(
    self: Component,
    name: str,
    spec: FailedJobs | None,
    topic: aws.sns.Topic,
    namespace: str,
    queue_arns: Mapping[str, pulumi.Input[str]],
) -> list[aws.cloudwatch.MetricAlarm]:
    """An alarm for each queue; none without a spec."""
    if spec is None:
        return []
    return [
        _alarm(
            self,
            f"{name}-{queue}-failed",
            topic,
            alarm_description=f"{spec.jobs} or more jobs of queue {queue} failed in {spec.period_s} s",
            namespace=namespace,
            metric_name=JOB_EVENTS,
            dimensions={"Queue": arn, "Status": "FAILED"},
            statistic="Sum",
            period=spec.period_s,
            evaluation_periods=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            threshold=spec.jobs,
        )
        for queue, arn in queue_arns.items()
    ]


def _waiting_job_alarms(
    self: Component,
    name: str,
    spec: WaitingJobs | None,
    topic: aws.sns.Topic,
    namespace: str,
    queue_arns: Mapping[str, pulumi.Input[str]],
) -> list[aws.cloudwatch.MetricAlarm]:
    """An alarm for each queue; none without a spec."""
    if spec is None:
        return []
    return [
        _alarm(
            self,
            f"{name}-{queue}-waiting",
            topic,
            alarm_description=f"The oldest RUNNABLE job of queue {queue} is older than {spec.minutes} min: "
            "`jobs explain` tells why it waits",
            namespace=namespace,
            metric_name=METRIC,
            dimensions={"Queue": arn},
            statistic="Maximum",
            period=60 * spec.every_min,
            evaluation_periods=1,
            comparison_operator="GreaterThanThreshold",
            threshold=60 * spec.minutes,
        )
        for queue, arn in queue_arns.items()
    ]


def _idle_gpu_alarms(
    self: Component, name: str, spec: IdleGpus | None, topic: aws.sns.Topic, namespaces: Mapping[str, str]
) -> list[aws.cloudwatch.MetricAlarm]:
    """An alarm for each environment whose agents publish; none without a spec."""
    if spec is None:
        return []
    return [
        _alarm(
            self,
            f"{name}-{environment}-idle",
            topic,
            alarm_description=f"GPUs of environment {environment} were used less than {spec.below_percent:g} percent "
            f"for {spec.period_s * spec.periods} s",
            namespace=namespace,
            metric_name=UTILISATION,
            statistic="Average",
            period=spec.period_s,
            evaluation_periods=spec.periods,
            comparison_operator="LessThanThreshold",
            threshold=spec.below_percent,
        )
        for environment, namespace in namespaces.items()
    ]


def _alarm(self: Component, name: str, topic: aws.sns.Topic, **rest: Any) -> aws.cloudwatch.MetricAlarm:
    return aws.cloudwatch.MetricAlarm(
        name,
        # No event and no instance is no data, and nothing to ring for.
        treat_missing_data="notBreaching",
        alarm_actions=[topic.arn],
        opts=self.child(),
        **rest,
    )


def _queue_age(
    self: Component,
    name: str,
    *,
    every_min: int,
    namespace: str,
    queue_arns: Mapping[str, pulumi.Input[str]],
    retention_days: int,
    grants: Grants,
) -> None:
    """Make a function that looks at the queues on a schedule and publishes `queue_age_function.METRIC`, by queue.

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
    allowed = aws.iam.RolePolicy(name, role=role.id, policy=_queue_age_policy(namespace, log), opts=self.child())
    source = Path(queue_age_function.__file__).read_text()
    queues = pulumi.Output.all(*queue_arns.values()).apply(
        lambda known: json.dumps(sorted(arn for arn in known if arn))
    )
    function = aws.lambda_.Function(
        name,
        description="How old the oldest RUNNABLE job of each queue is",
        runtime=_RUNTIME,
        handler="index.handler",
        code=pulumi.AssetArchive({"index.py": pulumi.StringAsset(source)}),
        role=role.arn,
        timeout=_TIMEOUT_S,
        memory_size=_MEMORY_MIB,
        logging_config=aws.lambda_.FunctionLoggingConfigArgs(log_format="Text", log_group=log.name),
        environment=aws.lambda_.FunctionEnvironmentArgs(variables={"NAMESPACE": namespace, "QUEUES": queues}),
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


def _queue_age_policy(namespace: str, log: aws.cloudwatch.LogGroup) -> pulumi.Output[str]:
    # Neither ListJobs nor PutMetricData has a resource level; the namespace is what can be held. Sources:
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
    condition = {"StringEquals": {"cloudwatch:namespace": namespace}}
    return policies.document(
        policies.allow(["batch:ListJobs"], "*"),
        policies.allow(["cloudwatch:PutMetricData"], "*", Condition=condition),
        policies.allow(["logs:CreateLogStream", "logs:PutLogEvents"], joined(log.arn, ":*")),
    )


def _dashboard(
    self: Component, name: str, args: MonitoringArgs, alarms: list[aws.cloudwatch.MetricAlarm]
) -> aws.cloudwatch.Dashboard:
    wired = pulumi.Output.all(
        queues=dict(args.queue_arns), clusters=dict(args.cluster_arns), alarms=[alarm.arn for alarm in alarms]
    )
    return aws.cloudwatch.Dashboard(
        name,
        # One of the few names that AWS wants to be given; the account's dashboards share one list.
        dashboard_name=args.prefix,
        dashboard_body=wired.apply(
            lambda known: json.dumps(
                dashboard(region=args.region, namespace=args.namespace, gpu_namespaces=args.gpu_namespaces, **known),
                sort_keys=True,
            )
        ),
        opts=self.child(),
    )

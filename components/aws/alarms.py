"""CloudWatch alarms for queues where many jobs fail or wait long, and for environments whose GPUs are idle. AWS Batch
has no metric for how long the oldest RUNNABLE job of a queue has waited: a Lambda function publishes one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec, join
from ..sdk import aws
from . import functions, policies, queue_age_function
from .dashboard import JOB_EVENTS
from .gpu_metrics import UTILISATION
from .notifications import Grants
from .queue_age_function import METRIC

_TIMEOUT_S = 120


class FailedJobs(Spec):
    """An alarm for a queue where many jobs fail."""

    SUFFIX: ClassVar[str] = "failed"

    jobs: int = Field(
        default=10,
        ge=1,
        description="Number of failed jobs in one period that raises the alarm; children of arrays are counted",
    )
    period_s: int = Field(default=3600, description="Period in seconds, a multiple of 60")

    def check(self) -> list[Finding]:
        return rules.alarm(period_s=self.period_s)

    def alarm(self, queue: str, arn: pulumi.Input[str]) -> dict[str, Any]:
        return {
            "alarm_description": f"{self.jobs} or more jobs of queue {queue} failed in {self.period_s} s",
            "metric_name": JOB_EVENTS,
            "dimensions": {"Queue": arn, "Status": "FAILED"},
            "statistic": "Sum",
            "period": self.period_s,
            "comparison_operator": "GreaterThanOrEqualToThreshold",
            "threshold": self.jobs,
        }


class IdleGpus(Spec):
    """An alarm for an environment whose instances run and compute little."""

    below_percent: float = Field(
        default=10,
        gt=0,
        le=100,
        description="GPU utilization in percent below which the alarm is raised: the average over all GPUs of the "
        "environment",
    )
    period_s: int = Field(
        default=300, description="Period in seconds, a multiple of 60 and not shorter than gpu_interval_s"
    )
    periods: int = Field(default=12, ge=1, description="Number of consecutive periods after which the alarm is raised")

    def check(self) -> list[Finding]:
        return rules.alarm(period_s=self.period_s, periods=self.periods)

    def alarm(self, environment: str) -> dict[str, Any]:
        return {
            "alarm_description": f"GPUs of environment {environment} were used less than {self.below_percent:g} "
            f"percent for {self.period_s * self.periods} s",
            "metric_name": UTILISATION,
            "statistic": "Average",
            "period": self.period_s,
            "evaluation_periods": self.periods,
            "comparison_operator": "LessThanThreshold",
            "threshold": self.below_percent,
        }


class WaitingJobs(Spec):
    """An alarm for a queue whose oldest RUNNABLE job waits long. AWS Batch has no such metric: a Lambda function of the
    stack measures it, which costs a few cents a month."""

    SUFFIX: ClassVar[str] = "waiting"

    minutes: int = Field(
        default=60,
        ge=5,
        le=10_080,
        description="Minutes that a job may be RUNNABLE before the alarm is raised; 10,080 is a week",
    )
    every_min: int = Field(default=5, ge=1, le=60, description="Interval in minutes at which the function measures")

    def alarm(self, queue: str, arn: pulumi.Input[str]) -> dict[str, Any]:
        return {
            "alarm_description": f"The oldest RUNNABLE job of queue {queue} is older than {self.minutes} min: "
            "`jobs explain` tells why it waits",
            "metric_name": METRIC,
            "dimensions": {"Queue": arn},
            "statistic": "Maximum",
            "period": 60 * self.every_min,
            "comparison_operator": "GreaterThanThreshold",
            "threshold": 60 * self.minutes,
        }


def queue_alarms(
    self: Component,
    name: str,
    spec: FailedJobs | WaitingJobs | None,
    topic: aws.sns.Topic,
    namespace: str,
    queue_arns: Mapping[str, pulumi.Input[str]],
) -> list[aws.cloudwatch.MetricAlarm]:
    """Create the alarm for each queue."""
    if spec is None:
        return []
    common = {"namespace": namespace, "evaluation_periods": 1}
    arguments = {queue: {**common, **spec.alarm(queue, arn)} for queue, arn in queue_arns.items()}
    return _alarms(self, name, spec.SUFFIX, topic, arguments)


def idle_gpus(
    self: Component, name: str, spec: IdleGpus | None, topic: aws.sns.Topic, namespaces: Mapping[str, str]
) -> list[aws.cloudwatch.MetricAlarm]:
    """Create the alarm for each environment, whose metrics have a namespace of their own."""
    if spec is None:
        return []
    arguments = {key: {"namespace": namespace, **spec.alarm(key)} for key, namespace in namespaces.items()}
    return _alarms(self, name, "idle", topic, arguments)


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
    """Create a function that publishes `queue_age_function.METRIC`, by queue, on a schedule. It reserves no
    concurrency: AWS permits no reservation out of the ten executions of a new account, and two simultaneous runs
    publish the same figures. Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html"""
    source = Path(queue_age_function.__file__).read_text()
    queues = pulumi.Output.all(*queue_arns.values()).apply(
        lambda known: json.dumps(sorted(arn for arn in known if arn))
    )
    function = functions.function(
        self,
        name,
        description="How old the oldest RUNNABLE job of each queue is",
        role_description="Lambda: the age of waiting Batch jobs",
        handler="index.handler",
        files={"index.py": source},
        timeout_s=_TIMEOUT_S,
        variables={"NAMESPACE": namespace, "QUEUES": queues},
        policy=lambda log: _policy(namespace, log),
        retention_days=retention_days,
        grants=grants,
    )
    functions.schedule(self, name, function, every_min, "When to look at waiting Batch jobs")


def _alarms(
    self: Component, name: str, suffix: str, topic: aws.sns.Topic, arguments: Mapping[str, dict[str, Any]]
) -> list[aws.cloudwatch.MetricAlarm]:
    return [
        aws.cloudwatch.MetricAlarm(
            f"{name}-{key}-{suffix}",
            # No events or no instances mean no data, which is no reason for an alarm.
            treat_missing_data="notBreaching",
            alarm_actions=[topic.arn],
            opts=self.child(),
            **own,
        )
        for key, own in arguments.items()
    ]


def _policy(namespace: str, log: aws.cloudwatch.LogGroup) -> pulumi.Output[str]:
    # Neither ListJobs nor PutMetricData has a resource level; only the namespace can be restricted. Sources:
    # https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html,
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
    condition = {"StringEquals": {"cloudwatch:namespace": namespace}}
    return policies.document(
        policies.allow(["batch:ListJobs"], "*"),
        policies.allow(["cloudwatch:PutMetricData"], "*", Condition=condition),
        policies.allow(["logs:CreateLogStream", "logs:PutLogEvents"], join(log.arn, ":*")),
    )

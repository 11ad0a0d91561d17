"""When CloudWatch rings: for queues where jobs fail in numbers, and for environments whose GPUs are idle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec
from ..sdk import aws
from .dashboard import JOB_EVENTS
from .gpu_metrics import UTILISATION
from .queue_age_function import METRIC


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


def failed_jobs(
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


def idle_gpus(
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


def waiting_jobs(
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


def _alarm(self: Component, name: str, topic: aws.sns.Topic, **rest: Any) -> aws.cloudwatch.MetricAlarm:
    return aws.cloudwatch.MetricAlarm(
        name,
        # No event and no instance is no data, and nothing to ring for.
        treat_missing_data="notBreaching",
        alarm_actions=[topic.arn],
        opts=self.child(),
        **rest,
    )

"""An AWS Batch queue over one to three compute environments, tried in order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws
from pydantic import Field

from accel.rules import aws_queues as rules
from accel.rules.finding import Finding

from ..base import Component, Spec


class TimeLimit(Spec):
    """Cancels a job that has stayed RUNNABLE for one reason for too long."""

    reason: str = Field(description="as Batch words it, such as CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    max_time_s: int = Field(description="600 to 86400")


HOPELESS = [
    TimeLimit(reason="MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE", max_time_s=600),
    TimeLimit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", max_time_s=600),
]
"""Reasons that waiting never cures: such a job ends with the reason, and not after days in the queue.
Source: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"""


class JobQueueSpec(Spec):
    """Which environments a queue uses, and how it treats jobs that cannot start."""

    environments: list[str] = Field(description="keys of environments, the first is tried first")
    priority: int = Field(default=1, description="the higher one is served first")
    state: Literal["ENABLED", "DISABLED"] = Field(
        default="ENABLED", description="a disabled queue takes no new jobs and finishes those it has"
    )
    time_limits: list[TimeLimit] = HOPELESS

    def findings(self) -> list[Finding]:
        found = rules.queue(environments=self.environments, priority=self.priority)
        for index, limit in enumerate(self.time_limits):
            found += rules.time_limit(reason=limit.reason, max_time_s=limit.max_time_s, field=f"time_limits[{index}]")
        return found


@dataclass(frozen=True, kw_only=True)
class JobQueueArgs:
    """The spec, and the ARN of each environment that it names."""

    spec: JobQueueSpec
    environment_arns: Mapping[str, pulumi.Input[str]]


class JobQueue(Component):
    """A job queue. Replacing it loses the jobs that wait in it."""

    TYPE = "accel:aws:JobQueue"

    arn: pulumi.Output[str]

    def __init__(self, name: str, args: JobQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        queue = aws.batch.JobQueue(
            name,
            state=spec.state,
            priority=spec.priority,
            compute_environment_orders=[
                aws.batch.JobQueueComputeEnvironmentOrderArgs(
                    order=order, compute_environment=args.environment_arns[key]
                )
                for order, key in enumerate(spec.environments, start=1)
            ],
            job_state_time_limit_actions=[
                aws.batch.JobQueueJobStateTimeLimitActionArgs(
                    action="CANCEL", state="RUNNABLE", reason=limit.reason, max_time_seconds=limit.max_time_s
                )
                for limit in spec.time_limits
            ],
            opts=self.child(),
        )
        self.arn = queue.arn
        self.finish()

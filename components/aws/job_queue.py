"""An AWS Batch queue over one to three compute environments, tried in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Self

import pulumi
from pydantic import Field, model_validator

from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding
from accel.rules.aws import queues as rules
from accel.rules.aws import shares as aws_shares

from ..base import Component, Spec
from ..sdk import aws
from .adoption import AdoptedQueue, ignored_properties


class TimeLimit(Spec):
    """A limit after which a job that has stayed RUNNABLE for one reason is cancelled."""

    reason: str = Field(description="Reason as Batch states it, such as CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    max_time_s: int = Field(description="Seconds after which the job is cancelled, 600 to 86400")


HOPELESS = [
    TimeLimit(reason="MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE", max_time_s=600),
    TimeLimit(reason="MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT", max_time_s=600),
]
"""Reasons that waiting never cures. Such a job ends with the reason instead of waiting in the queue for days. Source:
https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html"""


class FairShare(Spec):
    """A policy that shares a queue between teams, users or projects, instead of first in, first out.

    Every job then names its share (`aws_batch.share_identifier`). AWS neither adds a policy to a queue nor removes one,
    so adding `fair_share` to an existing queue, or removing it, replaces the queue; its content may change at any time.
    """

    shares: dict[str, float] = Field(
        default_factory=dict[str, float],
        description="Weights by share identifier, or by prefix*: 0.5 gets twice what 1 gets; one that is not "
        "listed weighs 1",
    )
    decay_s: int = Field(default=0, description="Seconds for which past use counts, at most 604800; 0: 600")
    reservation_percent: int = Field(
        default=0,
        description="Percentage of the vCPUs that is kept for further shares while one is active; with two active, "
        "the square of that fraction",
    )

    def check(self) -> list[Finding]:
        return aws_shares.policy(shares=self.shares, decay_s=self.decay_s, reservation_percent=self.reservation_percent)


class JobQueueSpec(Spec):
    """The environments of a queue, and its treatment of jobs that cannot start."""

    environments: list[str] = Field(description="Keys of compute environments, in the order to try")
    priority: int = Field(default=1, description="Priority; queues with a higher one are served first")
    state: Literal["ENABLED", "DISABLED"] = Field(
        default="ENABLED", description="DISABLED: accept no new jobs, and finish those already in the queue"
    )
    time_limits: list[TimeLimit] = HOPELESS
    fair_share: FairShare | None = Field(default=None, description="Fair-share policy. Without it, first in, first out")
    adopted: AdoptedQueue | None = Field(default=None, description="Adopt a job queue that existed before the stack")

    def check(self) -> list[Finding]:
        found = rules.queue(environments=self.environments, priority=self.priority)
        for index, limit in enumerate(self.time_limits):
            found += rules.time_limit(reason=limit.reason, max_time_s=limit.max_time_s, field=f"time_limits[{index}]")
        return found

    @property
    def shares(self) -> dict[str, float] | None:
        """Return weights by share identifier; None: first in, first out. Those of a kept policy are unknown."""
        if self.fair_share:
            return self.fair_share.shares
        return {} if self.adopted and "scheduling_policy" in self.adopted.keeps else None

    @model_validator(mode="after")
    def _one_policy(self) -> Self:
        if self.fair_share and self.adopted and "scheduling_policy" in self.adopted.keeps:
            message = "is set, and adopted.keeps has scheduling_policy, the policy that is there; drop one of them"
            raise several([("fair_share", message)])
        return self


@dataclass(frozen=True, kw_only=True)
class JobQueueArgs:
    """The spec, ARNs of the environments that it names, and tags and hooks of `stop_hooks()` if a budget stops it."""

    spec: JobQueueSpec
    environment_arns: Mapping[str, pulumi.Input[str]]
    stop_tags: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])
    hooks: pulumi.ResourceHookBinding | None = None


class JobQueue(Component):
    """A job queue. Replacing it loses the jobs that wait in it."""

    TYPE = "accel:aws:JobQueue"

    arn: pulumi.Output[str]

    def __init__(self, name: str, args: JobQueueArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        queue = aws.batch.JobQueue(
            name,
            name=spec.adopted.name if spec.adopted else None,
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
            scheduling_policy_arn=self._policy(name, spec.fair_share) if spec.fair_share else None,
            tags={**(spec.adopted.tags if spec.adopted else {}), **args.stop_tags} or None,
            # AWS refuses to add a policy to a queue, and the provider's update does not remove one.
            # https://docs.aws.amazon.com/batch/latest/APIReference/API_CreateJobQueue.html
            opts=self.child(
                ignore_changes=ignored_properties(spec.adopted),
                replace_on_changes=["schedulingPolicyArn"],
                hooks=args.hooks,
            ),
        )
        self.arn = queue.arn
        self.finish()

    def _policy(self, name: str, fair: FairShare) -> pulumi.Output[str]:
        policy = aws.batch.SchedulingPolicy(
            name,
            fair_share_policy=aws.batch.SchedulingPolicyFairSharePolicyArgs(
                compute_reservation=fair.reservation_percent,
                share_decay_seconds=fair.decay_s,
                share_distributions=[
                    aws.batch.SchedulingPolicyFairSharePolicyShareDistributionArgs(
                        share_identifier=identifier, weight_factor=weight
                    )
                    for identifier, weight in sorted(fair.shares.items())
                ],
            ),
            opts=self.child(),
        )
        return policy.arn

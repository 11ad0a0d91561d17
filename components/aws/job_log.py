"""The log group that every job of a stack writes to."""

from __future__ import annotations

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import keys
from accel.rules.aws import monitoring as rules

from ..base import Component, Spec
from ..sdk import aws


class JobLogSpec(Spec):
    """Retention of the jobs' output."""

    retention_days: int = Field(
        default=90, description="Retention in days, one of the periods that CloudWatch Logs offers"
    )
    kms_key_arn: str | None = Field(
        default=None,
        description="ARN of a KMS key of your own, whose policy has to allow CloudWatch Logs: docs/keys.md",
    )
    retain_on_delete: bool = Field(default=False, description="Keep the logs when the stack is destroyed")

    def check(self) -> list[Finding]:
        return rules.retention("retention_days", self.retention_days)


class JobLog(Component):
    """A CloudWatch log group. A job's log stream is <definition>/default/<ECS task id> in it."""

    TYPE = "accel:aws:JobLog"

    name: pulumi.Output[str]
    arn: pulumi.Output[str]

    def __init__(self, name: str, spec: JobLogSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        self.warn(keys.logs("kms_key_arn", spec.kms_key_arn))
        group = aws.cloudwatch.LogGroup(
            name,
            retention_in_days=spec.retention_days,
            kms_key_id=spec.kms_key_arn,
            opts=self.child(retain_on_delete=spec.retain_on_delete),
        )
        self.name = group.name
        self.arn = group.arn
        self.finish()

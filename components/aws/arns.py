"""ARNs in the account and partition that a component is deployed to."""

from __future__ import annotations

from typing import Literal

import pulumi

from ..base import Component, join
from ..sdk import aws


def account_id(self: Component) -> pulumi.Output[str]:
    return aws.get_caller_identity_output(opts=pulumi.InvokeOptions(parent=self)).account_id


def partition(self: Component) -> pulumi.Output[str]:
    """Return aws, aws-cn, aws-us-gov or aws-eusc."""
    return aws.get_partition_output(opts=pulumi.InvokeOptions(parent=self)).partition


def iam_arn(self: Component, kind: Literal["role", "instance-profile"], given: str | None) -> pulumi.Input[str] | None:
    """Complete a name, with its path, to an ARN: Batch takes names, and pulumi-aws only ARNs. Source:
    https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/service/batch/compute_environment.go"""
    if given is None or given.startswith("arn:"):
        return given
    return join("arn:", partition(self), ":iam::", account_id(self), f":{kind}/", given.removeprefix("/"))

"""What whoever submits jobs may do: a managed policy to attach to people, groups and roles.

Which actions know resources, and which conditions, is AWS's:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pydantic import Field

from accel.contract.submissions import DIGEST, KEY_TAG, own_definition

from ..base import Component, Spec, joined
from ..sdk import aws
from . import policies

READS = (
    *("batch:DescribeComputeEnvironments", "batch:DescribeJobDefinitions", "batch:DescribeJobQueues"),
    *("batch:DescribeJobs", "batch:DescribeSchedulingPolicies", "batch:ListJobs"),
    *("servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota"),
)
"""Those of Batch have no resource level; limits of the account are no secret of a stack."""

LEDGER = (
    *("dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"),
    *("dynamodb:Query", "dynamodb:UpdateItem"),
)
"""A transaction needs the actions of its parts, and none of its own. Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html"""
ROWS = ("dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem")

PER_POLICY = 30
"""ARNs of queues and definitions in one policy, of which IAM takes 6,144 characters.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""


class SubmitPolicySpec(Spec):
    """What the stack's name decides."""

    definition_prefix: str = Field(description="definitions that jobs register carry it")
    targets_path: str = Field(pattern="^/", description="of the SSM parameters that hold the targets")


@dataclass(frozen=True, kw_only=True)
class SubmitPolicyArgs:
    """The spec, and what jobs are submitted to and with. Definitions are by their ARNs without a revision."""

    spec: SubmitPolicySpec
    region: str
    queue_arns: Sequence[pulumi.Input[str]]
    definition_arns: Sequence[pulumi.Input[str]]
    role_arns: Sequence[pulumi.Input[str]]
    """Of jobs, which their own definitions name."""
    log_group_arn: pulumi.Input[str]
    claim_table_arn: pulumi.Input[str] | None
    ledger_arn: pulumi.Input[str] | None = None
    """Of the table of allowances."""
    code_bucket_arn: pulumi.Input[str] | None = None
    code_arn: pulumi.Input[str] | None = None
    """Of the objects with code in that bucket."""


class SubmitPolicy(Component):
    """A policy with which jobs are submitted, looked at, stopped and explained in one stack, and nothing else.

    It is one policy, and further ones where a stack has more queues and definitions than one holds: attach all of them.
    """

    TYPE = "accel:aws:SubmitPolicy"

    policy_arns: pulumi.Output[list[str]]

    def __init__(self, name: str, args: SubmitPolicyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        invoke = pulumi.InvokeOptions(parent=self)
        account = aws.get_caller_identity_output(opts=invoke).account_id
        partition = aws.get_partition_output(opts=invoke).partition

        def arn(service: str, rest: str) -> pulumi.Output[str]:
            return joined("arn:", partition, f":{service}:{args.region}:", account, f":{rest}")

        named = [form for each in args.definition_arns for form in _both(each)]
        arns = [*args.queue_arns, *named]
        documents = [[_submit(arns[i : i + PER_POLICY])] for i in range(0, len(arns), PER_POLICY)]
        documents[0] += _rest(args, arn("batch", ""), arn("ssm", f"parameter{args.spec.targets_path}"))
        made = [
            aws.iam.Policy(
                name if i == 0 else f"{name}-{i + 1}",
                description=f"Submit jobs to {args.spec.definition_prefix}",
                policy=policies.document(*statements),
                opts=self.child(),
            )
            for i, statements in enumerate(documents)
        ]
        self.policy_arns = pulumi.Output.all(*[each.arn for each in made])
        self.finish()


def _both(arn: pulumi.Input[str]) -> list[pulumi.Input[str]]:
    # A request that names no revision is held against the bare ARN, whatever the guide says
    # (https://github.com/aws/aws-cdk/issues/26128), one that does against the revision's.
    return [arn, joined(arn, ":*")]


def _submit(arns: list[Any]) -> policies.Statement:
    return policies.allow(["batch:GetJobQueueSnapshot", "batch:SubmitJob"], arns)


def _rest(args: SubmitPolicyArgs, batch: pulumi.Output[str], published: pulumi.Output[str]) -> list[policies.Statement]:
    """All but the queues and definitions. `batch`: an ARN of Batch as far as the kind of resource."""
    own = _both(joined(batch, "job-definition/", own_definition(args.spec.definition_prefix, "?" * DIGEST)))
    statements = [
        # A job's own definition, and the tags of both; a request with tags asks for TagResource besides.
        policies.allow(["batch:RegisterJobDefinition", "batch:SubmitJob", "batch:TagResource"], own),
        policies.allow(["batch:SubmitJob", "batch:TagResource"], joined(batch, "job/*")),
        policies.allow(
            ["iam:PassRole"],
            list(args.role_arns),
            Condition={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
        ),
        # By the tag that every submitted job has. Tasks of an array have no tags that AWS would look at
        # (https://docs.aws.amazon.com/batch/latest/APIReference/API_TagResource.html).
        policies.allow(
            ["batch:TerminateJob"],
            joined(batch, "job/*"),
            Condition={"Null": {f"aws:ResourceTag/{KEY_TAG}": "false"}},
        ),
        policies.allow(["batch:TerminateJob"], joined(batch, "job/*:*")),
        policies.allow(list(READS), "*"),
        policies.allow(["logs:GetLogEvents"], joined(args.log_group_arn, ":log-stream:*")),
        # Of the group, whose ARN AWS has with and without what stands for its streams.
        # Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatchlogs.html
        policies.allow(["logs:FilterLogEvents"], [args.log_group_arn, joined(args.log_group_arn, ":*")]),
        policies.allow(["ssm:GetParametersByPath"], [published, joined(published, "/*")]),
    ]
    if args.claim_table_arn is not None:
        statements.append(policies.allow(list(ROWS), args.claim_table_arn))
    if args.ledger_arn is not None:
        statements.append(policies.allow(list(LEDGER), args.ledger_arn))
    if args.code_bucket_arn is not None and args.code_arn is not None:
        # Without ListBucket S3 answers 403 for code that is not there yet.
        # Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
        statements.append(policies.allow(["s3:ListBucket"], args.code_bucket_arn))
        statements.append(policies.allow(["s3:GetObject", "s3:PutObject"], args.code_arn))
    return statements

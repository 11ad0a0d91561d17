"""A managed policy with the permissions to submit jobs, to attach to people, groups and roles. AWS's list of actions
that support resources and conditions:
https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
from pydantic import Field

from accel.contract import stop
from accel.contract.submissions import DIGEST, STACK_TAG, own_definition

from ..base import Component, Spec, join
from ..sdk import aws
from . import policies

READS = (
    *("batch:DescribeComputeEnvironments", "batch:DescribeJobDefinitions", "batch:DescribeJobQueues"),
    *("batch:DescribeJobs", "batch:DescribeSchedulingPolicies", "batch:ListJobs"),
    *("servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota"),
)
"""Read actions. Those of Batch have no resource level; limits of the account are no secret of a stack."""

LEDGER = (
    *("dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem"),
    *("dynamodb:Query", "dynamodb:UpdateItem"),
)
"""Actions on the ledger. A transaction needs the actions of its parts, and none of its own. Source:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html"""
CLAIMS = ("dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem")
NOT_THE_STOP = {
    "ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": [stop.KEYS]},
    "Null": {"dynamodb:LeadingKeys": "false"},
}
"""A condition that keeps submitters from writing the stack's own rows, those that are not submission keys; they may
read them. `ForAllValues` alone would match a request without the key. A Deny would also bind a person who may resume
the stack. Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html,
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html"""

NOT_PRIVILEGED = {"BoolIfExists": {"batch:Privileged": "false", "batch:EKSPrivileged": "false"}}
"""A condition that refuses requests in which the key is true. AWS does not document whether it sets the key for a
definition that omits the field, hence IfExists. Source:
https://docs.aws.amazon.com/batch/latest/userguide/iam-example-job-def.html"""

PASSED_TO = ("batch.amazonaws.com", "ecs-tasks.amazonaws.com")
"""Services to which RegisterJobDefinition may pass a job's roles. AWS's reference lists iam:PassRole without a
service's name, and no other page was found that has one: ECS's tasks assume the roles, and Batch takes the call.
Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsbatch.html"""

FIRST, PER_POLICY = 21, 30
"""Number of ARNs of queues and definitions in the first policy, which also has everything else, and in each further
one. IAM takes 6,144 characters. Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""


class SubmitPolicySpec(Spec):
    """Settings that follow from the stack's name."""

    definition_prefix: str = Field(description="Prefix of the names of definitions that jobs register")
    targets_path: str = Field(pattern="^/", description="Path of the SSM parameters that hold the targets")


@dataclass(frozen=True, kw_only=True)
class SubmitPolicyArgs:
    """The spec, and the queues and definitions that jobs are submitted with. ARNs of definitions have no revision."""

    spec: SubmitPolicySpec
    region: str
    queue_arns: Sequence[pulumi.Input[str]]
    definition_arns: Sequence[pulumi.Input[str]]
    role_arns: Sequence[pulumi.Input[str]]
    log_group_arn: pulumi.Input[str]
    claim_table_arn: pulumi.Input[str] | None
    ledger_arn: pulumi.Input[str] | None = None
    """ARN of the table of allowances."""
    code_bucket_arn: pulumi.Input[str] | None = None
    code_arn: pulumi.Input[str] | None = None
    """ARN of the objects with code in that bucket."""
    log_groups: Sequence[str] = ()
    """Names of further log groups that definitions write to."""


class SubmitPolicy(Component):
    """A policy to submit, inspect, stop and explain jobs in one stack, and nothing else. A stack with more queues and
    definitions than one policy holds has several: attach all of them."""

    TYPE = "accel:aws:SubmitPolicy"

    policy_arns: pulumi.Output[list[str]]

    def __init__(self, name: str, args: SubmitPolicyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        invoke = pulumi.InvokeOptions(parent=self)
        account = aws.get_caller_identity_output(opts=invoke).account_id
        partition = aws.get_partition_output(opts=invoke).partition

        def arn(service: str, rest: str) -> pulumi.Output[str]:
            return join("arn:", partition, f":{service}:{args.region}:", account, f":{rest}")

        named = [form for each in args.definition_arns for form in _both(each)]
        arns = [*args.queue_arns, *named]
        starts = [0, *range(FIRST, len(arns), PER_POLICY)]
        documents = [[_submit(arns[at:end])] for at, end in zip(starts, [*starts[1:], None], strict=True)]
        groups = [args.log_group_arn, *(arn("logs", f"log-group:{group}") for group in args.log_groups)]
        documents[0] += _rest(args, arn("batch", ""), arn("ssm", f"parameter{args.spec.targets_path}"), groups)
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
    # IAM compares a request without revision with the bare ARN, whatever the guide says
    # (https://github.com/aws/aws-cdk/issues/26128), and one with a revision with the revision's ARN.
    return [arn, join(arn, ":*")]


def _submit(arns: list[Any]) -> policies.Statement:
    return policies.allow(["batch:GetJobQueueSnapshot", "batch:SubmitJob"], arns)


def _rest(
    args: SubmitPolicyArgs,
    batch: pulumi.Output[str],
    published: pulumi.Output[str],
    log_groups: Sequence[pulumi.Input[str]],
) -> list[policies.Statement]:
    """Return all other statements. `batch`: an ARN of Batch up to the kind of resource."""
    streams = [join(group, ":log-stream:*") for group in log_groups]
    own = _both(join(batch, "job-definition/", own_definition(args.spec.definition_prefix, "?" * DIGEST)))
    jobs, stack = join(batch, "job/*"), args.spec.definition_prefix
    statements = [
        # A job's own definition, and the tags of both; a request with tags needs TagResource as well.
        policies.allow(["batch:SubmitJob", "batch:TagResource"], own),
        policies.allow(["batch:RegisterJobDefinition"], own[0], Condition=NOT_PRIVILEGED),
        policies.allow(["batch:SubmitJob"], jobs),
        # A tag does not turn a job of another stack into one of this stack. It can do so for an unmarked job: IAM
        # cannot distinguish the tags of a new job from those added later to a job without the mark.
        policies.allow(
            ["batch:TagResource"],
            jobs,
            Condition={
                "StringEqualsIfExists": {
                    f"aws:RequestTag/{STACK_TAG}": stack,
                    f"aws:ResourceTag/{STACK_TAG}": stack,
                }
            },
        ),
        policies.allow(
            ["iam:PassRole"],
            list(args.role_arns),
            Condition={"StringEquals": {"iam:PassedToService": list(PASSED_TO)}},
        ),
        # No condition key names a job's queue, so its tag identifies the stack. Tasks of an array have no tags
        # (https://docs.aws.amazon.com/batch/latest/APIReference/API_TagResource.html), so no single task can be ended:
        # a statement for them would cover the tasks of every array in the account.
        policies.allow(
            ["batch:TerminateJob"], jobs, Condition={"StringEquals": {f"aws:ResourceTag/{STACK_TAG}": stack}}
        ),
        policies.allow(list(READS), "*"),
        policies.allow(["logs:GetLogEvents"], streams if streams[1:] else streams[0]),
        # The group's ARN: AWS has it with and without the wildcard of its streams. Source:
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatchlogs.html
        policies.allow(["logs:FilterLogEvents"], [form for group in log_groups for form in _both(group)]),
        policies.allow(["ssm:GetParametersByPath"], [published, join(published, "/*")]),
    ]
    if args.claim_table_arn is not None:
        statements.append(policies.allow(["dynamodb:GetItem"], args.claim_table_arn))
        statements.append(policies.allow(list(CLAIMS), args.claim_table_arn, Condition=NOT_THE_STOP))
    if args.ledger_arn is not None:
        statements.append(policies.allow(list(LEDGER), args.ledger_arn))
    if args.code_bucket_arn is not None and args.code_arn is not None:
        # Without ListBucket S3 answers 403 for code that does not exist yet. Source:
        # https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
        statements.append(policies.allow(["s3:ListBucket"], args.code_bucket_arn))
        statements.append(policies.allow(["s3:GetObject", "s3:PutObject"], args.code_arn))
    return statements

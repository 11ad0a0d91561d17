"""The three roles of a Batch job: for the instance, the agent that starts the container, and the job's code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import keys, storage
from accel.rules.aws import secrets as aws_secrets
from accel.rules.jobs import placeholders

from ..base import Component, Spec, join, map_present
from ..sdk import aws
from . import policies
from .bucket_mounts import Access
from .job_definition import EfsVolume

INSTANCE_POLICY = "service-role/AmazonEC2ContainerServiceforEC2Role"
"""For an instance's ECS agent. Source: https://docs.aws.amazon.com/batch/latest/userguide/instance_IAM_role.html"""


class BatchRolesSpec(Spec):
    """Resources that jobs may access."""

    read_buckets: list[str] = Field(default_factory=list, description="S3 buckets that jobs may read")
    write_buckets: list[str] = Field(default_factory=list, description="S3 buckets that jobs may read and write")
    secrets: list[str] = Field(
        default_factory=list,
        description="ARNs of secrets and parameters that may be put into a job's environment",
    )
    repositories: list[str] = Field(
        default_factory=list, description="ARNs of further ECR repositories that jobs may pull from"
    )
    kms_key_arns: list[str] = Field(
        default_factory=list,
        description="ARNs of your own KMS keys that encrypt buckets, secrets and parameters; jobs may use them for "
        "those only",
    )
    permissions_boundary: str | None = Field(
        default=None,
        description="ARN of a managed policy, set as the permissions boundary of every role that the stack creates",
    )

    def check(self) -> list[Finding]:
        listed = {"secrets": self.secrets, "repositories": self.repositories, "kms_key_arns": self.kms_key_arns}
        by_field = {f"{field}[{i}]": arn for field, arns in listed.items() for i, arn in enumerate(arns)}
        references = aws_secrets.references({field: arn for field, arn in by_field.items() if field[:7] == "secrets"})
        references += keys.keys("kms_key_arns", self.kms_key_arns)
        references += storage.bucket_names("read_buckets", self.read_buckets)
        references += storage.bucket_names("write_buckets", self.write_buckets)
        return references + placeholders.arns({**by_field, "permissions_boundary": self.permissions_boundary})


@dataclass(frozen=True, kw_only=True)
class BatchRolesArgs:
    """The spec; the log group, repositories and secrets of the stack that the execution role may use; the metric
    namespaces in which instances may publish; the EFS volumes that jobs mount and the buckets that instances mount."""

    spec: BatchRolesSpec
    log_group_arn: pulumi.Input[str]
    repository_arns: Sequence[pulumi.Input[str]]
    secret_arns: Sequence[str] = ()
    metric_namespaces: Sequence[str] = ()
    efs_volumes: Sequence[EfsVolume] = ()
    mounted_buckets: Mapping[str, Access] = field(default_factory=dict[str, Access])
    code_arn: pulumi.Input[str] | None = None
    """ARN of the objects with the code that jobs are sent with."""
    log_groups: Sequence[str] = ()
    """Names of further log groups that definitions write to."""


class BatchRoles(Component):
    """Instance profile, execution role and job role, each with the least privileges that its part needs. They outlive
    every environment that names them: AWS cannot delete an environment whose role is gone."""

    TYPE = "accel:aws:BatchRoles"

    instance_profile_arn: pulumi.Output[str]
    execution_role_arn: pulumi.Output[str]
    job_role_arn: pulumi.Output[str]

    def __init__(self, name: str, args: BatchRolesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        invoke = pulumi.InvokeOptions(parent=self)
        account = aws.get_caller_identity_output(opts=invoke).account_id
        partition = aws.get_partition_output(opts=invoke).partition
        self.instance_profile_arn = _instance_profile(self, name, args, partition)
        self.execution_role_arn = _execution_role(self, name, args, account, partition)
        self.job_role_arn = _job_role(self, name, args, account, partition)
        self.finish()


def _role(self: Component, name: str, spec: BatchRolesSpec, trust: pulumi.Input[str], what: str) -> aws.iam.Role:
    return aws.iam.Role(
        name,
        assume_role_policy=trust,
        description=what,
        permissions_boundary=spec.permissions_boundary,
        opts=self.child(),
    )


def _instance_profile(
    self: Component, name: str, args: BatchRolesArgs, partition: pulumi.Output[str]
) -> pulumi.Output[str]:
    role = _role(
        self, f"{name}-instance", args.spec, policies.trust_policy("ec2.amazonaws.com"), "Batch instances: ECS agent"
    )
    attached = aws.iam.RolePolicyAttachment(
        f"{name}-instance",
        role=role.name,
        policy_arn=join("arn:", partition, ":iam::aws:policy/", INSTANCE_POLICY),
        opts=self.child(),
    )
    written = [name for name, access in args.mounted_buckets.items() if access == "read-write"]
    statements = _bucket_statements(partition, args.mounted_buckets, written)
    statements += _key_statements(args.spec, args.mounted_buckets, written)
    if args.metric_namespaces:
        # PutMetricData has no resource level; only its namespace can be restricted. Source:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
        condition = {"StringEquals": {"cloudwatch:namespace": list(args.metric_namespaces)}}
        statements.append(policies.allow(["cloudwatch:PutMetricData"], "*", Condition=condition))
    if statements:
        _policy(self, f"{name}-instance", role, statements)
    profile = aws.iam.InstanceProfile(f"{name}-instance", role=role.name, opts=self.child())
    # Users of the profile wait for the attachment too, and are deleted before it: an environment without a working role
    # turns INVALID and cannot be deleted (https://github.com/hashicorp/terraform-provider-aws/issues/8549).
    return pulumi.Output.all(profile.arn, attached.id).apply(lambda both: both[0])


def _tasks_trust(account: pulumi.Output[str]) -> pulumi.Output[str]:
    # Without the condition another account's ECS could be made to use the role (the confused deputy).
    # Source: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html
    return policies.trust_policy("ecs-tasks.amazonaws.com", {"StringEquals": {"aws:SourceAccount": account}})


def _streams(args: BatchRolesArgs) -> pulumi.Output[str] | list[pulumi.Output[str]]:
    own = join(args.log_group_arn, ":log-stream:*")
    log_group = pulumi.Output.from_input(args.log_group_arn)
    ground = map_present(log_group, lambda arn: arn.partition(":log-group:")[0])
    named = [join(ground, f":log-group:{group}:log-stream:*") for group in args.log_groups]
    return [own, *named] if named else own


def _execution_role(
    self: Component, name: str, args: BatchRolesArgs, account: pulumi.Output[str], partition: pulumi.Output[str]
) -> pulumi.Output[str]:
    role = _role(self, f"{name}-execution", args.spec, _tasks_trust(account), "Batch jobs: image pull, logs, secrets")
    statements = [
        # GetAuthorizationToken has no resource level.
        policies.allow(["ecr:GetAuthorizationToken"], "*"),
        policies.allow(
            ["logs:CreateLogStream", "logs:PutLogEvents"],
            _streams(args),
        ),
    ]
    repositories = [*args.repository_arns, *args.spec.repositories]
    if repositories:
        pull = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        statements.append(policies.allow(pull, repositories))
    references = {*args.spec.secrets, *args.secret_arns}
    statements += _readable(references, account, partition)
    if references:
        statements += _use(["kms:Decrypt"], args.spec, "secretsmanager", "ssm")
    _policy(self, f"{name}-execution", role, statements)
    return role.arn


def _readable(
    references: set[str], account: pulumi.Output[str], partition: pulumi.Output[str]
) -> list[policies.Statement]:
    given = sorted({aws_secrets.readable(each) for each in references if each.startswith("arn:")})
    by_action: dict[str, list[pulumi.Input[str]]] = {aws_secrets.SECRETS: [], aws_secrets.PARAMETERS: []}
    for action, arn in given:
        by_action[action].append(arn)
    for name in sorted(each.removeprefix("/") for each in references if not each.startswith("arn:")):
        # The agent searches in the job's region.
        by_action[aws_secrets.PARAMETERS].append(join("arn:", partition, ":ssm:*:", account, ":parameter/", name))
    return [policies.allow([action], arns) for action, arns in by_action.items() if arns]


def _job_role(
    self: Component,
    name: str,
    args: BatchRolesArgs,
    account: pulumi.Output[str],
    partition: pulumi.Output[str],
) -> pulumi.Output[str]:
    spec = args.spec
    role = _role(self, f"{name}-job", spec, _tasks_trust(account), "Batch jobs: their own code")
    read = sorted({*spec.read_buckets, *spec.write_buckets})
    statements = _bucket_statements(partition, read, spec.write_buckets)
    statements += _key_statements(spec, read, spec.write_buckets)
    if args.code_arn is not None:
        statements.append(policies.allow(["s3:GetObject"], args.code_arn))
    for volume in dict.fromkeys(volume.model_copy(update={"path": "/", "folder": "/"}) for volume in args.efs_volumes):
        statements.append(_mount(volume, join("arn:", partition, ":elasticfilesystem:*:", account)))
    if statements:
        _policy(self, f"{name}-job", role, statements)
    return role.arn


def _bucket_statements(
    partition: pulumi.Output[str], read: Iterable[str], write: Iterable[str]
) -> list[policies.Statement]:
    """Include the permissions that Mountpoint needs. Source:
    https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md"""
    statements: list[policies.Statement] = []
    for names, on_objects, on_bucket in (
        (read, ["s3:GetObject"], ["s3:ListBucket"]),
        (write, ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"], []),
    ):
        arns = [join("arn:", partition, ":s3:::", bucket) for bucket in names]
        if arns:
            statements.append(policies.allow(on_objects, [join(arn, "/*") for arn in arns]))
        if arns and on_bucket:
            statements.append(policies.allow(on_bucket, arns))
    return statements


def _key_statements(spec: BatchRolesSpec, read: Collection[str], write: Collection[str]) -> list[policies.Statement]:
    """Allow the KMS calls that S3 makes on behalf of a caller who reads or writes an object. Source:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html"""
    actions = ["kms:Decrypt"] if read else []
    return _use([*actions, *(["kms:GenerateDataKey"] if write else [])], spec, "s3")


def _use(actions: list[str], spec: BatchRolesSpec, *services: str) -> list[policies.Statement]:
    scopes = keys.via(spec.kms_key_arns, *services) if actions else []
    return [
        policies.allow(actions, list(scope.keys), Condition={"StringEquals": {"kms:ViaService": list(scope.services)}})
        for scope in scopes
    ]


def _mount(volume: EfsVolume, prefix: pulumi.Output[str]) -> policies.Statement:
    """Source: https://docs.aws.amazon.com/efs/latest/ug/access-points-iam-policy.html"""
    actions = ["elasticfilesystem:ClientMount", *([] if volume.read_only else ["elasticfilesystem:ClientWrite"])]
    file_system = join(prefix, ":file-system/", volume.file_system)
    if volume.access_point is None:
        return policies.allow(actions, file_system)
    point = join(prefix, ":access-point/", volume.access_point)
    # The region is unknown here, and only ArnLike compares patterns.
    return policies.allow(actions, file_system, Condition={"ArnLike": {"elasticfilesystem:AccessPointArn": point}})


def _policy(self: Component, name: str, role: aws.iam.Role, statements: list[policies.Statement]) -> None:
    aws.iam.RolePolicy(name, role=role.id, policy=policies.document(*statements), opts=self.child())

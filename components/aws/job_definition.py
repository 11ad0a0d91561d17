"""An AWS Batch job definition for GPU containers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import definitions as rules
from accel.rules.aws import secrets as aws_secrets
from accel.rules.aws import storage
from accel.rules.aws.retries import INFRASTRUCTURE

from ..base import Component, Spec
from ..sdk import aws
from .adoption import AdoptedDefinition, ignored_properties


class ExitRule(Spec):
    """The consequence of an attempt's end. Patterns may end in *; the first rule whose patterns all match decides."""

    action: Literal["RETRY", "EXIT"]
    on_status_reason: str | None = None
    on_reason: str | None = None
    on_exit_code: str | None = None


class EfsVolume(Spec):
    """An EFS file system, mounted with encryption in transit and with the job's role."""

    kind: Literal["efs"]
    file_system: str = Field(description="Id of the file system, fs-...")
    access_point: str | None = Field(
        default=None,
        description="Id of an access point, fsap-..., whose folder and user apply, whatever the job asks for",
    )
    folder: str = Field(default="/", pattern="^/", description="Folder of the file system; an access point has its own")
    path: str = Field(pattern="^/", description="Mount point in the container")
    read_only: bool = False

    def check(self) -> list[Finding]:
        return storage.efs(self.file_system, self.folder, self.access_point)


class HostVolume(Spec):
    """A folder of the instance, such as /scratch of an environment with local_nvme."""

    kind: Literal["host"]
    folder: str = Field(pattern="^/", description="Folder on the instance")
    path: str = Field(pattern="^/", description="Mount point in the container")
    read_only: bool = False


Volume = Annotated[EfsVolume | HostVolume, Field(discriminator="kind")]


class JobDefinitionSpec(Spec):
    """The container of this definition's jobs, and the defaults of a job."""

    image: str = Field(min_length=1)
    command: list[str] = Field(default_factory=list, description="Command as argv. Default: the image's own")
    vcpus: int
    memory_mib: int
    gpus: int = Field(default=1, description="Number of whole GPUs of one container")
    shm_mib: int | None = Field(
        default=2048, ge=1, description="Shared memory in MiB, part of memory_mib; Docker's own default is 64"
    )
    env: dict[str, str] = Field(default_factory=dict)
    secrets: dict[str, str] = Field(
        default_factory=dict,
        description="Environment variables by name, each with the ARN of a secret (:<key>:<stage>:<version> may "
        "follow) or parameter",
    )
    volumes: list[Volume] = Field(default_factory=list[Volume])
    attempts: int = Field(default=3, description="Number of attempts, including the first: 1 to 10")
    evaluate_on_exit: list[ExitRule] = Field(
        default=[ExitRule.model_validate(rule) for rule in INFRASTRUCTURE],
        description="Retry rules. Default: retry preemptions and failed starts, never failures of the program",
    )
    timeout_s: int | None = Field(default=86_400, description="Timeout of one attempt in seconds, at least 60")
    propagate_tags: bool = True
    job_role: str | None = Field(
        default=None, description="ARN of the role of the job's code. Default: the stack's own"
    )
    execution_role: str | None = Field(
        default=None, description="ARN of the role that starts the container. Default: the stack's own"
    )
    log_group: Annotated[str, Field(pattern=r"^[.\-_/#A-Za-z0-9]{1,512}$")] | None = Field(
        default=None, description="Existing CloudWatch log group for the jobs. Default: the stack's own"
    )
    log_prefix: Annotated[str, Field(pattern=r"^[^:*]{1,128}$")] | None = Field(
        default=None, description="First part of the names of the log streams. Default: the definition's key"
    )
    adopted: AdoptedDefinition | None = Field(
        default=None, description="Adopt a job definition that existed before the stack"
    )

    def check(self) -> list[Finding]:
        secrets = {f"secrets.{name}": arn for name, arn in self.secrets.items()}
        return aws_secrets.references(secrets) + rules.definition(
            rules.DefinitionValues(
                image=self.image,
                vcpus=self.vcpus,
                memory_mib=self.memory_mib,
                gpus=self.gpus,
                shm_mib=self.shm_mib,
                env=self.env,
                attempts=self.attempts,
                evaluate_on_exit=[rule.model_dump(exclude_none=True) for rule in self.evaluate_on_exit],
                timeout_s=self.timeout_s,
                arns={
                    "job_role": self.job_role,
                    "execution_role": self.execution_role,
                    **secrets,
                },
            )
        )


@dataclass(frozen=True, kw_only=True)
class JobDefinitionArgs:
    """The spec, and the log group and roles of its containers."""

    spec: JobDefinitionSpec
    region: str
    log_group: pulumi.Input[str]
    job_role_arn: pulumi.Input[str]
    execution_role_arn: pulumi.Input[str]


class JobDefinition(Component):
    """A job definition. Every change registers a revision; the old ones stay active for jobs that still name them.
    `arn` has no revision: a job submitted with it runs the latest one."""

    TYPE = "accel:aws:JobDefinition"

    arn: pulumi.Output[str]

    def __init__(self, name: str, args: JobDefinitionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        definition = aws.batch.JobDefinition(
            name,
            name=spec.adopted.name if spec.adopted else None,
            type="container",
            platform_capabilities=["EC2"],
            container_properties=pulumi.Output.all(
                log_group=spec.log_group or args.log_group,
                job_role=spec.job_role or args.job_role_arn,
                execution_role=spec.execution_role or args.execution_role_arn,
            ).apply(lambda wired: canonical(container(spec, args.region, name, **wired))),
            retry_strategy=aws.batch.JobDefinitionRetryStrategyArgs(
                attempts=spec.attempts,
                evaluate_on_exits=[
                    aws.batch.JobDefinitionRetryStrategyEvaluateOnExitArgs(**rule.model_dump())
                    for rule in spec.evaluate_on_exit
                ],
            ),
            timeout=aws.batch.JobDefinitionTimeoutArgs(attempt_duration_seconds=spec.timeout_s)
            if spec.timeout_s
            else None,
            propagate_tags=spec.propagate_tags,
            # The provider's default deregisters the old revision, while jobs in the queue still use it
            # (https://github.com/pulumi/pulumi-aws/issues/3845).
            deregister_on_new_revision=False,
            tags=(spec.adopted.tags or None) if spec.adopted else None,
            opts=self.child(ignore_changes=ignored_properties(spec.adopted)),
        )
        self.arn = definition.arn_prefix
        self.finish()


def container(
    spec: JobDefinitionSpec, region: str, stream: str, *, log_group: str, job_role: str, execution_role: str
) -> dict[str, Any]:
    """Return `containerProperties` as the API takes them; every value of a resource requirement is text."""
    needs = {"VCPU": spec.vcpus, "MEMORY": spec.memory_mib, "GPU": spec.gpus}
    properties: dict[str, Any] = {
        "image": spec.image,
        "command": spec.command,
        "resourceRequirements": [{"type": kind, "value": str(value)} for kind, value in needs.items() if value],
        "environment": [{"name": key, "value": value} for key, value in sorted(spec.env.items())],
        "secrets": [{"name": key, "valueFrom": arn} for key, arn in sorted(spec.secrets.items())],
        "jobRoleArn": job_role,
        "executionRoleArn": execution_role,
        "privileged": False,
        # An init process forwards SIGTERM: as process 1, Python without a handler ignores it, and saves nothing.
        "linuxParameters": {"initProcessEnabled": True},
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": log_group,
                "awslogs-region": region,
                "awslogs-stream-prefix": spec.log_prefix or stream,
            },
        },
    }
    if spec.shm_mib:
        properties["linuxParameters"]["sharedMemorySize"] = spec.shm_mib
    if spec.volumes:
        names = [f"volume-{i}" for i in range(len(spec.volumes))]
        mounted = list(zip(names, spec.volumes, strict=True))
        properties["volumes"] = [{"name": name, **_source(volume)} for name, volume in mounted]
        properties["mountPoints"] = [
            {"sourceVolume": name, "containerPath": volume.path, "readOnly": volume.read_only}
            for name, volume in mounted
        ]
    return properties


def _source(volume: EfsVolume | HostVolume) -> dict[str, Any]:
    if isinstance(volume, HostVolume):
        return {"host": {"sourcePath": volume.folder}}
    authorization = {"iam": "ENABLED"}
    if volume.access_point:
        authorization["accessPointId"] = volume.access_point
    return {
        "efsVolumeConfiguration": {
            "fileSystemId": volume.file_system,
            "rootDirectory": volume.folder,
            "transitEncryption": "ENABLED",
            "authorizationConfig": authorization,
        }
    }


def canonical(properties: dict[str, Any]) -> str:
    """Return one spelling for one meaning: an equal definition in another order must not register a revision."""
    return json.dumps(properties, sort_keys=True, separators=(",", ":"))

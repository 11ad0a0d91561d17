"""A managed AWS Batch compute environment of GPU instances, on demand or on Spot."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pulumi
import pulumi_aws as aws
from pydantic import Field

from accel.rules import aws_environments as rules
from accel.rules.finding import Finding

from ..base import Component, Spec
from .launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec


class _EnvironmentSpec(Spec):
    """What both variants have."""

    instance_types: list[str] = Field(min_length=1, description="families or sizes: g5, g6.12xlarge")
    max_vcpus: int = Field(description="over all instances at once; Batch may exceed it by one instance")
    min_vcpus: int = Field(default=0, description="kept running and paid for, even while disabled")
    state: Literal["ENABLED", "DISABLED"] = "ENABLED"
    image_type: str = Field(default="ECS_AL2023_NVIDIA", description="which image Batch looks up")
    image_id_override: str | None = Field(default=None, description="an AMI of your own in its place")
    instance: LaunchTemplateSpec = LaunchTemplateSpec()
    instance_profile: str | None = Field(default=None, description="ARN or name; without one, the stack's own")
    service_role: str | None = Field(
        default=None,
        description="leave empty: with a role of your own AWS cannot update the environment in place",
    )
    terminate_jobs_on_update: bool = False
    update_timeout_min: int = Field(default=30, ge=1, le=360, description="how long an update waits for running jobs")

    def _findings(self, kind: str, **variant: Any) -> list[Finding]:
        return rules.environment(
            kind=kind,
            instance_types=self.instance_types,
            min_vcpus=self.min_vcpus,
            max_vcpus=self.max_vcpus,
            state=self.state,
            image_type=self.image_type,
            image_id_override=self.image_id_override,
            instance_profile=self.instance_profile,
            service_role=self.service_role,
            **variant,
        )


class OnDemandSpec(_EnvironmentSpec):
    """Instances at the on-demand price."""

    capacity: Literal["on-demand"] = "on-demand"
    allocation_strategy: str = "BEST_FIT_PROGRESSIVE"

    def findings(self) -> list[Finding]:
        return self._findings("EC2", allocation_strategy=self.allocation_strategy)


class SpotSpec(_EnvironmentSpec):
    """Spot instances: cheaper, and reclaimed with two minutes' notice."""

    capacity: Literal["spot"] = "spot"
    allocation_strategy: str = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    bid_percentage: int | None = Field(default=None, description="of the on-demand price; best left empty")
    spot_fleet_role: str | None = Field(default=None, description="only BEST_FIT needs one")

    def findings(self) -> list[Finding]:
        return self._findings(
            "SPOT",
            allocation_strategy=self.allocation_strategy,
            bid_percentage=self.bid_percentage,
            spot_fleet_role=self.spot_fleet_role,
        )


ComputeEnvironmentSpec = Annotated[OnDemandSpec | SpotSpec, Field(discriminator="capacity")]


@dataclass(frozen=True, kw_only=True)
class ComputeEnvironmentArgs:
    """The spec, and the network, profile and tags of its instances."""

    spec: OnDemandSpec | SpotSpec
    subnet_ids: pulumi.Input[list[str]]
    security_group_ids: pulumi.Input[list[str]]
    instance_profile_arn: pulumi.Input[str]
    tags: dict[str, str] = field(default_factory=dict[str, str])


class ComputeEnvironment(Component):
    """A compute environment that scales between min_vcpus and max_vcpus.

    Its physical name is generated, so that a replacement exists before the old one goes: a queue names environments,
    and AWS deletes none that a queue names.
    """

    TYPE = "accel:aws:ComputeEnvironment"

    arn: pulumi.Output[str]
    ecs_cluster_arn: pulumi.Output[str]

    def __init__(self, name: str, args: ComputeEnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        template = LaunchTemplate(name, LaunchTemplateArgs(spec=spec.instance, tags=args.tags), self.child())
        environment = aws.batch.ComputeEnvironment(
            name,
            type="MANAGED",
            state=spec.state,
            service_role=spec.service_role,
            compute_resources=_resources(spec, args, template),
            update_policy=_update_policy(spec),
            # Batch moves desired vCPUs as jobs come and go; a value of ours would be drift after the first job
            # (https://github.com/hashicorp/terraform-provider-aws/issues/4788).
            opts=self.child(ignore_changes=["computeResources.desiredVcpus"]),
        )
        self.arn = environment.arn
        self.ecs_cluster_arn = environment.ecs_cluster_arn
        self.finish()


def _resources(
    spec: OnDemandSpec | SpotSpec, args: ComputeEnvironmentArgs, template: LaunchTemplate
) -> aws.batch.ComputeEnvironmentComputeResourcesArgs:
    spot = spec if isinstance(spec, SpotSpec) else None
    return aws.batch.ComputeEnvironmentComputeResourcesArgs(
        type="SPOT" if spot else "EC2",
        allocation_strategy=spec.allocation_strategy,
        bid_percentage=spot.bid_percentage if spot else None,
        spot_iam_fleet_role=spot.spot_fleet_role if spot else None,
        instance_types=spec.instance_types,
        min_vcpus=spec.min_vcpus,
        max_vcpus=spec.max_vcpus,
        instance_role=spec.instance_profile or args.instance_profile_arn,
        subnets=args.subnet_ids,
        security_group_ids=args.security_group_ids,
        ec2_configurations=[
            # Said explicitly: the image that Batch picks by default has changed before, and would again under us.
            aws.batch.ComputeEnvironmentComputeResourcesEc2ConfigurationArgs(
                image_type=spec.image_type, image_id_override=spec.image_id_override
            )
        ],
        launch_template=aws.batch.ComputeEnvironmentComputeResourcesLaunchTemplateArgs(
            launch_template_id=template.id, version=template.version
        ),
        tags=args.tags or None,
    )


def _update_policy(spec: OnDemandSpec | SpotSpec) -> aws.batch.ComputeEnvironmentUpdatePolicyArgs | None:
    # AWS refuses an update policy where it cannot update in place.
    if spec.service_role or spec.allocation_strategy == "BEST_FIT":
        return None
    return aws.batch.ComputeEnvironmentUpdatePolicyArgs(
        job_execution_timeout_minutes=spec.update_timeout_min,
        terminate_jobs_on_update=spec.terminate_jobs_on_update,
    )

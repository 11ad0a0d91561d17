"""The launch template of every instance of a compute environment: encrypted disk, IMDSv2, user data."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pulumi
from pydantic import Field

from accel.rules.aws import keys

from ..base import Component, Spec, map_present
from ..sdk import aws
from .capacity_reservation import CapacityReservationSpec, market, reservation_target

ROOT_DEVICE = "/dev/xvda"
"""Root device of the ECS-optimised Amazon Linux 2023 images.
Source: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-optimized_AMI.html"""

BOUNDARY = "==accel=="
"""Fixed, since a random boundary would create a new template version on every update."""


class LaunchTemplateSpec(Spec):
    """Disk, metadata service and user data of an instance."""

    disk_gib: int = Field(
        default=200,
        ge=30,
        le=16_384,
        description="Size in GiB of the encrypted gp3 root volume, for images and scratch data",
    )
    disk_iops: int = Field(default=3000, ge=3000, le=16_000)
    disk_mib_s: int = Field(default=125, ge=125, le=1000, description="Throughput of the root volume in MiB/s")
    metadata_hop_limit: int = Field(
        default=1,
        ge=1,
        le=2,
        description="Hop limit of IMDS: 1 suffices for jobs of Batch; 2 is for containers in bridge mode",
    )
    kms_key_arn: str | None = Field(
        default=None,
        description="ARN of a KMS key of your own for the volume; its policy has to allow Auto Scaling: docs/keys.md",
    )
    user_data: list[str] = Field(default_factory=list, description="Shell scripts to run in order at first boot")


@dataclass(frozen=True, kw_only=True)
class LaunchTemplateArgs:
    """The spec, scripts that run after its own, network interfaces (none: Batch's one), a reservation, and tags for
    instances and volumes, which a provider's default tags do not reach."""

    spec: LaunchTemplateSpec
    scripts: Sequence[str] = ()
    interfaces: Sequence[aws.ec2.LaunchTemplateNetworkInterfaceArgs] = ()
    reservation: CapacityReservationSpec | None = None
    tags: dict[str, str] = field(default_factory=dict[str, str])


class LaunchTemplate(Component):
    """An EC2 launch template. Every change creates a version; `version` is its number, never $Latest or $Default: Batch
    resolves those once and keeps the result."""

    TYPE = "accel:aws:LaunchTemplate"

    id: pulumi.Output[str]
    version: pulumi.Output[str]

    def __init__(self, name: str, args: LaunchTemplateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        self.warn(keys.volumes("kms_key_arn", args.spec.kms_key_arn))
        template = aws.ec2.LaunchTemplate(
            name,
            block_device_mappings=[_root(args.spec)],
            metadata_options=_metadata(args.spec),
            monitoring=aws.ec2.LaunchTemplateMonitoringArgs(enabled=False),
            user_data=base64.b64encode(user_data([*args.spec.user_data, *args.scripts]).encode()).decode(),
            network_interfaces=list(args.interfaces) or None,
            capacity_reservation_specification=reservation_target(args.reservation) if args.reservation else None,
            instance_market_options=market(args.reservation) if args.reservation else None,
            tag_specifications=_tagged(args.tags),
            opts=self.child(),
        )
        self.id = template.id
        self.version = map_present(template.latest_version, str)
        self.finish()


def _root(spec: LaunchTemplateSpec) -> aws.ec2.LaunchTemplateBlockDeviceMappingArgs:
    return aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
        device_name=ROOT_DEVICE,
        ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=spec.disk_gib,
            volume_type="gp3",
            iops=spec.disk_iops,
            throughput=spec.disk_mib_s,
            encrypted="true",
            kms_key_id=spec.kms_key_arn,
            delete_on_termination="true",
        ),
    )


def _metadata(spec: LaunchTemplateSpec) -> aws.ec2.LaunchTemplateMetadataOptionsArgs:
    return aws.ec2.LaunchTemplateMetadataOptionsArgs(
        http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=spec.metadata_hop_limit
    )


def _tagged(tags: dict[str, str]) -> list[aws.ec2.LaunchTemplateTagSpecificationArgs] | None:
    if not tags:
        return None
    return [
        aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=tags) for kind in ("instance", "volume")
    ]


def user_data(scripts: list[str]) -> str:
    """Return MIME multipart, since Batch merges its own part into it and refuses anything else. Source:
    https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html"""
    spot_draining = "#!/bin/bash\necho ECS_ENABLE_SPOT_INSTANCE_DRAINING=true >> /etc/ecs/ecs.config\n"
    message = MIMEMultipart(boundary=BOUNDARY)
    for script in (spot_draining, *scripts):
        message.attach(MIMEText(script, "x-shellscript", "us-ascii" if script.isascii() else "utf-8"))
    return message.as_string()

"""A managed AWS Batch compute environment of GPU instances, on demand or on Spot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pulumi
from pydantic import BeforeValidator, Field

from accel.diagnostics.findings import Finding
from accel.rules.aws import clusters, reservations, storage
from accel.rules.aws import environments as rules

from ..base import Component, Spec
from ..sdk import aws
from .adoption import AdoptedEnvironment, ignored_properties
from .arns import iam_arn
from .bucket_mounts import Access, bucket_mounts_script
from .capacity_reservation import CapacityReservationSpec
from .draining import DrainSpec
from .environment_hooks import tag_of
from .launch_template import LaunchTemplate, LaunchTemplateArgs, LaunchTemplateSpec
from .node_cluster import efa_interfaces, node_group, placement_group


def _folder(value: Any) -> Any:
    return {True: SCRATCH, False: None}[value] if isinstance(value, bool) else value


_Path = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._-]+)+$")]  # goes into a boot script as it is
Folder = Annotated[_Path | None, BeforeValidator(_folder, json_schema_input_type=bool | _Path | None)]


class _EnvironmentSpec(Spec):
    """Fields that both variants have."""

    instance_types: list[str] = Field(
        min_length=1,
        description="Instance families or sizes, such as g5 or g6.12xlarge; a family newer than the catalogue "
        "causes a warning",
    )
    max_vcpus: int = Field(
        description="Maximum number of vCPUs of all instances at once; Batch may exceed it by one instance"
    )
    min_vcpus: int = Field(
        default=0,
        description="Number of vCPUs that are kept running and paid for, even while the environment is disabled",
    )
    state: Literal["ENABLED", "DISABLED"] = "ENABLED"
    image_type: str = Field(default="ECS_AL2023_NVIDIA", description="Image type for which Batch looks up the AMI")
    image_id_override: str | None = Field(
        default=None, description="Id of an AMI of your own, in place of the one that Batch looks up"
    )
    instance: LaunchTemplateSpec = LaunchTemplateSpec()
    instance_profile: str | None = Field(
        default=None, description="Instance profile: an ARN, or path and name. Default: the stack's own"
    )
    service_role: str | None = Field(
        default=None,
        description="Service role; leave it empty, since AWS cannot update the environment in place with a role of "
        "your own",
    )
    terminate_jobs_on_update: bool = False
    update_timeout_min: int = Field(
        default=rules.UPDATE_MIN,
        ge=1,
        le=360,
        description="Minutes that an update waits for running jobs; the provider gives up after 20 minutes",
    )
    drain: DrainSpec = DrainSpec()
    placement: Literal["cluster"] | None = Field(
        default=None, description="cluster: place instances close together, for jobs of several nodes"
    )
    efa: bool = Field(
        default=False, description="Attach every EFA interface of the instance type; needs placement: cluster"
    )
    zone: str | None = Field(default=None, description="One zone of a network that the stack creates. Default: all")
    subnet_ids: list[str] | None = Field(
        default=None, min_length=1, description="Ids of subnets, in place of the network's"
    )
    capacity_reservation: CapacityReservationSpec | None = Field(
        default=None, description="Reservation that instances are launched into, and nowhere else"
    )
    local_nvme: Folder = Field(
        default=None, description="Mount point of the instance's own NVMe disks: true for /scratch, or another path"
    )
    buckets: dict[str, Access] = Field(
        default_factory=dict[str, Access],
        description="S3 buckets mounted on every instance, read-only or read-write, by name; jobs mount "
        "s3://<bucket>[/folder]",
    )
    adopted: AdoptedEnvironment | None = Field(
        default=None, description="Adopt a compute environment that existed before the stack"
    )

    def _findings(self, kind: str, **variant: Any) -> list[Finding]:
        return self._shape(kind) + rules.environment(
            rules.EnvironmentValues(
                kind=kind,
                instance_types=self.instance_types,
                min_vcpus=self.min_vcpus,
                max_vcpus=self.max_vcpus,
                state=self.state,
                image_type=self.image_type,
                image_id_override=self.image_id_override,
                instance_profile=self.instance_profile,
                service_role=self.service_role,
                update_timeout_min=self.update_timeout_min if self.updates_in_place else None,
                imported=self.adopted is not None,
                subnet_ids=self.subnet_ids or (),
                **variant,
            )
        )

    def _shape(self, kind: str) -> list[Finding]:
        reserved, types = self.capacity_reservation, self.instance_types
        found = storage.local_nvme(self.local_nvme, types) + storage.bucket_mounts(self.buckets, self.image_type)
        found += clusters.cluster(
            kind=kind, placement=self.placement, efa=self.efa, instance_types=types, in_block=self.in_block
        )
        if reserved:
            by_group = reserved.group_arn is not None
            found += reservations.environment(
                kind=kind, market=reserved.market, by_group=by_group, instance_types=types, placement=self.placement
            )
        return found

    @property
    def updates_in_place(self) -> bool:
        """Return whether AWS replaces its instances in place; it refuses an update policy otherwise."""
        strategy = getattr(self, "allocation_strategy", None)
        return not self.service_role and strategy != "BEST_FIT"

    @property
    def in_block(self) -> bool:
        return self.capacity_reservation is not None and self.capacity_reservation.market == reservations.BLOCK

    @property
    def one_zone(self) -> str | None:
        """Return the field that forces all instances into one zone."""
        fields = {"placement": self.placement, "capacity_reservation": self.capacity_reservation, "efa": self.efa}
        return next((name for name, value in fields.items() if value), None)


class OnDemandSpec(_EnvironmentSpec):
    """Instances at the on-demand price."""

    capacity: Literal["on-demand"] = "on-demand"
    allocation_strategy: str = "BEST_FIT_PROGRESSIVE"

    def check(self) -> list[Finding]:
        return self._findings("EC2", allocation_strategy=self.allocation_strategy)


class SpotSpec(_EnvironmentSpec):
    """Spot instances: cheaper, and interrupted with two minutes' notice."""

    capacity: Literal["spot"] = "spot"
    allocation_strategy: str = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    bid_percentage: int | None = Field(
        default=None, description="Maximum price in percent of the on-demand price; best left empty"
    )
    spot_fleet_role: str | None = Field(default=None, description="Spot Fleet role; only BEST_FIT needs one")

    def check(self) -> list[Finding]:
        return self._findings(
            "SPOT",
            allocation_strategy=self.allocation_strategy,
            bid_percentage=self.bid_percentage,
            spot_fleet_role=self.spot_fleet_role,
        )


ComputeEnvironmentSpec = Annotated[OnDemandSpec | SpotSpec, Field(discriminator="capacity")]


@dataclass(frozen=True, kw_only=True)
class ComputeEnvironmentArgs:
    """The spec, the network, profile and tags of its instances, and the hooks of `environment_hooks()`: without them
    AWS refuses to delete an environment that a queue has just stopped naming. Only a cluster uses `vpc_id`."""

    spec: OnDemandSpec | SpotSpec
    region: str
    hooks: pulumi.ResourceHookBinding | None
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[list[str]]
    security_group_ids: pulumi.Input[list[str]]
    instance_profile_arn: pulumi.Input[str]
    image_id: str | None = None
    """The AMI that images.lock.yaml pins for the image type. The spec's own takes precedence."""
    boot_scripts: Sequence[str] = ()
    """Scripts to run at first boot, after the user data of the spec."""
    tags: dict[str, str] = field(default_factory=dict[str, str])
    stop_tags: Mapping[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])
    """Tags of the environment itself, in which the hooks see that a budget has stopped it."""


class ComputeEnvironment(Component):
    """A compute environment that scales between min_vcpus and max_vcpus. Its name is generated, so that a replacement
    exists before the old one is deleted: AWS deletes none that a queue names."""

    TYPE = "accel:aws:ComputeEnvironment"

    arn: pulumi.Output[str]
    ecs_cluster_arn: pulumi.Output[str]

    def __init__(self, name: str, args: ComputeEnvironmentArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        adopted = spec.adopted
        groups = _groups(self, name, spec, args)
        template = None if adopted and "launch_template" in adopted.keeps else _template(self, name, spec, args, groups)
        close = placement_group(self, name) if spec.placement else None
        environment = aws.batch.ComputeEnvironment(
            name,
            name=adopted.name if adopted else None,
            type="MANAGED",
            state=spec.state,
            service_role=iam_arn(self, "role", spec.service_role),
            compute_resources=_resources(self, spec, args, template, groups, close),
            update_policy=_update_policy(spec),
            tags={**(adopted.tags if adopted else {}), **tag_of(spec.drain), **args.stop_tags},
            region=args.region,  # for the hooks: of one whose creation failed, the state has no ARN
            # Batch changes desired vCPUs as jobs come and go; our own value would be drift after the first job
            # (https://github.com/hashicorp/terraform-provider-aws/issues/4788).
            opts=self.child(
                ignore_changes=["computeResources.desiredVcpus", *ignored_properties(adopted)], hooks=args.hooks
            ),
        )
        self.arn = environment.arn
        self.ecs_cluster_arn = environment.ecs_cluster_arn
        self.finish()


def _groups(
    self: Component, name: str, spec: OnDemandSpec | SpotSpec, args: ComputeEnvironmentArgs
) -> pulumi.Input[list[str]]:
    if not (spec.placement or spec.efa):
        return args.security_group_ids
    among = node_group(self, name, args.vpc_id)
    return pulumi.Output.all(args.security_group_ids, among.id).apply(lambda ids: [*ids[0], ids[1]])


def own_scripts(spec: OnDemandSpec | SpotSpec) -> list[str]:
    disks = [local_nvme_script(spec.local_nvme)] if spec.local_nvme else []
    return [*disks, *([bucket_mounts_script(spec.buckets, storage.BUCKET_ROOT)] if spec.buckets else [])]


def _template(
    self: Component,
    name: str,
    spec: OnDemandSpec | SpotSpec,
    args: ComputeEnvironmentArgs,
    groups: pulumi.Input[list[str]],
) -> LaunchTemplate:
    template = LaunchTemplateArgs(
        spec=spec.instance,
        scripts=[*own_scripts(spec), *args.boot_scripts],
        interfaces=efa_interfaces(clusters.efa_cards(spec.instance_types), groups) if spec.efa else (),
        reservation=spec.capacity_reservation,
        tags=args.tags,
    )
    return LaunchTemplate(name, template, self.child())


def _resources(
    self: Component,
    spec: OnDemandSpec | SpotSpec,
    args: ComputeEnvironmentArgs,
    template: LaunchTemplate | None,
    groups: pulumi.Input[list[str]],
    close: aws.ec2.PlacementGroup | None,
) -> aws.batch.ComputeEnvironmentComputeResourcesArgs:
    spot = spec if isinstance(spec, SpotSpec) else None
    return aws.batch.ComputeEnvironmentComputeResourcesArgs(
        type="SPOT" if spot else "EC2",
        allocation_strategy=spec.allocation_strategy,
        bid_percentage=spot.bid_percentage if spot else None,
        spot_iam_fleet_role=iam_arn(self, "role", spot.spot_fleet_role) if spot else None,
        instance_types=spec.instance_types,
        min_vcpus=spec.min_vcpus,
        max_vcpus=spec.max_vcpus,
        instance_role=iam_arn(self, "instance-profile", spec.instance_profile) or args.instance_profile_arn,
        subnets=spec.subnet_ids or args.subnet_ids,
        # Batch accepts the groups either here or in the template's interfaces, but not both
        # (https://github.com/aws/aws-cdk/issues/21577).
        security_group_ids=None if spec.efa else groups,
        placement_group=close.name if close else None,
        ec2_configurations=[
            # Explicit, since the image that Batch picks by default has changed before, and may change again.
            aws.batch.ComputeEnvironmentComputeResourcesEc2ConfigurationArgs(
                image_type=spec.image_type, image_id_override=spec.image_id_override or args.image_id
            )
        ],
        launch_template=aws.batch.ComputeEnvironmentComputeResourcesLaunchTemplateArgs(
            launch_template_id=template.id, version=template.version
        )
        if template
        else None,
        tags=args.tags or None,
    )


def _update_policy(spec: OnDemandSpec | SpotSpec) -> aws.batch.ComputeEnvironmentUpdatePolicyArgs | None:
    if not spec.updates_in_place:
        return None
    return aws.batch.ComputeEnvironmentUpdatePolicyArgs(
        job_execution_timeout_minutes=spec.update_timeout_min,
        terminate_jobs_on_update=spec.terminate_jobs_on_update,
    )


SCRATCH = "/scratch"
DISKS = "/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*"
"""udev's names of instance store volumes; EBS volumes are `nvme-Amazon_Elastic_Block_Store_*`.
Source: https://docs.aws.amazon.com/ebs/latest/userguide/nvme-ebs-volumes.html"""


def local_nvme_script(path: str, disks: str = DISKS) -> str:
    """Return a user data script that mounts the local disks at `path`: XFS, striped (RAID 0), writable for all. A
    second run changes nothing. If it fails, jobs run all the same, and `path` is a folder of the root volume."""
    return f"""\
#!/bin/bash
set -euo pipefail
mountpoint -q {path} && exit 0
udevadm settle || true
mapfile -t disks < <(for disk in {disks}; do [ -e "$disk" ] && readlink -f "$disk"; done | sort -u)
if [ ${{#disks[@]}} -eq 0 ]; then
  echo "accel: no local NVMe disk for {path}" >&2
  exit 1
fi
device=${{disks[0]}}
if [ ${{#disks[@]}} -gt 1 ]; then
  command -v mdadm >/dev/null || dnf install -y mdadm
  device=/dev/md/scratch
  mdadm --create "$device" --run --level=0 --raid-devices=${{#disks[@]}} "${{disks[@]}}"
fi
command -v mkfs.xfs >/dev/null || dnf install -y xfsprogs
mkfs.xfs -f "$device"
mkdir -p {path}
mount -o noatime "$device" {path}
chmod 1777 {path}
"""

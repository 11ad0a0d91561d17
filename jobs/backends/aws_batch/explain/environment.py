"""Reads what a compute environment stands on: its instances, launches, image and quotas."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from accel.contract.targets import AwsBatchEnvironment
from accel.rules.aws.fit import Size

from .. import quota
from ..lookup import part, parts
from .facts import Activity, Environment, Instance
from .network import network
from .reader import Reader
from .role import role

Document = Mapping[str, Any]

# Batch calls an environment's group AWSBatch-<environment>-asg-<uuid>; the uuid is in no answer of Batch for certain.
GROUP = "AWSBatch-{}-asg-"
ACTIVITIES = 20


def environment(reader: Reader, row: Document, size: Size) -> Environment:
    """An environment of DescribeComputeEnvironments; what else there is to know of it is read when asked for."""
    resources = part(row, "computeResources")
    images = tuple(
        (str(each.get("imageType") or ""), str(resources.get("imageId") or each.get("imageIdOverride") or ""))
        for each in parts(resources, "ec2Configuration")
    )
    name, cluster = str(row["computeEnvironmentName"]), str(row.get("ecsClusterArn") or "").rpartition("/")[2]
    return Environment(
        name=name,
        state=str(row.get("state") or ""),
        status=str(row.get("status") or ""),
        reason=str(row.get("statusReason") or ""),
        spot=resources.get("type") == "SPOT",
        instance_types=tuple(resources.get("instanceTypes") or ()),
        max_vcpus=int(resources.get("maxvCpus") or 0),
        desired_vcpus=int(resources.get("desiredvCpus") or 0),
        cluster=cluster,
        images=images,
        activities=cache(partial(_activities, reader, name)),
        instances=cache(partial(_instances, reader, name, cluster)),
        role=cache(partial(role, reader, str(resources.get("instanceRole") or ""))),
        network=cache(partial(network, reader, resources)),
        own_image=cache(partial(_own_image, reader, part(resources, "launchTemplate"))),
        over_quota=cache(partial(_over_quota, reader, row, resources, size)),
    )


def _activities(reader: Reader, name: str) -> tuple[Activity, ...] | None:
    """Of the environment's Auto Scaling group. A Spot environment with BEST_FIT has a Spot fleet instead, and none."""
    groups = reader.pages("autoscaling:DescribeAutoScalingGroups", "describe_auto_scaling_groups", "AutoScalingGroups")
    found = [each["AutoScalingGroupName"] for each in groups or ()]
    group = next((each for each in found if each.startswith(GROUP.format(name))), None)
    if groups is None or group is None:
        return None
    rows = reader.ask(
        "autoscaling:DescribeScalingActivities",
        lambda client: client.describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=ACTIVITIES),
    )
    return None if rows is None else tuple(_activity(each) for each in parts(rows, "Activities"))


def _activity(row: Document) -> Activity:
    failed = row.get("StatusCode") in ("Failed", "Cancelled")
    return Activity(row["StartTime"].timestamp(), failed, str(row.get("StatusMessage") or row.get("Description") or ""))


def _instances(reader: Reader, name: str, cluster: str) -> tuple[Instance, ...] | None:
    filters = [
        {"Name": "tag:aws:autoscaling:groupName", "Values": [f"{GROUP.format(name)}*"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    found = reader.pages("ec2:DescribeInstances", "describe_instances", "Reservations", Filters=filters)
    if found is None:
        return None
    rows = [row for reservation in found for row in parts(reservation, "Instances")]
    members = _members(reader, cluster) if rows else {}
    return tuple(
        Instance(
            id=row["InstanceId"],
            kind=str(row.get("InstanceType") or ""),
            launched=row["LaunchTime"].timestamp(),
            subnet=str(row.get("SubnetId") or ""),
            public_ip=bool(row.get("PublicIpAddress")),
            joined=None if members is None else members.get(row["InstanceId"], (False, 0))[0],
            registered_mib=0 if members is None else members.get(row["InstanceId"], (False, 0))[1],
        )
        for row in rows
    )


def _members(reader: Reader, cluster: str) -> dict[str, tuple[bool, int]] | None:
    """By EC2 instance: whether its agent is connected, and the memory that it registered."""
    arns = reader.ask(
        "ecs:ListContainerInstances",
        lambda ecs: [
            arn
            for page in ecs.get_paginator("list_container_instances").paginate(cluster=cluster)
            for arn in page["containerInstanceArns"]
        ],
    )
    if arns is None:
        return None
    members: dict[str, tuple[bool, int]] = {}
    for start in range(0, len(arns), 100):
        some = arns[start : start + 100]
        found = reader.ask(
            "ecs:DescribeContainerInstances",
            lambda ecs, some=some: ecs.describe_container_instances(cluster=cluster, containerInstances=some),
        )
        if found is None:
            return None
        for row in parts(found, "containerInstances"):
            memory = [
                each.get("integerValue") for each in parts(row, "registeredResources") if each["name"] == "MEMORY"
            ]
            members[row["ec2InstanceId"]] = (bool(row.get("agentConnected")), int(memory[0] or 0) if memory else 0)
    return members


def _own_image(reader: Reader, template: Document) -> str | None:
    """The launch template's image, "" for none. https://docs.aws.amazon.com/batch/latest/userguide/ami-selection-order.html"""
    if not template:
        return ""
    if parts(template, "overrides"):
        return None  # one of them may have an image for some types
    named = {
        key: value
        for key, value in (
            ("LaunchTemplateId", template.get("launchTemplateId")),
            ("LaunchTemplateName", template.get("launchTemplateName")),
        )
        if value
    }
    version = str(template.get("version") or "$Default")
    found = reader.ask(
        "ec2:DescribeLaunchTemplateVersions",
        lambda ec2: ec2.describe_launch_template_versions(Versions=[version], **named),
    )
    rows = parts(found or {}, "LaunchTemplateVersions")
    return str(part(rows[0], "LaunchTemplateData").get("ImageId") or "") if rows else None


def _over_quota(reader: Reader, row: Document, resources: Document, size: Size) -> str | None:
    place = AwsBatchEnvironment(
        name=row["computeEnvironmentName"],
        arn=row["computeEnvironmentArn"],
        capacity="spot" if resources.get("type") == "SPOT" else "on-demand",
        instance_types=list(resources.get("instanceTypes") or ()),
        max_vcpus=int(resources.get("maxvCpus") or 0),
        disk_gib=0,
    )
    answer = quota.of_environments(size, [place], reader.region)
    if answer.unknown:
        reader.unread["servicequotas:GetServiceQuota"] = "; ".join(answer.unknown)
        return None
    reader.looked["servicequotas:GetServiceQuota"] = None
    return answer.over[0] if answer.over else ""

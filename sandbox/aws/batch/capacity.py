"""Instances of compute environments as EC2, ECS and Auto Scaling show them, and the launches that fail."""

import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from moto.core.serialize import QuerySerializer
from moto.core.utils import get_service_model

from accel.catalog.quotas import Quota, quota_for

from .instances import Instance, Kind
from .state import Batch, Document, Environment

AUTO_SCALING: Any = get_service_model("autoscaling")
# Any image: the sandbox reads none.
IMAGE = "ami-0123456789abcdef0"
# Wording of launch failures: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ts-as-instancelaunchfailure.html and
# https://github.com/aws/aws-parallelcluster/issues/1860 (Spot).
FAILED = "{} Launching EC2 instance failed."
SHORT = (
    "InsufficientInstanceCapacity - We currently do not have sufficient {} capacity in the Availability Zone you "
    "requested."
)
OVER_SPOT = "Max spot instance count exceeded."
OVER_QUOTA = (
    "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of {:.0f} allows for the "
    "instance bucket that the specified instance type belongs to. Please visit "
    "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit."
)


def group_name(environment: Environment) -> str:
    return f"AWSBatch-{environment.name}-asg-{environment.document['uuid']}"


def _cluster(environment: Environment) -> str:
    return environment.document["ecsClusterArn"].rpartition("/")[2]


def _bucket(environment: Environment, kind: Kind) -> Quota | None:
    return quota_for("aws", kind.name, environment.document["computeResources"]["type"] == "SPOT")


def _subnets(batch: Batch) -> list[Any]:
    ec2: Any = batch.ec2_backend
    return [subnet for zone in ec2.subnets.values() for subnet in zone.values()]


def refusal(batch: Batch, environment: Environment, kinds: Iterable[Kind]) -> str | None:
    """Return EC2's refusal to launch one of each kind, as Auto Scaling words it, and record it as a failed activity."""
    wanted = list(kinds)
    text = next((SHORT.format(kind.name) for kind in wanted if kind.name in batch.world.stockouts), None)
    for kind in wanted:
        bucket = _bucket(environment, kind)
        limit = bucket and batch.world.quotas.limit(bucket)
        if text or bucket is None or limit is None:
            continue
        running = [
            each.kind.vcpus
            for other in batch.environments.values()
            for each in other.instances.values()
            if _bucket(other, each.kind) == bucket
        ]
        asked = [each.vcpus for each in wanted if _bucket(environment, each) == bucket]
        if sum(running) + sum(asked) > limit:
            text = OVER_SPOT if bucket.purchase == "spot" else OVER_QUOTA.format(limit)
    if text and not (environment.activities and text in environment.activities[0]["StatusMessage"]):
        _book(batch, environment, "Failed", FAILED.format(text))
    return text


def _book(batch: Batch, environment: Environment, status: str, message: str, instance: str = "") -> None:
    launched = f"Launching a new EC2 instance: {instance}" if instance else "Launching a new EC2 instance."
    now = datetime.fromtimestamp(batch.world.now(), UTC)
    row = {"ActivityId": str(uuid.uuid4()), "AutoScalingGroupName": group_name(environment), "StatusCode": status}
    row |= {"Description": f"{launched}  Status Reason: {message}" if message else launched, "StatusMessage": message}
    row |= {"Cause": "an instance was started in response to a difference between desired and actual capacity"}
    environment.activities.appendleft({**row, "StartTime": now, "EndTime": now, "Progress": 100, "Details": "{}"})


def launch(batch: Batch, environment: Environment, kind: Kind) -> Instance:
    """Launch an instance in EC2, and `register` it with ECS."""
    resources = environment.document["computeResources"]
    subnets = resources["subnets"]
    made: Any = batch.ec2_backend.run_instances(
        IMAGE, 1, None, [], instance_type=kind.name, is_instance_type_default=False,
        subnet_id=subnets[len(environment.instances) % len(subnets)],
        security_group_ids=resources.get("securityGroupIds", []), associate_public_ip=None,
        tags={"instance": {**resources.get("tags", {}), "AWSBatchServiceTag": "batch",
                           "aws:autoscaling:groupName": group_name(environment)}},
    ).instances[0]  # fmt: skip
    made.launch_time += timedelta(seconds=batch.world.offset_s)
    instance = environment.instances[made.id] = Instance(kind, made.id)
    _book(batch, environment, "Successful", "", made.id)
    register(batch, environment)
    return instance


def register(batch: Batch, environment: Environment) -> None:
    for instance in environment.instances.values():
        if not instance.arn and environment.name not in batch.world.unregistered:
            ecs: Any = batch.ecs_backend
            instance.arn = ecs.register_container_instance(_cluster(environment), instance.id).container_instance_arn


def terminate(batch: Batch, environment: Environment, instance: Instance) -> None:
    ec2: Any = batch.ec2_backend
    ecs: Any = batch.ecs_backend
    address = ec2.get_instance(instance.id).private_ip
    ec2.terminate_instances([instance.id])
    for subnet in _subnets(batch):  # moto keeps the addresses of terminated instances
        subnet.del_subnet_ip(address)
    if instance.arn:
        ecs.deregister_container_instance(_cluster(environment), instance.arn, True)
    environment.instances.pop(instance.id, None)


def scale_in(batch: Batch) -> None:
    orders = [queue.document["computeEnvironmentOrder"] for queue in batch.queues.values() if queue.runnable]
    waited_for = {entry["computeEnvironment"] for order in orders for entry in order}
    for environment in batch.environments.values():
        if environment.document["computeEnvironmentArn"] not in waited_for:
            for instance in [each for each in environment.instances.values() if not each.jobs]:
                terminate(batch, environment, instance)


def answer(batch: Batch, operation: str, body: bytes) -> bytes | None:
    """Answer Auto Scaling's operations about the groups of Batch, which moto lacks; return None for any other."""
    given = parse_qsl(body.decode())
    names = {value for key, value in given if key.startswith("AutoScalingGroupName")}
    rows = [row for row in batch.environments.values() if not names or group_name(row) in names]
    match operation:
        case "DescribeScalingActivities":
            found: Document = {"Activities": [activity for row in rows for activity in row.activities]}
        case "DescribeAutoScalingGroups":
            found = {"AutoScalingGroups": [_group(batch, row) for row in rows]}
        case _:
            return None
    serialized: Any = QuerySerializer(AUTO_SCALING.operation_model(operation)).serialize(found)["body"]
    return serialized if isinstance(serialized, bytes) else serialized.encode()


def _group(batch: Batch, environment: Environment) -> Document:
    resources, name = environment.document["computeResources"], group_name(environment)
    # A deleted role has none: the environment is INVALID then, and still listed.
    zones = [subnet.availability_zone for subnet in _subnets(batch) if subnet.id in resources["subnets"]]
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": resources["maxvCpus"],
        "DesiredCapacity": len(environment.instances),
        "DefaultCooldown": 300,
        "AvailabilityZones": sorted(set(zones)),
        "VPCZoneIdentifier": ",".join(resources["subnets"]),
        "HealthCheckType": "EC2",
        "CreatedTime": datetime.now(UTC),
        "Tags": [{"ResourceId": name, "Key": "AWSBatchServiceTag", "Value": "batch", "PropagateAtLaunch": True}],
        "Instances": [
            {
                "InstanceId": instance.id,
                "InstanceType": instance.kind.name,
                "AvailabilityZone": zones[0] if zones else "",
                "LifecycleState": "InService",
                "HealthStatus": "Healthy",
                "ProtectedFromScaleIn": False,
            }
            for instance in environment.instances.values()
        ],
    }

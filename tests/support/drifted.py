"""What people and clouds do to a stack of AWS Batch called `drift` behind its back, and what they leave behind."""

import json
import urllib.request
from typing import Any

from accel.contract.target_layout import SOURCE
from sandbox.keys import bearer
from tests.support.waiting import until

from .engine import Sandbox
from .project import Stack

REGION = "us-west-2"
NVIDIA = "ECS_AL2023_NVIDIA"
OLD = "ami-0e46815163b0833b8"
"""The GPU image of 2026-02-23 in us-east-1: no image of this region."""
TAGS = {"accel:project": "accel", "accel:stack": "drift", "accel:owner": "you"}


def control(sandbox: Sandbox, what: str, body: dict[str, Any], method: str = "POST") -> None:
    address = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/{what}"
    request = urllib.request.Request(address, json.dumps(body).encode(), bearer(sandbox.home), method=method)  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        assert answer.status == 200


def described(batch: Any, name: str) -> dict[str, Any]:
    return batch.describe_compute_environments(computeEnvironments=[name])["computeEnvironments"][0]


def well(batch: Any, name: str) -> None:
    """An update makes AWS look at an environment again."""
    batch.update_compute_environment(computeEnvironment=name, state="ENABLED")
    until(lambda: described(batch, name)["status"] == "VALID")


def reclaimed(sandbox: Sandbox, target: dict[str, Any]) -> None:
    """A job whose Spot instance is taken away, and that is then cancelled."""
    batch = sandbox.client("batch", REGION)
    job = batch.submit_job(
        jobName="reclaimed",
        jobQueue=target["queue_arn"],
        jobDefinition=target["definitions"]["examples"]["arn"],
        containerOverrides={"command": ["python", "-c", "import time; time.sleep(600)"]},
    )["jobId"]

    def described() -> dict[str, Any]:
        return batch.describe_jobs(jobs=[job])["jobs"][0]

    until(lambda: described()["status"] == "RUNNING")
    control(sandbox, "faults", {"kind": "reclaim", "job_id": job})
    until(lambda: len(described()["attempts"]) == 1)
    batch.terminate_job(jobId=job, reason="enough")
    until(lambda: described()["status"] == "FAILED")


def tagged(kind: str, name: str, stack: str = "drift") -> dict[str, Any]:
    tags = TAGS | {"accel:stack": stack, "Name": name}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": listed}]}


def left_behind(sandbox: Sandbox, stack: Stack) -> dict[str, str]:
    """What an environment that is gone may leave, and its like that is in use or another's; the leaks by their kind."""
    ec2, subnet = sandbox.client("ec2", REGION), stack.outputs()["network"]["subnet_ids"][0]
    batch = sandbox.client("batch", REGION)
    one: dict[str, Any] = {"MinCount": 1, "MaxCount": 1, "ImageId": "ami-12c6146b", "InstanceType": "g6.xlarge"}
    gone, _, _ = (
        ec2.run_instances(**one, **tagged("instance", name, of))["Instances"][0]["InstanceId"]
        for name, of in (("gone", "drift"), ("spot", "drift"), ("gone", "another"))
    )
    volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=100, VolumeType="gp3", **tagged("volume", "gone"))
    address = ec2.allocate_address(Domain="vpc", **tagged("elastic-ip", "gone"))
    interface = ec2.create_network_interface(SubnetId=subnet, **tagged("network-interface", "gone"))
    template = ec2.create_launch_template(
        LaunchTemplateName="gone", LaunchTemplateData={"ImageId": "ami-1"}, **tagged("launch-template", "gone")
    )
    queue = batch.describe_job_queues(jobQueues=[stack.outputs()["targets"]["big"]["queue_arn"]])["jobQueues"][0]
    order = queue["computeEnvironmentOrder"]
    batch.create_job_queue(jobQueueName="forgotten", priority=1, computeEnvironmentOrder=order, tags=TAGS)
    return {
        "instance": gone,
        "volume": volume["VolumeId"],
        "address": address["AllocationId"],
        "interface": interface["NetworkInterface"]["NetworkInterfaceId"],
        "launch template": template["LaunchTemplate"]["LaunchTemplateId"],
        "queue": "forgotten",
    }


def revisions(batch: Any, stack: Stack, count: int) -> tuple[str, list[str]]:
    """So many more revisions of the stack's definition: its name, and their ARNs."""
    arn = stack.outputs()["targets"]["gpu"]["definitions"]["examples"]["arn"]
    name = arn.rpartition("/")[2]
    one = batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")["jobDefinitions"][0]
    made = {"jobDefinitionName": name, "type": "container", "containerProperties": one["containerProperties"]}
    return name, [batch.register_job_definition(**made)["jobDefinitionArn"] for _ in range(count)]


def change(sandbox: Sandbox, stack: Stack, names: dict[str, str], reserved: str) -> None:
    """By hand: a maximum, a firewall, a launch template, images, a definition, targets, a reservation."""
    batch, ec2, ssm = (sandbox.client(name, REGION) for name in ("batch", "ec2", "ssm"))
    other = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    for key, image in (("spot", other), ("on-demand", OLD)):
        resources = {"ec2Configuration": [{"imageType": NVIDIA, "imageIdOverride": image}]}
        batch.update_compute_environment(computeEnvironment=names[key], computeResources=resources)
        until(lambda name=names[key]: described(batch, name)["status"] == "VALID")
    batch.update_compute_environment(computeEnvironment=names["spot"], computeResources={"maxvCpus": 64})
    own = [{"Name": "tag:accel:stack", "Values": ["drift"]}]
    group = next(
        one for one in ec2.describe_security_groups(Filters=own)["SecurityGroups"] if one["GroupName"] == "default"
    )
    opened = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[opened])
    template = described(batch, names["on-demand"])["computeResources"]["launchTemplate"]["launchTemplateId"]
    ec2.create_launch_template_version(
        LaunchTemplateId=template, SourceVersion="1", LaunchTemplateData={"EbsOptimized": True}
    )
    target = stack.outputs()["targets"]["gpu"]
    batch.deregister_job_definition(jobDefinition=f"{target['definitions']['examples']['arn']}:1")
    path = f"/accel/{stack.stack}/targets"
    published = {field: value for field, value in target.items() if field != SOURCE}
    document = json.dumps({**published, "log_group": "elsewhere"})
    ssm.put_parameter(Name=f"{path}/gpu", Value=document, Overwrite=True, Type="String")
    ssm.put_parameter(Name=f"{path}/old", Value="{}", Type="String")
    ec2.cancel_capacity_reservation(CapacityReservationId=reserved)

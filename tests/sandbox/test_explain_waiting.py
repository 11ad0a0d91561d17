"""`jobs explain` of jobs that wait, on the sandbox: each cause set up for real, and named, and no other."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from accel.diagnostics.errors import CloudRefused
from jobs.backends.base import Explanation

ON_DEMAND_G, SPOT_G = "L-DB2E81BA", "L-3819A6DF"
LATER_S = 1200
"""From now: launches, instances and jobs are no longer new."""
ECS_POLICY = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
EC2_TRUST = (
    '{"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}]}'
)

Why = Callable[..., Explanation]


@pytest.fixture(autouse=True)
def healthy(aws: Any) -> Iterator[None]:
    yield
    aws.control("faults", "DELETE")
    aws.control("quotas", **{ON_DEMAND_G: 1024, SPOT_G: 1024})


@pytest.fixture(scope="module")
def ground(aws: Any) -> dict[str, str]:
    """A network with a public subnet, one without a way out and one whose gateway does not serve it; a good profile."""
    ec2, iam = aws.client("ec2"), aws.client("iam")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    made: dict[str, str] = {"vpc": vpc}
    for at, name in enumerate(("public", "unaddressed", "closed")):
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.{at}.0/24")["Subnet"]["SubnetId"]
        made[name] = subnet
        if name == "closed":
            continue
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.modify_subnet_attribute(SubnetId=made["public"], MapPublicIpOnLaunch={"Value": True})
    made["group"] = ec2.describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"][0][
        "GroupId"
    ]
    role = aws.name("ecs-instances")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument=EC2_TRUST)
    iam.attach_role_policy(RoleName=role, PolicyArn=ECS_POLICY)
    made["profile"] = profile(aws, role)
    return made


def profile(aws: Any, role: str | None) -> str:
    """An instance profile with the role, or without one; its ARN."""
    name = aws.name("profile")
    arn = aws.client("iam").create_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Arn"]
    if role:
        aws.client("iam").add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
    return arn


def runnable(aws: Any, queue: str, **container: Any) -> str:
    job = aws.submit(queue, aws.definition(["true"], **container))
    aws.reaches(job, "RUNNABLE")
    return job


def stuck(aws: Any, queue: str, **container: Any) -> str:
    """A RUNNABLE job of which Batch has said why."""
    job = runnable(aws, queue, **container)
    aws.until(lambda: aws.job(job).get("statusReason"))
    return job


def test_too_little_memory_is_registered(aws: Any, why: Why) -> None:
    job = stuck(aws, aws.queue(aws.environment(instanceTypes=["g5.2xlarge"])), memory=32000, vcpu=4, gpu=1)
    told = why(job)
    assert told.cause == "too-much-memory"
    assert "32000 MiB" in told.reason and "g5.2xlarge registers about 30146" in told.evidence[0]
    assert told.evidence[1].startswith("AWS says: MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT")
    assert told.next_step == "ask for at most 30000 MiB to fit g5.2xlarge"
    # Without AWS's words too where the catalogue is sure.
    sure = runnable(aws, aws.queue(aws.environment(instanceTypes=["g5.2xlarge"])), memory=32700, vcpu=4, gpu=1)
    assert why(sure).cause == "too-much-memory"


@pytest.mark.parametrize(
    ("size", "cause", "shown"),
    [
        ({"gpu": 16, "memory": 4000}, "too-many-gpus", "accelerator.count is 16"),
        ({"vcpu": 200, "memory": 4000}, "too-many-vcpus", "200 vCPUs"),
    ],
)
def test_no_type_is_large_enough(aws: Any, why: Why, size: dict[str, Any], cause: str, shown: str) -> None:
    told = why(stuck(aws, aws.queue(aws.environment(maxvCpus=1024)), **size))
    assert told.cause == cause
    assert shown in told.evidence[0]


def test_max_vcpus_is_too_small(aws: Any, why: Why) -> None:
    queue = aws.queue(aws.environment(instanceTypes=["g5.2xlarge"], maxvCpus=4))
    told = why(stuck(aws, queue, vcpu=8, gpu=1))
    assert told.cause == "max-vcpus"
    assert "g5.2xlarge, the smallest that holds the job, has 8" in told.evidence[0]
    # The job itself is small, the only instance that holds it is not.
    queue = aws.queue(aws.environment(instanceTypes=["g5.2xlarge"], maxvCpus=4))
    assert why(stuck(aws, queue, vcpu=1, gpu=1)).cause == "max-vcpus"


def test_every_environment_is_disabled(aws: Any, why: Why) -> None:
    name = aws.environment()
    queue = aws.queue(name)
    aws.batch.update_compute_environment(computeEnvironment=name, state="DISABLED")
    aws.until(lambda: aws.shown_environment(name)["status"] == "VALID")
    told = why(stuck(aws, queue))
    assert told.cause == "environment-disabled"
    assert told.evidence[0].startswith(f"{name}: DISABLED")


def test_a_disabled_environment_would_hold_it(aws: Any, why: Why) -> None:
    large, small = aws.environment(instanceTypes=["g5.12xlarge"]), aws.environment(instanceTypes=["g5.xlarge"])
    queue = aws.queue(large, small)
    aws.batch.update_compute_environment(computeEnvironment=large, state="DISABLED")
    told = why(stuck(aws, queue, gpu=4))
    assert told.cause == "too-many-gpus"
    assert f"{large} has g5.12xlarge, which holds it, and is DISABLED" in told.evidence


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("INTERNAL_ERROR - no.", "environment-invalid"),
        ("CLIENT_ERROR - The subnet ID 'subnet-1' does not exist", "environment-invalid"),
        ("CLIENT_ERROR - Invalid IamInstanceProfile: gone", "instance-role"),
    ],
)
def test_an_invalid_environment_shows_its_reason(aws: Any, why: Why, reason: str, cause: str) -> None:
    name = aws.environment()
    queue = aws.queue(name)
    aws.control("faults", kind="invalid", environments={name: reason})
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")
    told = why(stuck(aws, queue))
    assert told.cause == cause
    assert reason in told.reason


def test_the_profile_is_deleted(aws: Any, why: Why) -> None:
    arn = profile(aws, None)
    name = aws.environment(instanceRole=arn)
    queue = aws.queue(name)
    aws.client("iam").delete_instance_profile(InstanceProfileName=arn.rpartition("/")[2])
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")
    assert why(stuck(aws, queue)).cause == "instance-role"


def test_the_service_role_is_gone_or_empty(aws: Any, why: Why) -> None:
    role = aws.name("role")
    queue = aws.queue(aws.environment(service_role=aws.service_role(role, policy=False)))
    job = stuck(aws, queue)
    told = why(job)
    assert told.cause == "service-role"
    assert told.evidence[0].startswith("AWS says: MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS")
    aws.client("iam").delete_role(RoleName=role)
    aws.until(lambda: "invalid" in aws.job(job).get("statusReason", ""))
    told = why(job)
    assert (told.cause, "sts:AssumeRole" in told.reason) == ("service-role", True)


@pytest.mark.parametrize("kind", ["EC2", "SPOT"])
def test_a_stockout(aws: Any, why: Why, kind: str) -> None:
    queue = aws.queue(aws.environment(type=kind, instanceTypes=["g5.xlarge"], allocationStrategy=strategy(kind)))
    aws.control("faults", kind="stockout", instance_types=["g5.xlarge"])
    told = why(stuck(aws, queue, gpu=1))
    assert told.cause == "no-capacity"
    assert ("Spot" if kind == "SPOT" else "on-demand") in told.reason
    assert "InsufficientInstanceCapacity" in told.evidence[0]
    assert told.evidence[-1].startswith("AWS says: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")


def strategy(kind: str) -> str:
    return "SPOT_PRICE_CAPACITY_OPTIMIZED" if kind == "SPOT" else "BEST_FIT_PROGRESSIVE"


@pytest.mark.parametrize(("kind", "code"), [("EC2", ON_DEMAND_G), ("SPOT", SPOT_G)])
def test_a_quota(aws: Any, why: Why, kind: str, code: str) -> None:
    queue = aws.queue(aws.environment(type=kind, instanceTypes=["g5.xlarge"], allocationStrategy=strategy(kind)))
    aws.control("quotas", **{code: 0})
    told = why(stuck(aws, queue, gpu=1))
    assert told.cause == "quota"
    assert code in told.evidence[1]
    assert "stacks quota" in told.next_step


def test_a_quota_that_others_use_up(aws: Any, why: Why) -> None:
    queue, other = (aws.queue(aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=4)) for _ in "ab")
    aws.control("quotas", **{ON_DEMAND_G: 4})
    running = aws.submit(other, aws.definition(["sleep", "60"], gpu=1))
    aws.reaches(running, "RUNNING")
    told = why(stuck(aws, queue, gpu=1))
    aws.batch.terminate_job(jobId=running, reason="over")
    assert told.cause == "quota"
    assert "VcpuLimitExceeded" in told.evidence[0]


def test_each_environment_has_its_own_obstacle(aws: Any, why: Why) -> None:
    spot = aws.environment(type="SPOT", instanceTypes=["g5.xlarge"], allocationStrategy=strategy("SPOT"))
    steady = aws.environment(instanceTypes=["g6.xlarge"])
    aws.control("faults", kind="stockout", instance_types=["g5.xlarge"])
    aws.control("quotas", **{ON_DEMAND_G: 0})
    told = why(stuck(aws, aws.queue(spot, steady), gpu=1))
    assert told.cause == "no-capacity"
    assert any(row.startswith(steady) and "VcpuLimitExceeded" in row for row in told.evidence)


def unregistered(aws: Any, ground: dict[str, str], **changes: Any) -> str:
    """A job whose instance runs and does not join the cluster."""
    resources = {
        "subnets": [ground["public"]],
        "securityGroupIds": [ground["group"]],
        "instanceRole": ground["profile"],
    }
    name = aws.environment(instanceTypes=["g5.xlarge"], **(resources | changes))
    aws.control("faults", kind="unregistered", environments=[name])
    job = runnable(aws, aws.queue(name), gpu=1)
    mine = [{"Name": "tag:aws:autoscaling:groupName", "Values": [f"AWSBatch-{name}-asg-*"]}]
    aws.until(lambda: aws.client("ec2").describe_instances(Filters=mine)["Reservations"])
    return job


def test_an_instance_starts_and_then_does_not_join(aws: Any, why: Why, ground: dict[str, str]) -> None:
    job = unregistered(aws, ground)
    told = why(job)
    assert told.cause == "machine-starting"
    told = why(job, later=LATER_S)
    assert told.cause == "agent-silent"
    assert told.evidence[0].startswith("i-") and "(g5.xlarge) started 2" in told.evidence[0]
    aws.control("faults", kind="unregistered", environments=[])
    assert aws.ended(job)["status"] == "SUCCEEDED"
    assert why(job).cause == "succeeded"


@pytest.mark.parametrize("subnet", ["closed", "unaddressed"])
def test_no_way_out(aws: Any, why: Why, ground: dict[str, str], subnet: str) -> None:
    told = why(unregistered(aws, ground, subnets=[ground[subnet]]))
    assert told.cause == "no-egress"
    expected = "has no public address" if subnet == "unaddressed" else "no default route"
    assert told.evidence[0].startswith(ground[subnet]) and expected in told.evidence[0]


def test_endpoints_are_a_way_out(aws: Any, why: Why, ground: dict[str, str]) -> None:
    job = unregistered(aws, ground, subnets=[ground["closed"]])
    ec2, made = aws.client("ec2"), []
    for service in ("ecs", "ecs-agent", "ecs-telemetry"):
        assert why(job).cause == "no-egress"
        endpoint = ec2.create_vpc_endpoint(
            VpcId=ground["vpc"], ServiceName=f"com.amazonaws.us-east-1.{service}", VpcEndpointType="Interface",
            PrivateDnsEnabled=True, SubnetIds=[ground["closed"]],
        )  # fmt: skip
        made.append(endpoint["VpcEndpoint"]["VpcEndpointId"])
    told = why(job, later=LATER_S)
    ec2.delete_vpc_endpoints(VpcEndpointIds=made)
    assert told.cause == "agent-silent"


def test_no_outgoing_traffic_is_allowed(aws: Any, why: Why, ground: dict[str, str]) -> None:
    ec2 = aws.client("ec2")
    group = ec2.create_security_group(GroupName=aws.name("group"), Description="d", VpcId=ground["vpc"])["GroupId"]
    rules = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissionsEgress"]
    ec2.revoke_security_group_egress(GroupId=group, IpPermissions=rules)
    told = why(unregistered(aws, ground, securityGroupIds=[group]))
    assert (told.cause, "outgoing traffic" in told.evidence[0]) == ("no-egress", True)


@pytest.mark.parametrize(
    ("trust", "actions", "wrong"),
    [
        (EC2_TRUST, None, "no policy of {} allows ecs:RegisterContainerInstance"),
        (EC2_TRUST, "s3:*", "no policy of {} allows ecs:RegisterContainerInstance"),
        ("{}", "ecs:*", "its trust policy does not name ec2.amazonaws.com"),
        (None, None, "the instance profile has no role"),
        (EC2_TRUST, "ecs:Register*", ""),
    ],
)
def test_the_instance_role(
    aws: Any, why: Why, ground: dict[str, str], trust: str | None, actions: str | None, wrong: str
) -> None:
    iam, role = aws.client("iam"), aws.name("role")
    if trust:
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=trust)
    if actions:
        allowed = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": actions, "Resource": "*"}}
        iam.put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=json.dumps(allowed))
    told = why(unregistered(aws, ground, instanceRole=profile(aws, role if trust else None)), later=LATER_S)
    assert told.cause == ("instance-role" if wrong else "agent-silent")
    assert wrong.format(role) in told.reason


def test_instances_without_a_driver(aws: Any, why: Why, ground: dict[str, str]) -> None:
    # The sandbox gives GPUs to instances of any image, so what holds the job back is that they do not register.
    plain = [{"imageType": "ECS_AL2023"}]
    job = unregistered(aws, ground, ec2Configuration=plain)
    told = why(job, later=LATER_S)
    assert told.cause == "image-without-driver"
    assert "ECS_AL2023_NVIDIA" in told.next_step
    own = [{"imageType": "ECS_AL2023", "imageIdOverride": "ami-0123456789abcdef0"}]
    assert why(unregistered(aws, ground, ec2Configuration=own), later=LATER_S).cause == "agent-silent"


@pytest.mark.parametrize(
    ("image", "cause"), [("ami-0123456789abcdef0", "agent-silent"), (None, "image-without-driver")]
)
def test_the_launch_template_may_have_the_image(
    aws: Any, why: Why, ground: dict[str, str], image: str | None, cause: str
) -> None:
    data: dict[str, Any] = {"ImageId": image} if image else {"EbsOptimized": True}
    template = aws.client("ec2").create_launch_template(
        LaunchTemplateName=aws.name("template"), LaunchTemplateData=data
    )["LaunchTemplate"]["LaunchTemplateId"]
    more = {
        "ec2Configuration": [{"imageType": "ECS_AL2023"}],
        "launchTemplate": {"launchTemplateId": template, "version": "1"},
    }
    assert why(unregistered(aws, ground, **more), later=LATER_S).cause == cause


def test_the_environment_is_full_and_others_wait_before_it(aws: Any, why: Why) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=4)
    queue = aws.queue(name)
    running = aws.submit(queue, aws.definition(["sleep", "60"], gpu=1))
    aws.reaches(running, "RUNNING")
    assert why(running).cause == "running"
    first, second, third = (runnable(aws, queue, gpu=1) for _ in range(3))
    told = why(first)
    assert told.cause == "environment-full"
    assert told.evidence[0].startswith(f"{name}: 4 of max_vcpus 4 in use")
    assert [why(job).cause for job in (second, third)] == ["behind-others", "behind-others"]
    told = why(third)
    assert told.evidence[0] == f"queue {queue}: the job is number 3"
    assert first in told.evidence[1] and first in told.next_step
    aws.batch.terminate_job(jobId=running, reason="enough")


def test_a_job_behind_a_hopeless_one(aws: Any, why: Why) -> None:
    queue = aws.queue(aws.environment())
    head = stuck(aws, queue, gpu=16)
    told = why(runnable(aws, queue))
    assert told.cause == "behind-others"
    assert "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT" in told.evidence[1]
    second = runnable(aws, queue, gpu=17)
    assert why(second).cause == "too-many-gpus"
    for job in (head, second):
        aws.batch.terminate_job(jobId=job, reason="over")


def fair(aws: Any, **policy: Any) -> dict[str, Any]:
    arn = aws.batch.create_scheduling_policy(name=aws.name("policy"), fairsharePolicy=policy)["arn"]
    return {"schedulingPolicyArn": arn}


def test_a_fair_share(aws: Any, why: Why) -> None:
    more = fair(aws, shareDistribution=[{"shareIdentifier": "blue", "weightFactor": 2}])
    queue = aws.queue(aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=4), **more)
    definition, submit = aws.definition(["true"], gpu=1), {"schedulingPriorityOverride": 1}
    running = aws.submit(queue, aws.definition(["sleep", "60"], gpu=1), shareIdentifier="blue", **submit)
    aws.reaches(running, "RUNNING")
    # The share that has used most is last in turn, though it came first.
    blue, red = (aws.submit(queue, definition, shareIdentifier=share, **submit) for share in ("blue", "red"))
    for job in (blue, red):
        aws.reaches(job, "RUNNABLE")
    told, first = why(blue), why(red)
    aws.batch.terminate_job(jobId=running, reason="enough")
    assert (told.cause, first.cause) == ("fair-share", "environment-full")
    assert told.evidence[2:] == ("before it: 1 of red; its own share is blue", "weights: blue 2")


def test_a_reserve_for_shares_without_jobs(aws: Any, why: Why) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=8)
    queue = aws.queue(name, **fair(aws, computeReservation=50))
    submit = {"schedulingPriorityOverride": 1, "shareIdentifier": "blue"}
    running = aws.submit(queue, aws.definition(["sleep", "60"], gpu=1), **submit)
    aws.reaches(running, "RUNNING")
    job = aws.submit(queue, aws.definition(["true"], gpu=1), **submit)
    aws.reaches(job, "RUNNABLE")
    told = why(job)
    aws.batch.terminate_job(jobId=running, reason="enough")
    assert told.cause == "share-reserve"
    assert told.evidence == (
        f"{name}: 4 of 4 vCPUs in use, g5.xlarge needs 4",
        "computeReservation 50, 1 active shares",
    )


def test_dependencies(aws: Any, why: Why, queue: str) -> None:
    first = aws.submit(queue, aws.definition(["sleep", "60"]))
    second = aws.submit(queue, aws.definition(["true"]), dependsOn=[{"jobId": first}])
    aws.reaches(second, "PENDING")
    aws.reaches(first, "RUNNING")
    told = why(second)
    assert told.cause == "dependencies"
    assert first in told.evidence[0] and "RUNNING" in told.evidence[0]
    aws.batch.terminate_job(jobId=first, reason="no more money")
    aws.ended(second)
    assert why(second).cause == "dependency-failed"
    assert first in why(second).next_step
    told = why(first)
    assert (told.cause, told.reason) == ("stopped", "the job was terminated: no more money")


def test_a_sequence_waits_for_the_task_before(aws: Any, why: Why, queue: str) -> None:
    more = {"arrayProperties": {"size": 2}, "dependsOn": [{"type": "SEQUENTIAL"}]}
    job = aws.submit(queue, aws.definition(["sleep", "60"]), **more)
    aws.until(lambda: why(job).cause == "running")
    assert "1 of 2 tasks are RUNNING; this is task 0" in why(job).evidence
    told = why(f"{job}:1")
    assert (told.cause, f"{job}:0" in told.evidence[0]) == ("dependencies", True)
    aws.batch.terminate_job(jobId=job, reason="over")


def test_the_queues_time_limit(aws: Any, why: Why) -> None:
    reason = "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT"
    action = {"reason": reason, "state": "RUNNABLE", "maxTimeSeconds": 600, "action": "CANCEL"}
    queue = aws.queue(aws.environment(), jobStateTimeLimitActions=[action])
    job = stuck(aws, queue, gpu=16)
    aws.control("clock", advance_s=601)
    aws.ended(job)
    told = why(job)
    assert told.cause == "time-limit"
    assert told.evidence[:2] == (
        f"Canceled by JobStateTimeLimit action due to reason: {reason}",
        f"queue {queue} cancels for this reason after 600 s",
    )
    assert "accelerator.count is 16" in told.evidence[2]


def test_what_may_not_be_read_is_said_and_says_nothing(aws: Any, why: Why, ground: dict[str, str]) -> None:
    job = unregistered(aws, ground, subnets=[ground["closed"]])
    aws.control("faults", operation="DescribeRouteTables", kind="denied")
    told = why(job, later=LATER_S)
    assert told.cause == "agent-silent"
    assert [row.partition(": ")[0] for row in told.unread] == ["ec2:DescribeRouteTables"]
    for operation in ("DescribeInstances", "DescribeAutoScalingGroups"):
        aws.control("faults", operation=operation, kind="denied")
    told = why(job, later=LATER_S)
    assert told.cause == "unknown"
    assert [row.partition(": ")[0] for row in told.unread] == [
        "autoscaling:DescribeAutoScalingGroups",
        "ec2:DescribeInstances",
    ]
    assert told.evidence[-1].startswith("looked at: batch:DescribeJobs, batch:DescribeJobQueues, ")
    aws.control("faults", operation="DescribeJobs", kind="denied")
    with pytest.raises(CloudRefused, match="DescribeJobs"):
        why(job)

"""What keeps an environment from being deleted or from taking jobs, through plain boto3."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.soak import soak_only

IN_USE = "Cannot delete, found existing JobQueue relationship"
ALLOW = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}'
ON_DEMAND_G, SPOT_G = "L-DB2E81BA", "L-3819A6DF"


@pytest.fixture(autouse=True)
def healthy(aws: Any) -> Iterator[None]:
    yield
    aws.control("faults", "DELETE")
    aws.control("quotas", **{ON_DEMAND_G: 1024, SPOT_G: 1024})


def settled(aws: Any, name: str) -> dict[str, Any]:
    return aws.until(lambda: (row := aws.shown_environment(name))["status"] in ("VALID", "INVALID") and row)


def point(aws: Any, queue: str, name: str) -> None:
    order = [{"order": 1, "computeEnvironment": name}]
    aws.batch.update_job_queue(jobQueue=queue, computeEnvironmentOrder=order)


def disable(aws: Any, name: str) -> dict[str, Any]:
    aws.batch.update_compute_environment(computeEnvironment=name, state="DISABLED")
    return settled(aws, name)


def reason(aws: Any, job: str) -> str:
    """The statusReason of a RUNNABLE job, once it has one."""
    shown = aws.until(lambda: (row := aws.job(job)).get("statusReason") and row)
    assert shown["status"] == "RUNNABLE"
    return shown["statusReason"]


@soak_only
def test_an_environment_is_held_for_a_while_after_its_queue_let_go(start_aws: Callable[..., Any]) -> None:
    aws = start_aws(SANDBOX_UNLINK_S="600")
    old, new = aws.environment(), aws.environment()
    queue = aws.queue(old)
    disable(aws, old)
    with aws.unsettled():
        point(aws, queue, new)
        assert aws.shown_queue(queue)["status"] == "UPDATING"
    assert aws.refusal(aws.batch.delete_compute_environment, computeEnvironment=old) == IN_USE
    aws.until(lambda: aws.shown_queue(queue)["status"] == "VALID")
    aws.control("clock", advance_s=530)  # and 60 of `unsettled`
    assert aws.refusal(aws.batch.delete_compute_environment, computeEnvironment=old) == IN_USE
    aws.control("clock", advance_s=11)
    aws.batch.delete_compute_environment(computeEnvironment=old)
    aws.until(lambda: aws.shown_environment(old) == {})


def test_a_disabled_environment_goes_on_with_what_runs(aws: Any) -> None:
    old, new = aws.environment(), aws.environment()
    queue = aws.queue(old)
    command = ["sh", "-c", "echo $AWS_BATCH_CE_NAME; test $AWS_BATCH_JOB_ATTEMPT = 2 || sleep 60"]
    job = aws.submit(queue, aws.definition(command), retryStrategy={"attempts": 2})
    aws.reaches(job, "RUNNING")
    disable(aws, old)
    waiting = aws.submit(queue, aws.definition(["true"]))
    assert reason(aws, waiting) == "ACTION_REQUIRED - CE(s) associated with the job queue are disabled."
    assert aws.job(job)["status"] == "RUNNING"
    point(aws, queue, new)
    assert aws.ended(waiting)["status"] == "SUCCEEDED"
    assert aws.job(job)["status"] == "RUNNING"
    aws.control("clock", advance_s=2)
    aws.batch.delete_compute_environment(computeEnvironment=old)
    aws.until(lambda: aws.shown_environment(old) == {})
    ended = aws.ended(job)
    assert ended["attempts"][0]["statusReason"].startswith("Host EC2 (instance i-")
    assert aws.lines(ended["container"]["logStreamName"]) == [new]


def test_without_its_service_role_an_environment_can_not_be_deleted(aws: Any) -> None:
    iam, name = aws.client("iam"), aws.name("role")
    arn = aws.service_role(name)
    environment = aws.environment(service_role=arn)
    assert aws.shown_environment(environment)["status"] == "VALID"
    iam.delete_role_policy(RoleName=name, PolicyName="all")
    iam.delete_role(RoleName=name)
    aws.until(lambda: aws.shown_environment(environment)["status"] == "INVALID")
    text = f"CLIENT_ERROR - User: batch.amazonaws.com is not authorized to perform: sts:AssumeRole on resource: {arn}"
    shown = disable(aws, environment)
    assert (shown["status"], shown["state"], shown["statusReason"].startswith(text)) == ("INVALID", "DISABLED", True)
    with aws.unsettled():
        aws.batch.delete_compute_environment(computeEnvironment=environment)
        assert aws.shown_environment(environment)["status"] == "DELETING"
    assert settled(aws, environment)["statusReason"].startswith(text)
    aws.service_role(name)
    assert disable(aws, environment)["status"] == "VALID"
    aws.batch.delete_compute_environment(computeEnvironment=environment)
    aws.until(lambda: aws.shown_environment(environment) == {})


def test_an_environment_that_loses_what_it_names_becomes_invalid_and_can_be_deleted(aws: Any) -> None:
    iam = aws.client("iam")
    iam.create_instance_profile(InstanceProfileName="short-lived")
    name = aws.environment(instanceRole="short-lived")
    assert aws.shown_environment(name)["status"] == "VALID"
    iam.delete_instance_profile(InstanceProfileName="short-lived")
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")
    assert "Invalid IamInstanceProfile" in disable(aws, name)["statusReason"]
    aws.batch.delete_compute_environment(computeEnvironment=name)
    aws.until(lambda: aws.shown_environment(name) == {})


def test_an_environment_can_be_made_invalid(aws: Any) -> None:
    name = aws.environment()
    job = aws.submit(aws.queue(name), aws.definition(["true"], gpu=16))
    aws.control("faults", kind="invalid", environments={name: "INTERNAL_ERROR - no."})
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")
    assert disable(aws, name)["statusReason"] == "INTERNAL_ERROR - no."
    aws.batch.update_compute_environment(computeEnvironment=name, state="ENABLED")
    aws.until(lambda: reason(aws, job) == "ACTION_REQUIRED - CE(s) associated with the job queue are invalid.")
    aws.control("faults", kind="invalid", environments={})
    settled(aws, name)
    assert disable(aws, name)["status"] == "VALID"


def test_a_service_role_without_a_policy_blocks_the_queue(aws: Any) -> None:
    name = aws.name("role")
    queue = aws.queue(aws.environment(service_role=aws.service_role(name, policy=False)))
    job = aws.submit(queue, aws.definition(["true"]))
    text = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS \u2013 Batch service role has a permission issue."
    assert reason(aws, job) == text
    aws.client("iam").put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=ALLOW)
    assert aws.ended(job)["status"] == "SUCCEEDED"


def activities(aws: Any, name: str) -> list[dict[str, Any]]:
    scaling = aws.client("autoscaling")
    groups = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    [group] = [row["AutoScalingGroupName"] for row in groups if f"-{name}-asg-" in row["AutoScalingGroupName"]]
    return scaling.describe_scaling_activities(AutoScalingGroupName=group)["Activities"]


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (
            "EC2",
            ON_DEMAND_G,
            "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit of 4",
        ),
        ("SPOT", SPOT_G, "Max spot instance count exceeded."),
    ],
)
def test_a_quota_is_held_and_auto_scaling_says_so(aws: Any, kind: str, code: str, message: str) -> None:
    strategy = {"type": kind, "allocationStrategy": "SPOT_CAPACITY_OPTIMIZED"} if kind == "SPOT" else {}
    name = aws.environment(instanceTypes=["g5.xlarge"], **strategy)
    queue = aws.queue(name)
    aws.control("quotas", **{code: 4})
    sleeps = aws.definition(["sleep", "60"], gpu=1)
    first, second = aws.submit(queue, sleeps), aws.submit(queue, sleeps)
    aws.reaches(first, "RUNNING")
    assert reason(aws, second) == "UNDETERMINED - Batch job is blocked, root cause is undetermined."
    failed, launched = activities(aws, name)
    assert (failed["StatusCode"], launched["StatusCode"]) == ("Failed", "Successful")
    assert message in failed["StatusMessage"] and failed["StatusMessage"].endswith("Launching EC2 instance failed.")
    aws.control("quotas", **{code: 8})
    aws.reaches(second, "RUNNING")
    for job in (first, second):
        aws.batch.terminate_job(jobId=job, reason="seen")
        aws.ended(job)


def test_a_stockout_is_an_activity_too(aws: Any) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"])
    aws.control("faults", kind="stockout", instance_types=["g5.xlarge"])
    job = aws.submit(aws.queue(name), aws.definition(["true"]))
    assert reason(aws, job).startswith("CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY")
    assert "InsufficientInstanceCapacity" in activities(aws, name)[0]["StatusMessage"]
    aws.control("faults", kind="stockout", instance_types=[])
    aws.ended(job)


def test_an_instance_that_never_registers_leaves_its_job_runnable(aws: Any) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"], maxvCpus=4)
    queue = aws.queue(name)
    aws.control("faults", kind="unregistered", environments=[name])
    job = aws.submit(queue, aws.definition(["true"]))
    mine = [{"Name": "tag:aws:autoscaling:groupName", "Values": [f"AWSBatch-{name}-asg-*"]}]

    def instances(state: str) -> list[dict[str, Any]]:
        filters = [*mine, {"Name": "instance-state-name", "Values": [state]}]
        return [
            row
            for reservation in aws.client("ec2").describe_instances(Filters=filters)["Reservations"]
            for row in reservation["Instances"]
        ]

    [instance] = aws.until(lambda: instances("running"))
    assert {"Key": "AWSBatchServiceTag", "Value": "batch"} in instance["Tags"]
    assert (aws.job(job)["status"], "statusReason" in aws.job(job)) == ("RUNNABLE", False)
    cluster = aws.shown_environment(name)["ecsClusterArn"]
    ecs = aws.client("ecs")
    assert ecs.list_container_instances(cluster=cluster)["containerInstanceArns"] == []
    groups = aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    assert [
        row["InstanceId"] for group in groups for row in group["Instances"] if name in group["AutoScalingGroupName"]
    ] == [instance["InstanceId"]]
    assert aws.shown_environment(name)["computeResources"]["desiredvCpus"] == 4
    aws.control("faults", kind="unregistered", environments=[])
    ended = aws.ended(job)
    assert ended["container"]["containerInstanceArn"].startswith(cluster.replace(":cluster/", ":container-instance/"))
    assert [row["InstanceId"] for row in aws.until(lambda: instances("terminated"))] == [instance["InstanceId"]]
    aws.control("faults", kind="unregistered", environments=[name])
    abandoned = aws.submit(queue, aws.definition(["true"]))
    aws.until(lambda: instances("running"))
    aws.batch.terminate_job(jobId=abandoned, reason="never")
    aws.until(lambda: not instances("running"))

"""What was made by hand moves into a stack: imported by the real engine, and none of it made again."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.environment import project
from tests.support import commands
from tests.support.engine import Result, Sandbox
from tests.support.project import KEY, Stack, put
from tests.support.soak import soak_only

REGION = "ap-northeast-1"
BATCH = "aws:batch/"


def waited(describe: Callable[[], dict[str, Any]], key: str) -> dict[str, Any]:
    """The answer, once what is in it is VALID."""
    states: dict[str, Any] = {}
    for _ in range(200):
        answer = describe()
        states = {one["status"]: one.get("statusReason") for one in answer[key]}
        assert "INVALID" not in states, states
        if set(states) == {"VALID"}:
            return {key: answer[key]}
        time.sleep(0.1)
    raise AssertionError(states)


ROLES = {"AWSBatchServiceRole": "batch", "ecsInstanceRole": "ec2", "trainer": "ecs-tasks"}


def role(iam: Any, name: str, by: str) -> str:
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": f"{by}.amazonaws.com"}}
    trust = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    return iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]


@pytest.fixture
def by_hand(sandbox: Sandbox, tmp_path: Path) -> Iterator[None]:
    """A queue over two environments and two definitions, made with boto3 alone, and the files of what AWS says."""
    batch, ec2, iam = (sandbox.client(service, REGION) for service in ("batch", "ec2", "iam"))
    (vpc,) = [one["VpcId"] for one in ec2.describe_vpcs()["Vpcs"]]
    subnets = ec2.describe_subnets()["Subnets"]
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    roles = {name: role(iam, name, by) for name, by in ROLES.items()}
    profile = iam.create_instance_profile(InstanceProfileName="ecsInstanceRole")["InstanceProfile"]["Arn"]
    iam.add_role_to_instance_profile(InstanceProfileName="ecsInstanceRole", RoleName="ecsInstanceRole")
    made = ec2.create_launch_template(LaunchTemplateName="by-hand", LaunchTemplateData={"EbsOptimized": True})
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    resources = {
        "minvCpus": 0,
        "maxvCpus": 256,
        "instanceTypes": ["g5", "g6"],
        "subnets": [subnets[0]["SubnetId"], subnets[1]["SubnetId"]],
        "securityGroupIds": [group],
        "instanceRole": profile,
    }
    # With a role of its own, and a key pair: AWS replaces such an environment for almost any change of its instances.
    batch.create_compute_environment(
        computeEnvironmentName="GPU_env",
        type="MANAGED",
        serviceRole=roles["AWSBatchServiceRole"],
        computeResources={
            **resources, "type": "EC2", "allocationStrategy": "BEST_FIT_PROGRESSIVE", "ec2KeyPair": "ops",
            "tags": {"team": "vision"},
            "launchTemplate": {"launchTemplateId": template, "version": "$Latest"},
        },
        tags={"cost-centre": "42"},
    )  # fmt: skip
    batch.create_compute_environment(
        computeEnvironmentName="gpu-spot-compute-env",
        type="MANAGED",
        computeResources={
            **resources, "type": "SPOT", "allocationStrategy": "SPOT_CAPACITY_OPTIMIZED",
            "subnets": [subnets[0]["SubnetId"]],
        },
    )  # fmt: skip
    environments = waited(batch.describe_compute_environments, "computeEnvironments")
    arns = {one["computeEnvironmentName"]: one["computeEnvironmentArn"] for one in environments["computeEnvironments"]}
    batch.create_job_queue(
        jobQueueName="gpu-job-queue",
        priority=10,
        computeEnvironmentOrder=[
            {"order": 1, "computeEnvironment": arns["GPU_env"]},
            {"order": 2, "computeEnvironment": arns["gpu-spot-compute-env"]},
        ],
        tags={"cost-centre": "42"},
    )
    container = {
        "image": "210020003000.dkr.ecr.ap-northeast-1.amazonaws.com/ml-training:1.4",
        "command": ["python", "train.py"],
        "jobRoleArn": roles["trainer"],
        "resourceRequirements": [
            {"type": "VCPU", "value": "8"}, {"type": "MEMORY", "value": "30000"}, {"type": "GPU", "value": "1"},
        ],
        "linuxParameters": {"sharedMemorySize": 8192},
        "environment": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}, {"name": "EPOCHS", "value": "50"}],
        "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "/aws/batch/gpu-jobs"}},
    }  # fmt: skip
    batch.register_job_definition(jobDefinitionName="gpu-training-job", type="container", containerProperties=container)
    odd = {**container, "ulimits": [{"name": "memlock", "softLimit": -1, "hardLimit": -1}]}
    batch.register_job_definition(
        jobDefinitionName="multi-gpu-training",
        type="container",
        containerProperties=odd,
        retryStrategy={"attempts": 2, "evaluateOnExit": [{"action": "RETRY", "onStatusReason": "Host EC2*"}]},
    )
    files = {
        "environments.json": environments,
        "queues.json": waited(batch.describe_job_queues, "jobQueues"),
        "definitions.json": {"jobDefinitions": batch.describe_job_definitions()["jobDefinitions"]},
        "subnets.json": {"Subnets": [one for one in subnets if one["VpcId"] == vpc]},
    }
    for name, document in files.items():
        (tmp_path / name).write_text(json.dumps(document, default=str))
    yield
    ec2.delete_launch_template(LaunchTemplateName="by-hand")
    iam.remove_role_from_instance_profile(InstanceProfileName="ecsInstanceRole", RoleName="ecsInstanceRole")
    iam.delete_instance_profile(InstanceProfileName="ecsInstanceRole")
    for name in ROLES:
        iam.delete_role(RoleName=name)


def adopted(tmp_path: Path, sandbox: Sandbox) -> tuple[Stack, list[str]]:
    """`stacks adopt` of the files, in a folder with this project's program, and the lines that it says."""
    stack = Stack(tmp_path / "stack", sandbox, {}, stack="moved")
    made = yaml.safe_load(stack.config_file.read_text())
    stack.config_file.write_text(yaml.safe_dump({**made, "config": {}}))  # as `pulumi stack init` leaves it
    files = sorted(str(path) for path in tmp_path.glob("*.json"))
    environ = stack.variables | {"PYTHONPATH": str(project())}
    done = commands.run("stacks", "adopt", *files, "--stack", "moved", cwd=stack.folder, env=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stderr.splitlines()
    assert said[-2:] == [
        "pulumi import --stack moved --file import-moved.json --generate-code=false",
        "pulumi up --stack moved",
    ]
    stack.run(*said[-2].split()[1:], "--yes", "--skip-preview")
    return stack, done.stdout.splitlines()


def touched(result: Result) -> dict[str, str]:
    """What was done to resources of AWS Batch, by their names."""
    return {step.name: step.op for step in result.steps if step.type.startswith(BATCH) and step.op != "same"}


def names(sandbox: Sandbox) -> dict[str, Any]:
    """The identity of everything on Batch: a thing that was made again has another one."""
    batch = sandbox.client("batch", REGION)
    environments = batch.describe_compute_environments()["computeEnvironments"]
    definitions = batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    return {
        **{one["computeEnvironmentName"]: one["uuid"] for one in environments},
        **{one["jobQueueName"]: one["jobQueueArn"] for one in batch.describe_job_queues()["jobQueues"]},
        **{one["jobDefinitionName"]: "" for one in definitions},
    }


def resources_of(sandbox: Sandbox) -> list[Any]:
    batch = sandbox.client("batch", REGION)
    return [one["computeResources"] for one in batch.describe_compute_environments()["computeEnvironments"]]


def test_nothing_is_made_again(tmp_path: Path, sandbox: Sandbox, by_hand: None) -> None:
    before, instances = names(sandbox), resources_of(sandbox)
    stack, lines = adopted(tmp_path, sandbox)
    first = stack.up()
    assert touched(first) == dict.fromkeys(
        ["gpu-env", "gpu-spot-compute-env", "gpu-job-queue", "gpu-training-job", "multi-gpu-training"], "update"
    )
    assert not {step.op for step in first.steps} & {"replace", "create-replacement", "delete", "delete-replaced"}
    assert names(sandbox) == before
    assert resources_of(sandbox) == instances, "no instance is made again"
    again = stack.up("--refresh", "--expect-no-changes")
    assert (again.ops("same", "refresh"), again.drift) == ({}, {})

    # Carried: the role, the variables, tags, the log group. Kept: a container with what has no counterpart.
    batch = sandbox.client("batch", REGION)
    found = batch.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    newest = {one["jobDefinitionName"]: one for one in sorted(found, key=lambda one: one["revision"])}
    trained = newest["gpu-training-job"]["containerProperties"]
    assert trained["jobRoleArn"].endswith(":role/trainer")
    assert trained["environment"] == [{"name": "EPOCHS", "value": "50"}]
    options = trained["logConfiguration"]["options"]
    assert (options["awslogs-group"], options["awslogs-stream-prefix"]) == ("/aws/batch/gpu-jobs", "gpu-training-job")
    assert newest["multi-gpu-training"]["containerProperties"]["ulimits"][0]["name"] == "memlock"
    (queue,) = batch.describe_job_queues()["jobQueues"]
    assert queue["tags"] | {"cost-centre": "42", "accel:stack": "moved"} == queue["tags"]
    said = "\n".join(lines)
    for expected in (
        "kept: gpu-env.computeResources.ec2KeyPair: ops, which has no counterpart here",
        "kept: gpu-env.launchTemplate: lt-",
        "[aws.template.moving-version]",
        "kept: gpu-training-job.logConfiguration: log group /aws/batch/gpu-jobs, streams gpu-training-job/",
        "translated: definitions.gpu-training-job.env.NVIDIA_VISIBLE_DEVICES",
        "kept: multi-gpu-training.containerProperties: whole, for the sake of ulimits",
    ):
        assert expected in said, said

    # Handed over whole: without `adopted` a new one takes its place, and the queue has it before the old one goes.
    values = yaml.safe_load(stack.config_file.read_text())["config"][KEY]
    spot = {k: v for k, v in values["aws"]["environments"]["gpu-spot-compute-env"].items() if k != "adopted"}
    stack.write_environment(put("aws.environments.gpu-spot-compute-env", spot, values))
    handed = [(step.op, step.name) for step in stack.up().steps if step.type.startswith(BATCH) and step.op != "same"]
    assert handed == [
        ("create-replacement", "gpu-spot-compute-env"),
        ("replace", "gpu-spot-compute-env"),
        ("update", "gpu-job-queue"),
        ("delete-replaced", "gpu-spot-compute-env"),
    ]
    stack.destroy()


@soak_only
def test_what_would_be_made_again_is_refused(tmp_path: Path, sandbox: Sandbox, by_hand: None) -> None:
    """The import protects what it took over, until the first update that succeeds."""
    before = names(sandbox)
    stack, _ = adopted(tmp_path, sandbox)
    values = yaml.safe_load(stack.config_file.read_text())["config"][KEY]
    stack.write_environment(put("aws.environments.gpu-env.adopted.keeps", ["key_pair"], values))
    refused = stack.up(check=False)
    assert refused.exit_code != 0 and "protect" in refused.text
    assert names(sandbox) == before
    stack.write_environment(values)
    stack.up()
    stack.destroy()

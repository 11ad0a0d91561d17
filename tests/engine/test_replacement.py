"""A compute environment that is replaced or removed under a live queue: no failed delete, no lost job."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.drifted import control
from tests.support.engine import Engine, Sandbox
from tests.support.project import KEY, Stack, environment, put
from tests.support.soak import soak_only

REGION = "ap-northeast-1"
UNLINK_S = 0.9  # what the sandbox starts with
KIND = "aws:batch/computeEnvironment:ComputeEnvironment"

RAW = """
import json
import pulumi_aws as aws

trust = json.dumps({{"Version": "2012-10-17", "Statement": [
    {{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {{"Service": "ec2.amazonaws.com"}}}}]}})
role = aws.iam.Role("instance", assume_role_policy=trust)
profile = aws.iam.InstanceProfile("instance", role=role.name)
vpc = aws.ec2.Vpc("vpc", cidr_block="10.0.0.0/16")
subnet = aws.ec2.Subnet("subnet", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
group = aws.ec2.SecurityGroup("group", vpc_id=vpc.id)
environment = aws.batch.ComputeEnvironment(
    "gpu",
    type="MANAGED",
    compute_resources=aws.batch.ComputeEnvironmentComputeResourcesArgs(
        type="EC2",
        allocation_strategy="BEST_FIT",
        instance_types={types},
        max_vcpus=64,
        instance_role=profile.arn,
        subnets=[subnet.id],
        security_group_ids=[group.id],
    ),
)
aws.batch.JobQueue(
    "gpu",
    state="ENABLED",
    priority=1,
    compute_environment_orders=[
        aws.batch.JobQueueComputeEnvironmentOrderArgs(order=1, compute_environment=environment.arn)
    ],
)
"""


def fixed(**changes: Any) -> dict[str, Any]:
    """The sandbox's environment with one that AWS cannot update in place."""
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", [f"{REGION}a"], values)
    values = put("aws.queues.gpu.environments", ["on-demand"], values)
    values = put("aws.environments.on-demand.allocation_strategy", "BEST_FIT", values)
    values["aws"]["environments"].pop("spot")
    for path, value in changes.items():
        values = put(path.replace("__", "."), value, values)
    return values


@pytest.fixture
def batch(sandbox: Sandbox) -> Any:
    return sandbox.client("batch", REGION)


def now(stack: Stack) -> dict[str, Any]:
    """`fixed()` with the instance types that the stack has now."""
    written = yaml.safe_load(stack.config_file.read_text())["config"][KEY]
    types = written["aws"]["environments"]["on-demand"]["instance_types"]
    return put("aws.environments.on-demand.instance_types", types, fixed())


def other(stack: Stack) -> dict[str, Any]:
    """`fixed()` with instance types that the stack does not have, so that its environment is replaced."""
    types = ["g5"] if now(stack)["aws"]["environments"]["on-demand"]["instance_types"] == ["g6"] else ["g6"]
    return put("aws.environments.on-demand.instance_types", types, fixed())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Iterator[Stack]:
    """One stack for the tests in turn, each of which finds it deployed or empty as it asks for."""
    made = Stack(tmp_path_factory.mktemp("replaced"), sandbox, fixed(), stack="replaced")
    yield made
    made.destroy(check=False)


@pytest.fixture
def stack(shared: Stack, batch: Any) -> Stack:
    """Deployed, with one environment and no job that runs."""
    if end_jobs(batch) or len(names(batch)) != 1:
        shared.write_environment(fixed())
        shared.up()
    return shared


@pytest.fixture
def empty(shared: Stack, batch: Any) -> Stack:
    """Nothing of the stack is there."""
    end_jobs(batch)
    if names(batch):
        shared.destroy()
    shared.write_environment(fixed())
    return shared


def end_jobs(batch: Any) -> bool:
    """Ends what a failed test left running; whether there was anything."""
    queues = [one["jobQueueArn"] for one in batch.describe_job_queues()["jobQueues"]]
    left = [
        job["jobId"]
        for queue in queues
        for status in ("RUNNABLE", "STARTING", "RUNNING")
        for job in batch.list_jobs(jobQueue=queue, jobStatus=status)["jobSummaryList"]
    ]
    for job in left:
        batch.terminate_job(jobId=job, reason="test")
    return bool(left)


def submit(batch: Any, stack: Stack, seconds: int) -> str:
    """A job that runs so long, once it is RUNNING."""
    target = stack.outputs()["targets"]["gpu"]
    job: str = batch.submit_job(
        jobName="lasting",
        jobQueue=target["queue_arn"],
        jobDefinition=target["definitions"]["examples"]["arn"],
        containerOverrides={"command": ["sleep", str(seconds)]},
    )["jobId"]
    wait(lambda: described(batch, job)["status"] == "RUNNING")
    return job


def described(batch: Any, job: str) -> Any:
    return batch.describe_jobs(jobs=[job])["jobs"][0]


def wait(holds: Any, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def names(batch: Any) -> list[str]:
    return [one["computeEnvironmentName"] for one in batch.describe_compute_environments()["computeEnvironments"]]


def test_replaced_under_a_running_job_where_raw_resources_fail(
    stack: Stack, batch: Any, tmp_path: Path, sandbox: Sandbox
) -> None:
    (old,) = names(batch)
    job = submit(batch, stack, 8)
    stack.write_environment(other(stack))
    planned = stack.preview()
    assert "once no queue names" in planned.text
    done = stack.up()
    operations = [
        (step.op, step.name) for step in done.steps if step.type.startswith("aws:batch") and step.op != "same"
    ]
    assert operations == [
        ("create-replacement", "on-demand"),
        ("replace", "on-demand"),
        ("update", "gpu"),
        ("delete-replaced", "on-demand"),
    ]
    assert described(batch, job)["status"] == "SUCCEEDED"
    assert old not in names(batch)
    assert len(names(batch)) == 1
    assert stack.up("--expect-no-changes").ops("same") == {}
    raw = Engine(tmp_path / "raw", sandbox, RAW.format(types=["g5"]), config={"aws:region": REGION})
    raw.up()
    raw.write(RAW.format(types=["g6"]))
    control(sandbox, "faults", {"kind": "slow-unlink", "seconds": 600})  # however slow this machine is
    refused = raw.up(check=False)
    control(sandbox, "faults", {"kind": "slow-unlink", "seconds": UNLINK_S})
    assert refused.exit_code != 0, "the same change of raw resources"
    assert "found existing JobQueue relationship" in refused.text
    control(sandbox, "clock", {"advance_s": 600})
    raw.destroy()


@soak_only
def test_jobs_are_terminated_where_the_config_says_so(stack: Stack, batch: Any) -> None:
    job = submit(batch, stack, 600)
    stack.write_environment(put("aws.environments.on-demand.drain", {"jobs": "terminate"}, other(stack)))
    stack.up()
    (old,) = [described(batch, job)]
    assert (old["status"], old["isTerminated"]) == ("FAILED", True)
    assert "is removed" in old["statusReason"]


def test_a_removed_environment_drains_first(stack: Stack, batch: Any) -> None:
    one = now(stack)
    two = put("aws.queues.gpu.environments", ["second", "on-demand"], one)
    two = put("aws.environments.second", two["aws"]["environments"]["on-demand"], two)
    stack.write_environment(two)
    stack.up()
    job = submit(batch, stack, 6)
    stack.write_environment(one)
    done = stack.up()
    assert [(step.op, step.name) for step in done.steps if step.type == KIND and step.op != "same"] == [
        ("delete", "second")
    ]
    assert described(batch, job)["status"] == "SUCCEEDED"


@soak_only
def test_waiting_ends_and_the_next_run_goes_on(stack: Stack, batch: Any) -> None:
    job = submit(batch, stack, 600)
    stack.write_environment(put("aws.environments.on-demand.drain.timeout_min", 0, other(stack)))
    refused = stack.up(check=False)
    assert refused.exit_code != 0
    assert f"jobs that run on it: {job}" in refused.text
    assert described(batch, job)["status"] == "RUNNING"
    batch.terminate_job(jobId=job, reason="test")
    stack.up()
    assert len(names(batch)) == 1


def test_a_removed_section_leaves_nothing(stack: Stack, batch: Any) -> None:
    stack.write_environment({"owner": "you"})
    assert set(stack.up().ops("same")) == {"delete"}
    assert names(batch) == []


@soak_only
def test_an_invalid_environment_fails_with_its_reason(empty: Stack, batch: Any) -> None:
    stack = empty
    missing = "arn:aws:iam::408219650273:instance-profile/gone"
    stack.write_environment(put("aws.environments.on-demand.instance_profile", missing, fixed()))
    refused = stack.up(check=False)
    assert refused.exit_code != 0
    assert "Invalid IamInstanceProfile" in refused.text
    stack.write_environment(fixed())
    stack.up()
    assert stack.up("--expect-no-changes").ops("same") == {}
    assert len(names(batch)) == 1


@soak_only
def test_destroy_needs_the_program(stack: Stack, batch: Any) -> None:
    refused = Engine.destroy(stack, check=False)
    assert refused.exit_code != 0
    assert "--run-program" in refused.text
    assert len(names(batch)) == 1, "a refused destroy deletes no environment"
    stack.destroy()
    assert names(batch) == []

"""`stacks images` and `stacks unwedge` against the sandbox's APIs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from click.testing import CliRunner, Result

from sandbox import keys
from stacks.cli.main import stacks
from stacks.environment.images_lock import LOCK, read
from tests.jobs.batch_target import BATCH
from tests.support.project import KEY, environment
from tests.support.soak import soak_only

NVIDIA = "ECS_AL2023_NVIDIA"
Command = Callable[..., Result]


@pytest.fixture
def command(aws: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`stacks` in a folder with the stack dev, against the server."""
    variables = {"AWS_ENDPOINT_URL": aws.told["url"], **keys.aws(keys.key(aws.home))}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.setattr("stacks.operations.unwedge.removal.POLL_S", (0.05, 0.3))
    monkeypatch.setattr("stacks.operations.images.definitions.PAUSE_S", 0.01)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": {KEY: environment("dev")}}, sort_keys=False))
    return lambda *arguments: CliRunner().invoke(stacks, arguments)


def test_upgrade_asks_ssm_and_ec2(command: Command, tmp_path: Path) -> None:
    told = command("images", "upgrade", "--yes")
    assert told.exit_code == 0, told.output
    lock = read(tmp_path)
    image = lock and lock.find(NVIDIA, "us-east-1")
    assert image and image.name.startswith("al2023-ami-ecs-gpu-hvm-2023.0.") and image.image_id.startswith("ami-")
    assert image.created != "unknown" and image.nvidia_driver == "unknown", "no API tells the driver"
    assert f"releases/tag/{image.name.split('.')[2][:8]}" in told.stderr
    # An older one in its place, and the same question again.
    older = (tmp_path / LOCK).read_text().replace(image.image_id, "ami-0e46815163b0833b8")
    (tmp_path / LOCK).write_text(older)
    assert command("images", "upgrade", "--expect-no-changes").exit_code == 7
    assert (tmp_path / LOCK).read_text() == older
    assert command("images", "upgrade", "--yes").exit_code == 0
    assert read(tmp_path) == lock
    assert command("images", "upgrade", "--expect-no-changes").exit_code == 0


def test_where_aws_has_no_image(command: Command, tmp_path: Path) -> None:
    text = (tmp_path / "Pulumi.dev.yaml").read_text().replace("us-east-1", "us-gov-east-9")
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    told = command("images", "upgrade")
    assert told.exit_code != 0 and "Traceback" not in told.stderr and not (tmp_path / LOCK).exists()


# --- old definitions


@pytest.fixture
def target(aws: Any, tmp_path: Path) -> dict[str, Any]:
    """A target with a definition of seven revisions, two that jobs registered, and a queue."""
    queue = aws.queue(aws.environment())
    needs = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}]
    container = {"image": "local/work", "command": ["sleep", "60"], "resourceRequirements": needs}
    prefix, own = aws.name("accel-dev"), aws.name("training")

    def register(name: str, times: int, **more: Any) -> str:
        given = {"jobDefinitionName": name, "type": "container", "containerProperties": container} | more
        return [aws.batch.register_job_definition(**given)["jobDefinitionArn"] for _ in range(times)][-1]

    latest = register(own, 7)
    by_jobs = {"tags": {"accel:owner": "jobs"}}
    used, unused = f"{prefix}-0123456789ab", f"{prefix}-ba9876543210"
    register(used, 1, **by_jobs)
    register(unused, 1, **by_jobs)
    register(f"{prefix}-000000000000", 9)  # without the tag: of somebody else
    register(f"{prefix}-other-0123456789ab", 9, **by_jobs)  # under another prefix
    definition = {"arn": latest.rpartition(":")[0], "image": "i", "vcpus": 1, "memory_mib": 64, "gpus": 0}
    document = BATCH | {
        "queue_arn": aws.shown_queue(queue)["jobQueueArn"],
        "definition_prefix": prefix,
        "definitions": {"training": definition},
    }
    (tmp_path / "targets.json").write_text(json.dumps({"gpu": document}))
    return {"queue": queue, "own": own, "used": used, "unused": unused, "prefix": prefix}


def active(aws: Any, name: str) -> list[int]:
    found = aws.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")["jobDefinitions"]
    return sorted(one["revision"] for one in found)


def test_prune_keeps_the_latest_and_what_live_jobs_name(command: Command, aws: Any, target: Any) -> None:
    arguments = ("images", "prune-definitions", "--targets", "targets.json")
    job = aws.submit(target["queue"], f"{target['own']}:1")
    array = aws.submit(target["queue"], target["used"], arrayProperties={"size": 2})
    ended = aws.submit(target["queue"], f"{target['own']}:2")
    aws.batch.terminate_job(jobId=ended, reason="test")
    aws.ended(ended)

    told = command(*arguments, "-o", "json")
    assert told.exit_code == 0 and "1 of 9 active revisions would be deregistered" in told.stderr, told.output
    rows = {(row["definition"], row["revision"]): row for row in json.loads(told.stdout)}
    assert {key[0] for key in rows} == {target["own"], target["used"], target["unused"]}
    gone = [key for key, row in rows.items() if row["action"] == "deregister"]
    assert gone == [(target["own"], 2)], "live: 1; the latest five: 3 to 7"
    assert rows[target["own"], 1]["why"] == "1 live job" and rows[target["own"], 7]["why"] == "the latest"
    assert active(aws, target["own"]) == [1, 2, 3, 4, 5, 6, 7]

    assert command(*arguments, "--yes", "--keep", "2").exit_code == 0
    assert active(aws, target["own"]) == [1, 6, 7]
    assert active(aws, target["unused"]) == [1], "the only one stays, used or not"
    assert "nothing to deregister" in command(*arguments, "--yes", "--keep", "2").stderr

    assert command(*arguments, "--yes", "--unused").exit_code == 0
    assert (active(aws, target["used"]), active(aws, target["unused"])) == ([1], [])
    assert active(aws, f"{target['prefix']}-000000000000") == list(range(1, 10))
    assert active(aws, f"{target['prefix']}-other-0123456789ab") == list(range(1, 10))

    for each in (job, array):
        aws.batch.terminate_job(jobId=each, reason="test")
        aws.ended(each)
    assert command(*arguments, "--yes", "--keep", "1").exit_code == 0
    assert active(aws, target["own"]) == [7]


@soak_only
def test_prune_goes_on_after_throttling_and_after_an_interruption(command: Command, aws: Any, target: Any) -> None:
    arguments = ("images", "prune-definitions", "--targets", "targets.json", "--keep", "1", "--yes")
    aws.control("faults", operation="DeregisterJobDefinition", kind="throttle", count=6)
    aws.control("faults", operation="DeregisterJobDefinition", kind="expired-token", skip=3)
    told = command(*arguments)
    assert told.exit_code == 3, told.output
    assert active(aws, target["own"]) == [4, 5, 6, 7], "the oldest went first"
    assert command(*arguments).exit_code == 0
    assert active(aws, target["own"]) == [7]


def test_prune_without_targets(command: Command) -> None:
    told = command("images", "prune-definitions")
    assert (told.exit_code, told.stdout) == (0, "") and "nothing to deregister" in told.stderr
    assert command("images", "prune-definitions", "--targets", "none.json").exit_code == 6
    assert command("images", "prune-definitions", "--keep", "0").exit_code == 2


# --- environments that AWS does not let go


def profile(aws: Any, name: str) -> str:
    iam = aws.client("iam")
    arn = iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Arn"]
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="instances")
    return arn


def vanish(aws: Any, name: str) -> None:
    iam = aws.client("iam")
    iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName="instances")
    iam.delete_instance_profile(InstanceProfileName=name)


def own_iam(aws: Any) -> tuple[set[str], set[str]]:
    iam = aws.client("iam")
    roles = {one["RoleName"] for one in iam.list_roles()["Roles"] if "aws-service-role" not in one["Path"]}
    return roles, {one["InstanceProfileName"] for one in iam.list_instance_profiles()["InstanceProfiles"]}


@pytest.fixture
def wedged(aws: Any) -> dict[str, Any]:
    """An environment that has turned INVALID since its profile has gone, first in a queue with another."""
    name = aws.name("profile")
    stuck, other = aws.environment(instanceRole=profile(aws, name)), aws.environment()
    queue = aws.queue(stuck, other)
    vanish(aws, name)
    aws.batch.update_compute_environment(computeEnvironment=stuck, computeResources={"maxvCpus": 32})
    aws.until(lambda: aws.shown_environment(stuck)["status"] == "INVALID")
    return {"name": stuck, "other": other, "queue": queue, "profile": name}


def test_unwedge_shows_what_holds_it_and_what_it_would_do(command: Command, aws: Any, wedged: Any) -> None:
    before = own_iam(aws)
    told = command("unwedge", wedged["name"])
    assert told.exit_code == 0, told.output
    assert f"{wedged['name']}: INVALID, ENABLED: CLIENT_ERROR - Invalid IamInstanceProfile" in told.stdout
    assert f"instance profile {wedged['profile']}: gone" in told.stdout
    assert f"queue {wedged['queue']} names it, and {wedged['other']}" in told.stdout
    assert f"make the instance profile {wedged['profile']} again, until the environment is gone" in told.stdout
    assert "nothing was changed; --yes does it" in told.stderr
    assert aws.shown_environment(wedged["name"])["state"] == "ENABLED" and own_iam(aws) == before


def test_unwedge_removes_it_and_what_it_made_for_that(command: Command, aws: Any, wedged: Any) -> None:
    before = own_iam(aws)
    told = command("unwedge", wedged["name"], "--yes")
    assert told.exit_code == 0, told.output
    assert aws.shown_environment(wedged["name"]) == {}
    order = aws.shown_queue(wedged["queue"])["computeEnvironmentOrder"]
    assert [one["computeEnvironment"].rpartition("/")[2] for one in order] == [wedged["other"]]
    assert own_iam(aws) == before, "the stand-ins are gone"
    gone = command("unwedge", wedged["name"], "--yes")
    assert gone.exit_code == 6 and "no compute environment" in gone.stderr


@soak_only
def test_unwedge_goes_on_where_it_was_interrupted(command: Command, aws: Any, wedged: Any) -> None:
    before = own_iam(aws)
    aws.control("faults", operation="DeleteComputeEnvironment", kind="expired-token")
    assert command("unwedge", wedged["name"], "--yes").exit_code == 3
    roles, profiles = own_iam(aws)
    assert wedged["profile"] in profiles and f"{wedged['profile']}-unwedge" in roles - before[0]
    tags = aws.client("iam").list_role_tags(RoleName=f"{wedged['profile']}-unwedge")["Tags"]
    assert {"Key": "accel:unwedge", "Value": wedged["name"]} in tags
    assert "remove the roles that were made for it" in command("unwedge", wedged["name"]).stdout
    # Again, and this time it stops between the deletion and the roles.
    aws.control("faults", operation="DetachRolePolicy", kind="expired-token")
    assert command("unwedge", wedged["name"], "--yes").exit_code == 3
    assert aws.shown_environment(wedged["name"]) == {} and own_iam(aws) != before
    shown = command("unwedge", wedged["name"])
    assert f"would remove role {wedged['profile']}-unwedge" in shown.stdout
    assert command("unwedge", wedged["name"], "--yes").exit_code == 0
    assert own_iam(aws) == before


@soak_only
def test_unwedge_puts_the_boundary_on_the_roles_that_it_makes(command: Command, aws: Any, wedged: Any) -> None:
    before, iam = own_iam(aws), aws.client("iam")
    statement = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    boundary = iam.create_policy(PolicyName=aws.name("boundary"), PolicyDocument=document)["Policy"]["Arn"]
    aws.control("faults", operation="DeleteComputeEnvironment", kind="expired-token")
    given = ("--permissions-boundary", boundary, "--yes")
    assert command("unwedge", wedged["name"], *given).exit_code == 3
    role = iam.get_role(RoleName=f"{wedged['profile']}-unwedge")["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    assert command("unwedge", wedged["name"], *given).exit_code == 0
    assert own_iam(aws) == before
    iam.delete_policy(PolicyArn=boundary)


@soak_only
def test_unwedge_makes_the_service_role_again_without_which_nothing_is_deleted(command: Command, aws: Any) -> None:
    iam, before = aws.client("iam"), own_iam(aws)
    role = aws.name("service-role")
    name = aws.environment(service_role=aws.service_role(role))
    iam.delete_role_policy(RoleName=role, PolicyName="all")
    iam.delete_role(RoleName=role)
    aws.batch.update_compute_environment(computeEnvironment=name, state="DISABLED")
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")
    aws.batch.delete_compute_environment(computeEnvironment=name)
    aws.until(lambda: aws.shown_environment(name)["status"] == "INVALID")

    shown = command("unwedge", name)
    assert f"service role {role}: gone" in shown.stdout and "not authorized to perform: sts:AssumeRole" in shown.stdout
    told = command("unwedge", name, "--yes")
    assert told.exit_code == 0, told.output
    assert aws.shown_environment(name) == {} and own_iam(aws) == before


def test_unwedge_leaves_a_queue_alone_that_has_no_other(command: Command, aws: Any) -> None:
    name = aws.environment()
    queue = aws.queue(name)
    told = command("unwedge", name, "--force", "--yes")
    assert told.exit_code == 4 and f"queue {queue} has no other environment" in told.stderr
    assert (aws.shown_environment(name)["state"], len(aws.shown_queue(queue)["computeEnvironmentOrder"])) == (
        "ENABLED",
        1,
    )


@soak_only
def test_unwedge_refuses_what_is_well(command: Command, aws: Any) -> None:
    name, other = aws.environment(), aws.environment()
    queue = aws.queue(name, other)
    job = aws.submit(queue, aws.definition(["sleep", "60"]))
    aws.reaches(job, "RUNNING")
    before = own_iam(aws)
    for arguments in ([], ["--yes"]):
        told = command("unwedge", name, *arguments)
        assert told.exit_code == 2, told.output
        assert f"{name} is VALID, and only what is INVALID or DELETING is removed" in told.stderr
        assert "--force" in told.stderr and "1. " not in told.stdout and job in told.stdout
    assert (aws.shown_environment(name)["state"], aws.job(job)["status"]) == ("ENABLED", "RUNNING")
    assert len(aws.shown_queue(queue)["computeEnvironmentOrder"]) == 2 and own_iam(aws) == before
    assert "disable it, so that no job starts on it" in command("unwedge", name, "--force").stdout
    aws.batch.terminate_job(jobId=job, reason="test")


@soak_only
def test_unwedge_goes_on_with_an_environment_that_its_roles_have_healed(
    command: Command, aws: Any, wedged: Any
) -> None:
    aws.control("faults", operation="DeleteComputeEnvironment", kind="expired-token")
    assert command("unwedge", wedged["name"], "--yes").exit_code == 3
    aws.batch.update_compute_environment(computeEnvironment=wedged["name"], state="DISABLED")
    aws.until(lambda: aws.shown_environment(wedged["name"])["status"] == "VALID")
    assert command("unwedge", wedged["name"], "--yes").exit_code == 0


def test_unwedge_waits_for_the_jobs_on_it(command: Command, aws: Any) -> None:
    name, other = aws.environment(), aws.environment()
    queue = aws.queue(name, other)
    job = aws.submit(queue, aws.definition(["sleep", "60"]))
    array = aws.submit(queue, aws.definition(["sleep", "60"]), arrayProperties={"size": 2})
    aws.reaches(job, "RUNNING")
    aws.until(lambda: aws.job(f"{array}:1")["status"] == "RUNNING")
    told = command("unwedge", name, "--force")
    assert job in told.stdout and f"{array}:0" in told.stdout and "wait until its 3 jobs have ended" in told.stdout
    for each in (job, array):
        aws.batch.terminate_job(jobId=each, reason="test")
    told = command("unwedge", name, "--force", "--yes")
    assert told.exit_code == 0, told.output
    assert aws.shown_environment(name) == {}


def test_unwedge_finds_an_environment_by_the_stacks_name_for_it(command: Command, aws: Any) -> None:
    made = [f"keyed-{digits}" for digits in ("0a1b2c3", "4d5e6f7")]
    for at, name in enumerate(made):
        aws.batch.create_compute_environment(
            computeEnvironmentName=name,
            type="MANAGED",
            computeResources=aws.resources(),
            tags={"accel:stack": "dev" if at == 0 else "prod"},
        )
        aws.until(lambda name=name: aws.shown_environment(name)["status"] == "VALID")
    several = command("unwedge", "keyed")
    assert several.exit_code == 2 and f"{made[0]} (VALID, us-east-1), {made[1]}" in several.stderr
    assert f"{made[0]}: VALID" in command("unwedge", "keyed", "--stack", "dev").stdout
    assert command("unwedge", "keyed", "--stack", "dve").exit_code == 6
    told = command("unwedge", "keyed", "--stack", "dev", "--force", "--yes")
    assert told.exit_code == 0, told.output
    arn = aws.shown_environment(made[1])["computeEnvironmentArn"]
    assert command("unwedge", arn, "--force", "--yes").exit_code == 0
    assert not any(map(aws.shown_environment, made))
    assert command("unwedge", "keyed", "--region", "us-west-2").exit_code == 6

"""`stacks adopt`: requests and answers of AWS Batch as an environment and an import file, and what is said of them."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accel.diagnostics.errors import BadInput
from stacks.environment.config import load_environment
from stacks.operations.adopt.adoption import adopt, write
from stacks.operations.adopt.documents import read
from stacks.operations.stack_files import KEY

from .adopt_samples import ACCOUNT, ASKED
from .test_cli import stacks

ARN = f"arn:aws:batch:us-east-1:{ACCOUNT}"
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]


def described(**resources: Any) -> dict[str, Any]:
    """What AWS answers of an environment that exists."""
    inner = {
        "type": "EC2", "allocationStrategy": "BEST_FIT_PROGRESSIVE", "minvCpus": 0, "maxvCpus": 256, "desiredvCpus": 8,
        "instanceTypes": ["p3", "g5"], "subnets": SUBNETS, "securityGroupIds": ["sg-0123456789abcdef0"],
        "instanceRole": "ecsInstanceRole", "ec2Configuration": [{"imageType": "ECS_AL2_NVIDIA"}],
    }  # fmt: skip
    return {
        "computeEnvironmentName": "GPU_env", "computeEnvironmentArn": f"{ARN}:compute-environment/GPU_env",
        "type": "MANAGED", "state": "DISABLED", "status": "VALID", "uuid": "u", "containerOrchestrationType": "ECS",
        "serviceRole": f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/batch.amazonaws.com/AWSServiceRoleForBatch",
        "updatePolicy": {"terminateJobsOnUpdate": True, "jobExecutionTimeoutMinutes": 60},
        "tags": {"cost-centre": "42"}, "computeResources": {**inner, **resources},
    }  # fmt: skip


def queue(**values: Any) -> dict[str, Any]:
    order = [{"order": 1, "computeEnvironment": f"{ARN}:compute-environment/GPU_env"}]
    return {"jobQueueName": "q", "jobQueueArn": f"{ARN}:job-queue/q", "state": "ENABLED", "status": "VALID",
            "priority": 1, "computeEnvironmentOrder": order, **values}  # fmt: skip


def definition(**container: Any) -> dict[str, Any]:
    properties = ASKED["multi"]["containerProperties"] | container
    return {"jobDefinitionName": "train", "jobDefinitionArn": f"{ARN}:job-definition/train:3", "revision": 3,
            "status": "ACTIVE", "type": "container", "containerProperties": properties}  # fmt: skip


def taken(tmp_path: Path, *documents: Any, region: str | None = None) -> tuple[dict[str, Any], str, list[str]]:
    """The section, the notes as one text, and the faults."""
    (tmp_path / "all.json").write_text(json.dumps(list(documents)))
    found = adopt(read([str(tmp_path / "all.json")]), "ml", region)
    return found.values["aws"], "\n".join(map(str, found.notes)), list(map(str, found.faults))


def test_values_of_the_pages(tmp_path: Path) -> None:
    section, said, faults = taken(tmp_path, *ASKED.values(), region="us-east-1")
    environment = section["environments"]["gpu-compute-env"]
    assert environment["image_type"] == "ECS_AL2023_NVIDIA" and "adopted" not in environment
    assert section["definitions"]["gpu-training-job"]["env"] == {}
    assert section["definitions"]["multi-gpu-training"] | {"vcpus": 32, "memory_mib": 131_072, "gpus": 4,
        "shm_mib": 16_384} == section["definitions"]["multi-gpu-training"]  # fmt: skip
    trained, multi = (section["definitions"][name] for name in ("gpu-training-job", "multi-gpu-training"))
    assert (trained["log_group"], trained["log_prefix"]) == ("/aws/batch/gpu-jobs", "training")
    assert (multi["log_group"], multi["log_prefix"]) == ("/aws/batch/job", "multi-gpu-training")
    assert section["queues"] == {"gpu-job-queue": {"environments": ["gpu-compute-env"], "priority": 10}}
    assert section["roles"]["repositories"] == [
        f"arn:aws:ecr:us-east-1:{account}:repository/ml-training" for account in ("123456789012", ACCOUNT)
    ]
    for rule in (
        "translated: environments.gpu-compute-env.image_type: is ECS_AL2_NVIDIA",
        "translated: definitions.gpu-training-job.env.NVIDIA_VISIBLE_DEVICES",
        "[aws.strategy.capacity-optimized]",
        "[aws.roles.spot-fleet-unused]",
        "[aws.roles.custom-service-role]",
        "[container.image.latest]",
        "kept: gpu-training-job.logConfiguration: log group /aws/batch/gpu-jobs, streams training/",
        "warning: network.vpc_id: is not in these files",
        "warning: queue gpu-job-queue: is a request and no answer of AWS, so `up` makes a new one",
    ):
        assert rule in said, said
    for fault in (
        'network.subnet_ids[0]: is "subnet-0abc123"',
        'network.security_group_ids[0]: is "sg-0abc123"',
        'network.vpc_id: is "CHANGEME"',
        'environments.gpu-compute-env.instance_types[0]: is "p3", which ECS_AL2023_NVIDIA does not support',
        "123456789012 is the sample account",
    ):
        assert any(fault in one for one in faults), faults


def test_what_exists_stays_as_it_is(tmp_path: Path) -> None:
    subnets = {"Subnets": [{"SubnetId": name, "VpcId": "vpc-0123456789abcdef0"} for name in SUBNETS]}
    template = {"launchTemplateName": "by-hand", "version": "$Latest"}
    environment = described(launchTemplate=template, ec2KeyPair="ops", tags={"team": "x"}, scalingPolicy={"a": 1})
    section, said, faults = taken(tmp_path, environment, queue(), definition(), subnets)
    assert faults == []
    values = section["environments"]["gpu-env"]
    assert values == {
        "capacity": "on-demand", "instance_types": ["p3", "g5"], "max_vcpus": 256, "min_vcpus": 0,
        "allocation_strategy": "BEST_FIT_PROGRESSIVE", "instance_profile": "ecsInstanceRole", "state": "DISABLED",
        "image_type": "ECS_AL2_NVIDIA", "instance": {"disk_gib": 30}, "terminate_jobs_on_update": True,
        "update_timeout_min": 60,
        "adopted": {"name": "GPU_env", "tags": {"cost-centre": "42"},
                    "keeps": ["image", "instance_tags", "launch_template", "key_pair"]},
    }  # fmt: skip
    assert section["queues"]["q"] == {"environments": ["gpu-env"], "priority": 1, "time_limits": [],
                                      "adopted": {"name": "q", "tags": {}, "keeps": []}}  # fmt: skip
    assert section["network"]["vpc_id"] == "vpc-0123456789abcdef0"
    assert (section["region"], section["account_id"]) == ("us-east-1", ACCOUNT)
    assert section["definitions"]["train"]["adopted"] == {"name": "train", "tags": {}, "keeps": []}
    assert section["definitions"]["train"]["evaluate_on_exit"] == []
    assert "aws.image" not in said, "an old image type may stay where it is"
    assert "kept: gpu-env.launchTemplate: by-hand, version $Latest" in said and "[aws.template.moving-version]" in said
    assert "lost: gpu-env.computeResources.scalingPolicy" in said
    assert "set: gpu-env.instance_profile: to the ARN of ecsInstanceRole in every update" in said


def test_each_environment_keeps_its_place(tmp_path: Path) -> None:
    other = {"computeEnvironmentName": "b", "computeEnvironmentArn": f"{ARN}:compute-environment/b"}
    section, said, _ = taken(
        tmp_path,
        described(),
        {**described(subnets=SUBNETS[:1]), **other},
        {**described(securityGroupIds=["sg-0123456789abcdef9"]), **other, "computeEnvironmentName": "c"},
    )
    assert section["environments"]["b"]["subnet_ids"] == SUBNETS[:1]
    assert "network" in section["environments"]["c"]["adopted"]["keeps"]
    assert "kept: c.computeResources.securityGroupIds: sg-0123456789abcdef9, unlike gpu-env" in said


def test_a_queue_without_its_environment_is_left_out(tmp_path: Path) -> None:
    section, said, _ = taken(tmp_path, described(type="FARGATE"), queue(), definition())
    assert section["environments"] == {} and section["queues"] == {}
    assert "left out: environment GPU_env: is FARGATE, which has no GPUs" in said
    assert "left out: queue q: uses GPU_env, which is FARGATE, which has no GPUs" in said
    _, said, _ = taken(tmp_path, queue(), definition())
    assert "left out: queue q: uses GPU_env, which is not in these files" in said


@pytest.mark.parametrize(
    "document, why",
    [
        ({**described(), "type": "UNMANAGED"}, "is UNMANAGED"),
        ({**described(), "eksConfiguration": {"eksClusterArn": "a"}}, "runs on EKS"),
        ({**definition(), "type": "multinode"}, "is a multi-node definition"),
        ({**definition(), "platformCapabilities": ["FARGATE"]}, "is for Fargate"),
        ({**definition(), "containerProperties": None, "eksProperties": {"a": 1}}, "runs on EKS"),
        (queue(jobQueueType="SAGEMAKER_TRAINING"), "is a queue of SageMaker training jobs"),
    ],
)
def test_what_cannot_be_moved_is_left_out(tmp_path: Path, document: dict[str, Any], why: str) -> None:
    assert why in taken(tmp_path, document, region="us-east-1")[1]


def test_a_container_with_more_is_kept_whole(tmp_path: Path) -> None:
    section, said, _ = taken(tmp_path, described(), queue(schedulingPolicyArn="arn:x"), definition(user="1000"))
    assert section["definitions"]["train"]["adopted"]["keeps"] == ["container"]
    assert section["queues"]["q"]["adopted"]["keeps"] == ["scheduling_policy"]
    assert "kept: train.containerProperties: whole, for the sake of user" in said
    assert "kept: train.logConfiguration: log group /aws/batch/job" in said


def test_a_log_that_is_not_carried_whole_is_said(tmp_path: Path) -> None:
    options = {
        "awslogs-group": "g",
        "awslogs-region": "eu-west-1",
        "mode": "non-blocking",
        "awslogs-create-group": "true",
    }
    log = {"logDriver": "awslogs", "options": options}
    section, said, _ = taken(tmp_path, described(), queue(), definition(logConfiguration=log))
    assert "log_group" not in section["definitions"]["train"]
    assert "lost: train.logConfiguration: log group g of eu-west-1" in said
    here = {"logDriver": "awslogs", "options": {**options, "awslogs-region": "us-east-1"}}
    section, said, _ = taken(tmp_path, described(), queue(), definition(logConfiguration=here))
    values = section["definitions"]["train"]
    assert (values["log_group"], values["log_prefix"]) == ("g", "train")
    assert "lost: train.logConfiguration.options.mode: is" in said


def test_an_answer_counts_more_than_a_request_and_the_newest_revision_most(tmp_path: Path) -> None:
    old = {**definition(), "revision": 2, "jobDefinitionArn": f"{ARN}:job-definition/train:2"}
    gone = {**definition(), "revision": 9, "status": "INACTIVE"}
    request = {**ASKED["environment"], "computeEnvironmentName": "GPU_env"}
    (tmp_path / "a.json").write_text(json.dumps([request, described(), old, gone, definition()]))
    found = {one.kind: one for one in read([str(tmp_path / "a.json")])}
    assert found["environment"].exists and found["definition"].document["revision"] == 3


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from leaves(below, (*path, key))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    made = copy.copy(value)
    made[path[0]] = changed(value[path[0]], path[1:], to)
    return made


def test_whatever_stands_in_a_file_there_is_an_answer(tmp_path: Path) -> None:
    """Each value in turn is something else: the file is taken, or refused as any bad input is."""
    retry = {"attempts": 2, "evaluateOnExit": [{"action": "retry", "onReason": "x"}]}
    template = {"launchTemplateId": "lt-1", "version": "1"}
    limits = [{"state": "RUNNABLE", "action": "CANCEL", "reason": "a", "maxTimeSeconds": 600}]
    secret = [{"name": "A", "valueFrom": "arn:aws:ssm:us-east-1:210020003000:parameter/a"}]
    sound = [
        described(launchTemplate=template, tags={"a": "b"}),
        queue(jobStateTimeLimitActions=limits),
        {**definition(secrets=secret, environment=[{"name": "B", "value": "1"}]), "retryStrategy": retry},
    ]
    refused = taken_all = 0
    for path in leaves(sound):
        for to in (None, 5, "x", [], {}, [1], {"a": 1}, True):
            taken_all += 1
            try:
                taken(tmp_path, *[changed(sound, path, to)] if not path else changed(sound, path, to))
            except BadInput:
                refused += 1
    assert 0 < refused < taken_all


def test_names_become_keys(tmp_path: Path) -> None:
    arn = f"{ARN}:job-definition"
    names = ["Train", "train", "3d_Model", "x" * 60]
    documents = [{**definition(), "jobDefinitionName": name, "jobDefinitionArn": f"{arn}/{name}:3"} for name in names]
    assert list(taken(tmp_path, *documents)[0]["definitions"]) == ["train", "train-2", "x-3d-model", "x" * 40]


def test_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("Pulumi.yaml").write_text("name: ours\nruntime: python\n")
    Path("Pulumi.moved.yaml").write_text("encryptionsalt: v1:abc\n")
    subnets = {"Subnets": [{"SubnetId": name, "VpcId": "vpc-0123456789abcdef0"} for name in SUBNETS]}
    Path("in.json").write_text(json.dumps([described(), queue(), definition(), subnets]))
    done = write(["in.json"], "moved", None, Path())
    assert done.faults == []
    assert done.lines[:2] == [
        "Pulumi.moved.yaml: 1 environment, 1 queue, 1 definition",
        "import-moved.json: 3 that exist",
    ]
    config = yaml.safe_load(Path("Pulumi.moved.yaml").read_text())
    assert config["encryptionsalt"] == "v1:abc"
    assert load_environment(config["config"][KEY]).aws
    document = json.loads(Path("import-moved.json").read_text())
    assert document["nameTable"] == {"aws": "urn:pulumi:moved::ours::pulumi:providers:aws::aws-us-east-1"}
    ids = {one["type"]: one["id"] for one in document["resources"] if "id" in one}
    assert ids == {
        "aws:batch/computeEnvironment:ComputeEnvironment": "GPU_env",
        "aws:batch/jobQueue:JobQueue": f"{ARN}:job-queue/q",
        "aws:batch/jobDefinition:JobDefinition": f"{ARN}:job-definition/train:3",
    }
    names = [one["name"] for one in document["resources"]]
    assert len(set(names)) == len(names), "a name that is there twice cannot be a parent"
    code, _, errors = stacks("adopt", "in.json", "--stack", "moved", cwd=tmp_path)
    assert (code, errors[0]) == (2, "error: Pulumi.moved.yaml: has an environment already")


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        ("{", (), 2, "bad.json:1: is not JSON"),
        ("{}", (), 2, "bad.json: is a mapping"),
        ('{"Vpcs": []}', (), 2, "bad.json: holds Vpcs, and none of computeEnvironments"),
        ('{"jobQueueName": 5}', (), 2, "bad.json: jobQueueName: must be a name, is 5"),
        ('{"jobQueues": [7]}', (), 2, "bad.json: jobQueues[0]: jobQueueName: must be a name"),
        ('{"jobQueueName": "q", "computeEnvironmentOrder": "x"}', (), 2, "computeEnvironmentOrder: must be a list"),
        ('{"jobDefinitionName": "d", "containerProperties": "x"}', (), 2, "containerProperties: must be an object"),
        (json.dumps(ASKED["environment"]), (), 2, "--region: is missing"),
        (json.dumps(described()), ("--region", "eu-west-1"), 2, "these are of eu-west-1, us-east-1"),
        (json.dumps(described(type="FARGATE")), (), 2, "left out: environment GPU_env: is FARGATE"),
        (json.dumps(described(maxvCpus="many")), (), 2, "environments.gpu-env.max_vcpus: must be an integer"),
        (json.dumps(described()), ("--out", "nowhere"), 6, "no such folder"),
        (json.dumps(described()), ("--stack", "a b"), 2, "--stack: must be letters"),
        ("null", ("nosuch.json",), 6, "nosuch.json: no such file"),
    ],
)
def test_bad_input_is_said_in_a_line(
    tmp_path: Path, text: str, arguments: tuple[str, ...], code: int, said: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    (tmp_path / "Pulumi.yaml").write_text("name: accel\n")
    files = [] if any(one.endswith(".json") for one in arguments) else ["bad.json"]
    got, _, errors = stacks("adopt", *files, *arguments, cwd=tmp_path)
    assert got == code and any(said in line for line in errors if line.startswith("error: ")), errors


@pytest.mark.parametrize("project", [None, "", "runtime: python\n", "name: 5\n", "[]\n", "name: [\n"])
def test_without_a_project_nothing_is_written(tmp_path: Path, project: str | None) -> None:
    (tmp_path / "in.json").write_text(json.dumps(described()))
    if project is not None:
        (tmp_path / "Pulumi.yaml").write_text(project)
    code, _, errors = stacks("adopt", "in.json", cwd=tmp_path)
    said = "error: no Pulumi.yaml with a name in . or here, and a URN holds the project's name"
    assert (code, errors[0]) == (6, said)
    assert {path.name for path in tmp_path.iterdir()} <= {"in.json", "Pulumi.yaml"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("config: 5\n", "is there, and no config of a stack"),
        ("config: [a]\n", "is there, and no config of a stack"),
        ("- a\n", "is there, and no config of a stack"),
        ("a: [\n", "is there and is not YAML"),
        ("[" * 5000, "is there and is not YAML"),
        ("config: {accel:environment: {}}\n", "has an environment already"),
    ],
)
def test_a_config_file_that_is_there_stays_as_it_is(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(described()))
    (tmp_path / "Pulumi.yaml").write_text("name: accel\n")
    (tmp_path / "Pulumi.adopted.yaml").write_text(text)
    code, _, errors = stacks("adopt", "in.json", cwd=tmp_path)
    assert (code, errors[0]) == (2, f"error: Pulumi.adopted.yaml: {said}")
    assert (tmp_path / "Pulumi.adopted.yaml").read_text() == text

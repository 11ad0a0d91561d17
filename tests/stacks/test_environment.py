"""A whole environment as components and outputs, on the engine in memory."""

import base64
import copy
import functools
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest

from accel.contract.access import AwsAccess
from accel.contract.monitoring import AwsMonitoring
from accel.contract.network import AwsNetwork
from accel.contract.stack import read, read_targets
from accel.contract.target_layout import add_source, whole
from accel.contract.targets import AwsBatchTarget, read_one, write
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from tests.support import memory
from tests.support.soak import sampled, soak_only

from .test_config import ROOT, document, put

PROGRAM = """
import json, sys, yaml
from tests.stacks.test_environment import snapshot
print(json.dumps(snapshot(yaml.safe_load(sys.stdin))))
"""


def ran(environment: dict[str, Any]) -> memory.Recorder:
    loaded = load_environment(environment)
    return memory.run(lambda: deploy(loaded))


def snapshot(environment: dict[str, Any]) -> str:
    """Everything that a program registers, in one order."""
    rows = [[one.type, one.name, one.parent, one.inputs] for one in ran(environment).registrations]
    return json.dumps(sorted(rows, key=lambda row: str(row[:3])), sort_keys=True)


@functools.cache
def prod() -> str:
    return snapshot(document("prod"))


@pytest.mark.parametrize("stack", ["dev", "prod", "sandbox"])
def test_an_environment_exports_what_the_contract_promises(stack: str) -> None:
    outputs = ran(document(stack)).exports
    assert set(outputs) == {"targets", "network", "repositories", "access"}
    assert AwsAccess.model_validate(outputs["access"]).submit_policy_arns == ["arn:aws:iam/policy:Policy:submit"]
    AwsNetwork.model_validate(outputs["network"])
    section = document(stack)["aws"]
    assert set(outputs["targets"]) == set(section["queues"])
    for name, promised in outputs["targets"].items():
        target = read_one(promised)
        assert isinstance(target, AwsBatchTarget)
        assert [one.name for one in target.environments] == section["queues"][name]["environments"]
        assert set(target.definitions) == set(section["definitions"])
        assert write({name: target})[name] == promised, "the reader sees all that the writer wrote"


def test_targets_are_published_as_they_are_exported() -> None:
    seen = ran(document("prod"))
    # The provider's SDK makes a secret of every parameter's value.
    sent = {one.inputs["name"]: one.inputs["value"] for one in seen.of("ssm/parameter:Parameter")}
    path = "/accel/dev/targets"
    published = {name: add_source(json.loads(value["value"]), path) for name, value in sent.items()}
    assert published == {f"/accel/dev/targets/{name}": target for name, target in seen.exports["targets"].items()}


@pytest.mark.parametrize("count", sampled([1, 10, 24, 40, 80], [1, 40]))
def test_however_many_definitions_there_are_each_parameter_holds_its_part(count: int) -> None:
    """SSM takes 8,192 characters; a reader gets what the stack exports, however it was cut."""
    one = document()["aws"]["definitions"]["training"]
    seen = ran(put("aws.definitions", {f"training-{number}": one for number in range(count)}))
    sent = {one.inputs["name"]: one.inputs["value"]["value"] for one in seen.of("ssm/parameter:Parameter")}
    assert all(len(text) <= 8192 for text in sent.values())
    path = "/accel/dev/targets/"
    read = whole({name.removeprefix(path): json.loads(text) for name, text in sent.items()})
    assert {name: add_source(each, path.rstrip("/")) for name, each in read.items()} == seen.exports["targets"]
    assert (len(sent) > len(seen.exports["targets"])) == (count > 20), "small stacks are published as they always were"


@pytest.mark.parametrize("stack", ["dev", "my.stack", "v1.2_b"])
def test_names_that_hold_the_stack_are_such_as_aws_takes(stack: str) -> None:
    """Pulumi takes dots in a stack's name; Batch and CloudWatch do not."""
    loaded = load_environment(put("aws.monitoring", {"job_states": ["FAILED"]}))
    seen = memory.run(lambda: deploy(loaded), stack=stack)
    (target,) = {target["definition_prefix"] for target in seen.exports["targets"].values()}
    board = seen.one("cloudwatch/dashboard:Dashboard").inputs["dashboardName"]
    for name in (target, board):
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,128}", name), name
    assert target == f"accel-{stack.replace('.', '-')}"


@pytest.mark.parametrize("count", sampled([1, 14, 15, 50], [14, 15]))
def test_however_many_queues_there_are_each_pattern_is_taken(count: int) -> None:
    """EventBridge takes 2,048 characters; every queue is in one rule of each kind, which the log's policy admits."""
    one = document()["aws"]["queues"]["gpu"]
    queues = {f"queue-{number:02}": one for number in range(count)}
    seen = ran(put("aws.monitoring", {"job_states": ["FAILED"]}, put("aws.queues", queues)))
    patterns = {
        each.name: json.loads(each.inputs["eventPattern"])
        for each in seen.of("cloudwatch/eventRule:EventRule")
        if "eventPattern" in each.inputs
    }
    arns = sorted(target["queue_arn"] for target in seen.exports["targets"].values())
    for kind in ("jobs", "blocked", "events"):
        parts = [each["detail"]["jobQueue"] for name, each in patterns.items() if name.startswith(f"monitoring-{kind}")]
        assert sorted(arn for part in parts for arn in part) == arns
        assert len(parts) == -(-count // 14)
    longest = "arn:aws-us-gov:batch:us-gov-west-1:210020003000:job-queue/" + "q" * 48
    states = ["PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED"]
    for each in patterns.values():
        each["detail"] |= {"status": states, "jobQueue": [longest] * len(each["detail"]["jobQueue"])}
        assert len(json.dumps(each)) <= 2048
    policy = json.loads(seen.one("cloudwatch/logResourcePolicy:LogResourcePolicy").inputs["policyDocument"])
    admitted = policy["Statement"][1]["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert len([admitted] if isinstance(admitted, str) else admitted) == -(-count // 14)


def test_every_resource_is_made_by_the_explicit_provider() -> None:
    seen = ran(document())
    (provider,) = [one for one in seen.registrations if one.type == "pulumi:providers:aws"]
    assert json.loads(provider.inputs["defaultTags"])["tags"]["accel:owner"] == "ml-platform"
    for one in seen.registrations:
        if one.type.startswith("aws:"):
            assert "aws-us-east-1" in one.provider, f"{one.urn} is left to the shell's region and account"


def test_instances_carry_the_stacks_tags() -> None:
    for one in ran(document()).of("batch/computeEnvironment:ComputeEnvironment"):
        assert one.inputs["computeResources"]["tags"]["accel:stack"] == "dev"


def test_an_absent_section_deploys_nothing() -> None:
    seen = ran({"owner": "ml"})
    assert seen.registrations == []


def test_an_existing_network_is_used_as_it_is() -> None:
    ids = {"vpc_id": "vpc-0a1b2c3d", "subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}
    seen = ran(put("aws.network", {"kind": "existing", **ids}))
    assert not seen.of("ec2/vpc:Vpc")
    resources = seen.of("batch/computeEnvironment:ComputeEnvironment")[0].inputs["computeResources"]
    assert (resources["subnets"], resources["securityGroupIds"]) == (["subnet-0a1b2c3d"], ["sg-0a1b2c3d"])


def test_a_section_can_stand_on_another_stacks_network() -> None:
    seen = ran(put("aws.network", {"kind": "stack", "stack": "organization/accel/network"}))
    assert not seen.of("ec2/vpc:Vpc")
    resources = seen.of("batch/computeEnvironment:ComputeEnvironment")[0].inputs["computeResources"]
    assert (resources["subnets"], resources["securityGroupIds"]) == (["subnet-1"], ["sg-1"])


def test_without_a_claim_table_the_target_says_so() -> None:
    targets = ran(put("aws.claims", None)).exports["targets"]
    assert targets["gpu"].get("claim_table") is None


def shuffled(value: Any, seed: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    items = list(value.items())
    seed.shuffle(items)
    return {key: shuffled(inner, seed) for key, inner in items}


def test_the_order_of_keys_does_not_matter() -> None:
    for seed in range(50 if os.environ.get("ACCEL_SOAK") else 3):
        assert snapshot(shuffled(copy.deepcopy(document("prod")), random.Random(seed))) == prod()


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"PYTHONHASHSEED": "1"}, id="hash-seed", marks=soak_only),
        pytest.param(
            {"PYTHONHASHSEED": "4242", "TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8"}, id="hash-seed-zone-locale"
        ),
    ],
)
def test_hash_seed_locale_and_time_zone_do_not_matter(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(document("prod")),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == prod()


class Reference:
    """A StackReference whose outputs are given."""

    def __init__(self, outputs: dict[str, Any]) -> None:
        self.outputs = outputs

    def get_output(self, name: str) -> pulumi.Output[Any]:
        return pulumi.Output.from_input(self.outputs.get(name))


def test_a_reader_is_lenient_on_newer_fields_and_strict_on_missing_ones() -> None:
    network = {"schema": 1, "vpc_id": "v", "subnet_ids": ["s"], "security_group_ids": ["g"]}
    newer = Reference(
        {"network": {**network, "schema": 2, "ipv6": True}, "targets": {"here": {"kind": "local", "new": 1}}}
    )
    seen: list[Any] = []

    def program() -> None:
        read(AwsNetwork, newer, "network").apply(seen.append)  # type: ignore[arg-type]
        read_targets(newer).apply(seen.append)  # type: ignore[arg-type]

    memory.run(program)
    assert seen[0].vpc_id == "v"
    assert seen[1]["here"].root == "."
    with pytest.raises(ValueError, match="vpc_id"):
        AwsNetwork.model_validate({"schema": 1}, extra="ignore")


def test_the_execution_role_may_read_what_definitions_name() -> None:
    secret = "arn:aws:secretsmanager:us-east-1:210987654321:secret:wandb-AbCdEf"
    seen = ran(put("aws.definitions.training.secrets", {"WANDB_KEY": secret}))
    (policy,) = [one for one in seen.of("iam/rolePolicy:RolePolicy") if one.name == "batch-execution"]
    statements = json.loads(policy.inputs["policy"])["Statement"]
    assert {"Effect": "Allow", "Action": ["secretsmanager:GetSecretValue"], "Resource": [secret]} in statements


def test_a_definition_that_logs_to_another_group_may_write_and_be_read_there() -> None:
    given = put("aws.definitions.training.log_group", "/aws/batch/old")
    given["aws"]["definitions"]["training"]["log_prefix"] = "p"
    seen = ran(given)
    (definition,) = seen.of("batch/jobDefinition:JobDefinition")
    options = json.loads(definition.inputs["containerProperties"])["logConfiguration"]["options"]
    assert (options["awslogs-group"], options["awslogs-stream-prefix"]) == ("/aws/batch/old", "p")
    (role,) = [one for one in seen.of("iam/rolePolicy:RolePolicy") if one.name == "batch-execution"]
    submit = seen.one("iam/policy:Policy")
    for policy, action in (
        (role, "logs:PutLogEvents"),
        (submit, "logs:GetLogEvents"),
        (submit, "logs:FilterLogEvents"),
    ):
        (found,) = [each for each in json.loads(policy.inputs["policy"])["Statement"] if action in each["Action"]]
        assert [each for each in found["Resource"] if ":log-group:/aws/batch/old" in each], (action, found)
        assert [each for each in found["Resource"] if ":log-group:/aws/batch/old" not in each], "the stack's own too"


def test_monitoring_is_wired_to_queues_and_instances() -> None:
    seen = ran(put("aws.monitoring", {"gpu_metrics": True, "failed_jobs": {"jobs": 3}}))
    assert set(seen.exports["monitoring"]) == {"schema", "topic_arn", "event_log", "namespace", "dashboard"}
    AwsMonitoring.model_validate(seen.exports["monitoring"])
    queue = seen.exports["targets"]["gpu"]["queue_arn"]
    for rule in seen.of("cloudwatch/eventRule:EventRule"):
        pattern = rule.inputs.get("eventPattern")
        assert pattern is None or json.loads(pattern)["detail"]["jobQueue"] == [queue]
    function = seen.one("lambda/function:Function").inputs["environment"]["variables"]
    assert function == {"NAMESPACE": seen.exports["monitoring"]["namespace"], "QUEUES": json.dumps([queue])}
    (policy,) = [one for one in seen.of("iam/rolePolicy:RolePolicy") if one.name == "batch-instance"]
    (statement,) = json.loads(policy.inputs["policy"])["Statement"]
    namespaces = statement["Condition"]["StringEquals"]["cloudwatch:namespace"]
    templates = {
        one.name: base64.b64decode(one.inputs["userData"]).decode()
        for one in seen.of("ec2/launchTemplate:LaunchTemplate")
    }
    assert set(namespaces) == {f"accel/dev/{name}" for name in templates}
    assert all(f'"namespace": "accel/dev/{name}"' in text for name, text in templates.items())


def test_without_gpu_metrics_instances_are_as_before() -> None:
    def instances(environment: dict[str, Any]) -> list[Any]:
        seen = ran(environment)
        kinds = ("ec2/launchTemplate:LaunchTemplate", "iam/rolePolicy:RolePolicy", "batch/computeEnvironment")
        made = [one for kind in kinds for one in seen.of(kind) if not one.name.startswith("monitoring")]
        return [one.inputs for one in sorted(made, key=lambda one: (one.type, one.name))]

    assert instances(put("aws.monitoring", {})) == instances(document())


def test_an_update_writes_its_targets_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `stacks export` writes, without being asked after each update."""
    file = tmp_path / ".accel" / "targets.json"
    monkeypatch.setenv("ACCEL_EXPORT", str(file))
    loaded = load_environment(document("prod"))
    memory.run(lambda: deploy(loaded), preview=True)
    assert not file.exists(), "a preview changes nothing"
    seen = memory.run(lambda: deploy(loaded))
    assert json.loads(file.read_text()) == seen.exports["targets"]
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("ACCEL_EXPORT", str(tmp_path / "blocked" / "targets.json"))
    assert memory.run(lambda: deploy(loaded)).exports["targets"] == seen.exports["targets"], "it is no reason to fail"

"""`stacks permissions`: policies read off the environment's own resources."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from sandbox.environment import project
from stacks.cli.main import stacks
from stacks.environment.config import load_environment
from stacks.environment.deployment import deploy
from stacks.operations.permissions.aws import MOST, size
from tests.support import memory
from tests.support.project import KEY, environment, put

ROLE = "arn:aws:iam::210020003000:role/batch"


def run(folder: Path, values: dict[str, Any], *arguments: str) -> Result:
    (folder / "Pulumi.yaml").write_text("name: accel\nruntime: python\n")
    file = folder / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump({"config": {KEY: values}}))
    return CliRunner().invoke(stacks, ["permissions", str(file), *arguments])


def shown(folder: Path, values: dict[str, Any], *arguments: str) -> dict[str, Any]:
    done = run(folder, values, *arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    (document,) = json.loads(done.stdout)
    return document


def statements(policies: list[Any], action: str) -> Iterator[dict[str, Any]]:
    return (one for policy in policies for one in policy["Statement"] if action in one["Action"])


def actions(policies: list[Any]) -> set[str]:
    return {action for policy in policies for one in policy["Statement"] for action in one["Action"]}


@pytest.mark.parametrize("file", sorted(project().glob("Pulumi.*.yaml")), ids=lambda path: path.name.split(".")[1])
def test_every_shipped_environment_has_policies_that_iam_takes(file: Path, tmp_path: Path) -> None:
    values = yaml.safe_load(file.read_text())["config"][KEY]
    policies = shown(tmp_path, values)["aws"]
    assert bool(policies) == ("aws" in values)
    for policy in policies:
        assert policy["Version"] == "2012-10-17"
        assert size(policy) <= MOST
        assert all(one["Effect"] == "Allow" and one["Action"] and one["Resource"] for one in policy["Statement"])
        assert not any("*" in action for action in actions([policy]))


def test_a_long_policy_is_split_and_loses_nothing(tmp_path: Path) -> None:
    values = environment("sandbox")
    names = [f"environment-with-a-long-name-{i}" for i in range(120)]
    aws = values["aws"]
    aws["environments"] = {name: dict(aws["environments"]["spot"], instance_types=["g5"]) for name in names}
    aws["queues"] = {f"q{i // 3}": {"environments": names[i : i + 3], "priority": 1 + i} for i in range(0, 120, 3)}
    policies = shown(tmp_path, values)["aws"]
    assert len(policies) > 2
    assert max(map(size, policies)) <= MOST
    allowed = {arn for one in statements(policies, "batch:CreateComputeEnvironment") for arn in one["Resource"]}
    assert allowed == {f"arn:aws:batch:us-east-1:*:compute-environment/{name}-*" for name in names}


def test_roles_are_passed_to_their_services_alone(tmp_path: Path) -> None:
    passed = list(statements(shown(tmp_path, environment("sandbox"))["aws"], "iam:PassRole"))
    by_service = {
        service: one["Resource"]
        for one in passed
        for service in one["Condition"]["StringEquals"]["iam:PassedToService"]
    }
    assert by_service["vpc-flow-logs.amazonaws.com"] == ["arn:aws:iam::*:role/network-flow-*"]
    assert by_service["ec2.amazonaws.com"] == ["arn:aws:iam::*:role/batch-instance-*"]
    assert by_service["ecs-tasks.amazonaws.com"] == [
        "arn:aws:iam::*:role/batch-execution-*",
        "arn:aws:iam::*:role/batch-job-*",
    ]
    assert all("*" not in one["Resource"] for one in passed)


def test_batch_makes_its_own_role_unless_there_is_one(tmp_path: Path) -> None:
    values = environment("sandbox")
    (one,) = statements(shown(tmp_path, values)["aws"], "iam:CreateServiceLinkedRole")
    assert one["Condition"] == {"StringEquals": {"iam:AWSServiceName": ["batch.amazonaws.com"]}}
    for name in ("spot", "on-demand"):
        values = put(f"aws.environments.{name}.service_role", ROLE, values)
    policies = shown(tmp_path, values)["aws"]
    assert not list(statements(policies, "iam:CreateServiceLinkedRole"))
    passed = [one for one in statements(policies, "iam:PassRole") if ROLE in one["Resource"]]
    assert [one["Condition"]["StringEquals"]["iam:PassedToService"] for one in passed] == [["batch.amazonaws.com"]]


def test_a_role_by_its_name_is_passed(tmp_path: Path) -> None:
    values = put("aws.definitions.examples.job_role", ROLE, environment("sandbox"))
    policies = shown(tmp_path, values)["aws"]
    (one,) = [one for one in statements(policies, "iam:PassRole") if ROLE in one["Resource"]]
    assert "ecs-tasks.amazonaws.com" in one["Condition"]["StringEquals"]["iam:PassedToService"]


def test_a_network_of_another_stack_is_not_touched(tmp_path: Path) -> None:
    values = put("aws.network", {"kind": "stack", "stack": "organization/accel/network"}, environment("sandbox"))
    assert "ec2:CreateVpc" not in actions(shown(tmp_path, values)["aws"])


def test_a_key_of_a_repository_is_granted_on(tmp_path: Path) -> None:
    key = "arn:aws:kms:us-east-1:210987654321:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    assert "kms:CreateGrant" not in actions(shown(tmp_path, environment("sandbox"))["aws"])
    values = put("aws.repositories.training.kms_key_arn", key, environment("sandbox"))
    (one,) = statements(shown(tmp_path, values)["aws"], "kms:CreateGrant")
    assert one["Resource"] == [key]


def test_what_only_previews_changes_nothing(tmp_path: Path) -> None:
    deploys, reads = (
        actions(shown(tmp_path, environment("sandbox"), "--for", purpose)["aws"]) for purpose in ("deploy", "preview")
    )
    assert reads < deploys
    assert all(action.partition(":")[2].startswith(("Describe", "Get", "List")) for action in reads)


def test_the_submit_policy_is_the_stacks_own(tmp_path: Path) -> None:
    values = environment("sandbox")
    (policy,) = shown(tmp_path, values, "--for", "submit")["aws"]
    own = memory.run(lambda: deploy(load_environment(values))).one("iam/policy:Policy").inputs["policy"]
    assert actions([policy]) == actions([json.loads(own)])
    (one,) = statements([policy], "logs:FilterLogEvents")
    assert "arn:aws:logs:us-east-1:*:log-group:jobs-*" in one["Resource"]


def test_an_account_and_a_partition_are_those_of_the_section(tmp_path: Path) -> None:
    values = put("aws.account_id", "210020003000", put("aws.region", "us-gov-west-1", environment("sandbox")))
    values = put("aws.network.zones", ["us-gov-west-1a", "us-gov-west-1b"], values)
    for name in ("spot", "on-demand"):
        values = put(f"aws.environments.{name}.instance_types", ["g4dn"], values)
    (one,) = statements(shown(tmp_path, values)["aws"], "ecr:CreateRepository")
    assert one["Resource"] == ["arn:aws-us-gov:ecr:us-gov-west-1:210020003000:repository/training-*"]


def test_google_sections_name_their_services(tmp_path: Path) -> None:
    document = shown(tmp_path, environment("sandbox", "gcp"))
    assert document["aws"] == []
    assert "compute.googleapis.com" in document["google"]["services"]


def test_the_targets_of_the_deployed_stack_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "targets.json"
    file.write_text("deployed")
    monkeypatch.setenv("ACCEL_EXPORT", str(file))
    for purpose in ("deploy", "preview", "submit"):
        shown(tmp_path, environment("sandbox"), "--for", purpose)
    assert file.read_text() == "deployed"


def test_for_whom_is_one_of_three(tmp_path: Path) -> None:
    done = run(tmp_path, environment("sandbox"), "--for", "deploi")
    assert done.exit_code == 2
    assert "deploy" in done.output

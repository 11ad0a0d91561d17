"""The policies that `stacks permissions` prints, held against what a deployment calls."""

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests

from sandbox.keys import DEPLOYER, aws, bearer, key
from stacks.environment.config import load_environment
from stacks.operations.permissions.aws import policies
from tests.support.engine import Sandbox, started
from tests.support.iam import Ask, allows
from tests.support.project import Stack, environment, put
from tests.support.soak import SOAK, sampled

OPEN = {"aws.logs.retain_on_delete": False, "aws.claims.protect": False,
        "aws.repositories.training.protect": False, "aws.code.protect": False}  # fmt: skip
"""What is changed of prod so that it can be destroyed."""
WATCHED: dict[str, Any] = {
    "aws.monitoring": {"emails": ["ml@company.com"], "gpu_metrics": True},
    "aws.budgets": {"all": {"amount": 1000, "recipients": {"emails": ["ml@company.com"]}, "stop": {"at": 1.2}}},
    "aws.queues.gpu.fair_share": {"shares": {"research": 0.5}},
}
"""What the shipped environments lack, and makes further types."""
CLOSED: dict[str, Any] = {
    "aws.network.egress": "endpoints",
    "aws.claims": None,
    "aws.environments.cluster": {
        "capacity": "on-demand", "instance_types": ["p4d.24xlarge"], "max_vcpus": 192, "placement": "cluster",
        "efa": True, "zone": "us-east-1a",
    },
}  # fmt: skip
"""One without a way out, and instances side by side."""


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """An account that was just opened: nobody else's calls have made a service-linked role in it."""
    yield from started(tmp_path / "sandbox")


def changed(name: str, **paths: Any) -> dict[str, Any]:
    values = environment(name)
    for path, value in paths.items():
        values = put(path, value, values)
    return values


def allow(sandbox: Sandbox, documents: list[Any]) -> None:
    """The deployer may do this and nothing else."""
    body = {"caller": DEPLOYER, "policies": documents}
    url = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/permissions"
    requests.post(url, json=body, headers=bearer(sandbox.home), timeout=120).raise_for_status()


def needed(sandbox: Sandbox) -> set[str]:
    url = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/permissions"
    answer = requests.get(url, headers=bearer(sandbox.home), timeout=120)
    return {action for action, _ in answer.json()["needed"].get(DEPLOYER, [])}


def deployer(folder: Path, sandbox: Sandbox, values: dict[str, Any], name: str) -> Stack:
    # The printed policies are those of a deployment alone, not of its state's key.
    stack = Stack(folder, replace(sandbox, secrets="passphrase"), values, stack=name)
    stack.variables |= aws(key(sandbox.home), DEPLOYER)
    return stack


def printed(values: dict[str, Any], name: str, purpose: str = "deploy") -> list[Any]:
    return policies(load_environment(values), "accel", name, purpose)


def without(documents: list[Any], action: str) -> list[Any]:
    text = json.dumps(documents)
    assert f'"{action}"' in text
    return json.loads(text.replace(f'"{action}"', '"none:None"'))


ENVIRONMENTS = {
    "sandbox": changed("sandbox"),
    "dev": changed("dev"),
    "prod": changed("prod", **OPEN),
    "watched": changed("sandbox", **WATCHED),
    "closed": changed("sandbox", **CLOSED),
}
SAMPLE = ("closed", "watched")
"""Their printed policies have every action of the others: test_the_sample_has_every_action."""


LACKING = (
    # What can be made side by side is refused side by side, and what depends on it comes with the next update.
    ("dynamodb:CreateTable", "ec2:CreateVpc", "ecr:CreateRepository", "iam:CreateRole", "logs:CreateLogGroup",
     "s3:CreateBucket"),
    ("s3:PutBucketPublicAccessBlock", "iam:PassRole", "ec2:CreateNatGateway"),
    ("iam:CreateServiceLinkedRole", "batch:RegisterJobDefinition"),
    ("batch:CreateComputeEnvironment",),
    ("batch:CreateJobQueue",),
    ("iam:CreatePolicy", "ssm:PutParameter"),
)  # fmt: skip
RUNGS = LACKING if SOAK else LACKING[:1]


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(sorted(ENVIRONMENTS), SAMPLE))
def test_the_printed_policies_are_enough(tmp_path: Path, sandbox: Sandbox, name: str) -> None:
    """A permission that is missing is named, and the next update goes on."""
    values = ENVIRONMENTS[name]
    documents = printed(values, name)
    stack = deployer(tmp_path / name, sandbox, values, name)
    try:
        if name == "watched":
            are_named(RUNGS, stack, sandbox, documents)
        allow(sandbox, documents)
        stack.up()
        assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
        stack.write_environment(put("aws.environments.spot.max_vcpus", 32, put("labels.team", "vision", values)))
        assert "update" in stack.up().ops("same")
        allow(sandbox, printed(values, name, "preview"))
        stack.preview("--refresh")
        if name == "watched":
            allow(sandbox, without(documents, "batch:DeleteComputeEnvironment"))
            assert "not authorized to perform: batch:DeleteComputeEnvironment" in stack.destroy(check=False).text
    finally:
        allow(sandbox, documents)
        stack.destroy()
    assert needed(sandbox)


def are_named(lacking: Iterable[Collection[str]], stack: Stack, sandbox: Sandbox, documents: list[Any]) -> None:
    for actions in lacking:
        allowed = documents
        for action in actions:
            allowed = without(allowed, action)
        allow(sandbox, allowed)
        refused = stack.up("--continue-on-error", check=False)
        assert refused.exit_code != 0
        for action in actions:
            assert f"is not authorized to perform: {action} on resource" in refused.text, action


def test_the_sample_has_every_action() -> None:
    actions = {name: _actions(printed(values, name)) for name, values in ENVIRONMENTS.items()}
    assert set().union(*actions.values()) == set().union(*(actions[name] for name in SAMPLE))


def _actions(documents: list[Any]) -> set[str]:
    statements = [statement for document in documents for statement in document["Statement"]]
    return {action for statement in statements for action in statement["Action"]}


def test_the_submit_policy_is_what_whoever_submits_gets(tmp_path: Path) -> None:
    values = environment("sandbox")
    submit = Ask("batch:SubmitJob", "arn:aws:batch:us-east-1:*:job-queue/gpu-0a1b2c3")
    assert allows(printed(values, "sandbox", "submit"), submit)
    assert not allows(printed(values, "sandbox", "preview"), submit)

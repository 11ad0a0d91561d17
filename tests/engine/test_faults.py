"""A cloud that refuses creates, on the real engine: the run says what was refused, the next one makes the rest, and
then there is nothing left to do."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.drifted import control
from tests.support.engine import Sandbox
from tests.support.google_fake import Fake
from tests.support.project import Stack, environment, put
from tests.support.soak import SOAK, soak_only

pytest_plugins = ["tests.support.google_fake"]

COUNT = 10 if SOAK else 1
"""Of each cloud."""
AWS = ["CreateRole", "CreateInstanceProfile", "CreateLogGroup", "CreateTable", "CreateRepository", "CreateVpc",
       "CreateLaunchTemplate", "CreateComputeEnvironment", "CreateJobQueue", "RegisterJobDefinition", "PutParameter",
       "CreatePolicy"]  # fmt: skip
"""What creates call."""
GOOGLE = ["compute.networks.insert", "compute.subnetworks.insert", "iam.projects.serviceAccounts.create",
          "storage.buckets.insert", "firestore.projects.databases.create", "compute.firewalls.insert",
          "artifactregistry.projects.locations.repositories.create"]  # fmt: skip
AWS_PARTS = [
    ("aws.network.egress", ["nat", "nat-per-zone", "endpoints"]),
    ("aws.monitoring", [{}, {"job_states": ["FAILED"], "emails": ["ml@company.com"]}]),
    ("aws.budgets", [{}, {"gpus": {"amount": 1000, "recipients": {"emails": ["ml@company.com"]}}}]),
]
GOOGLE_PARTS = [
    ("gcp.batch.notifications", [{}, {"retention_s": 86_400}]),
    ("gcp.vertex.claims", [{"kind": "create"}]),
    ("gcp.vms.targets", [{}, {"vm": {"kind": "gce", "zones": ["us-central1-a"]}}]),
]


def drawn(dice: random.Random, values: dict[str, Any], parts: list[tuple[str, list[Any]]]) -> dict[str, Any]:
    """An environment with some of its parts changed."""
    for path, choices in dice.sample(parts, dice.randrange(1, len(parts) + 1)):
        values = put(path, dice.choice(choices), values)
    return values


def shown(type: str, name: str) -> str:
    """As the engine heads what it says of a resource."""
    return f"{re.sub(r'/[^:]+:', ':', type)} ({name}):"


def converges(stack: Stack, refuse: Callable[[], None], healed: Callable[[], None]) -> None:
    refuse()
    failed = stack.up(check=False)
    healed()
    assert failed.exit_code, failed.text
    # Of the program's own exceptions; the engine ends what still runs by SIGINT, and Python then shows where it was.
    assert not any("Traceback" in text or "unhandled exception" in text for text in failed.diagnostics)
    made = {resource["urn"] for resource in stack.export()}
    there = {(resource["type"], resource["urn"].rpartition("::")[2]) for resource in stack.export()}
    begun = {(step.type, step.name) for step in failed.steps if step.op == "create"}
    refused = [name for type, name in begun - there if shown(type, name) in failed.text]
    assert refused, f"no create that failed is named: {failed.text}"
    healthy = stack.up()
    assert set(healthy.ops("same")) == {"create"}, "what was made is left alone"
    assert {resource["urn"] for resource in stack.export()} >= made
    stack.preview("--expect-no-changes")


@pytest.mark.parametrize("seed", range(COUNT))
def test_aws_refuses(tmp_path: Path, sandbox: Sandbox, seed: int) -> None:
    dice = random.Random(seed)
    region = "ap-southeast-2"
    values = put("aws.network.zones", [f"{region}a", f"{region}b"], environment("sandbox"))
    stack = Stack(
        tmp_path / "stack", sandbox, drawn(dice, put("aws.region", region, values), AWS_PARTS), stack="refused"
    )
    plan = {"operation": dice.choice(AWS), "kind": "denied", "count": 1}

    converges(stack, lambda: control(sandbox, "faults", plan), lambda: control(sandbox, "faults", {}, method="DELETE"))
    stack.destroy()


@soak_only
@pytest.mark.parametrize("seed", range(COUNT))
def test_google_refuses(tmp_path: Path, fake: Fake, provider: dict[str, str], seed: int) -> None:
    dice = random.Random(seed)
    values = environment("sandbox", cloud="gcp")
    # Without a cluster: there is no Kubernetes beside the fake.
    gone = ("cluster", "pools", "workloads", "accounts")
    values["gcp"] = {key: value for key, value in values["gcp"].items() if key not in gone}
    stack = Stack(tmp_path / "stack", Sandbox(fake.home, provider), drawn(dice, values, GOOGLE_PARTS), stack="refused")
    method = dice.choice(GOOGLE)
    converges(stack, lambda: fake.fault(method=method, code=403, message=f"{method} is refused"), fake.well)
    stack.destroy()

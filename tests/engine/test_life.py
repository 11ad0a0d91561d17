"""The project's own program through the real engine: from nothing to deployed, changed, and nothing again."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cloud import listing
from tests.support.engine import Result, Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

SPOT = "aws.environments.spot"


@pytest.fixture
def region() -> str:
    return "us-east-2"


def small(region: str) -> dict[str, Any]:
    """The sandbox's environment in a region of its own, so that a listing is of this stack alone."""
    values = put("aws.region", region, environment("sandbox"))
    return put("aws.network.zones", [f"{region}a", f"{region}b"], values)


def changes(result: Result) -> list[tuple[str, str, tuple[str, ...]]]:
    """What was done to resources of the cloud: operation, name, the paths that differ."""
    touched = [step for step in result.steps if step.type.startswith("aws:") and step.op != "same"]
    return [(step.op, step.name, step.diffs) for step in touched]


def test_from_nothing_to_nothing(tmp_path: Path, sandbox: Sandbox, region: str) -> None:
    before = listing(sandbox, region)
    stack = Stack(tmp_path / "life", sandbox, small(region), stack="life")

    planned = stack.preview()
    assert set(planned.ops()) == {"create"}
    assert listing(sandbox, region) == before, "a preview makes nothing"

    made = stack.up()
    assert made.ops() == planned.ops(), "an update makes what the preview showed"
    assert set(made.outputs["targets"]) == {"gpu"}

    # The state is what the program says and what the cloud has; desired vCPUs that Batch moved are no drift.
    batch = sandbox.client("batch", region)
    (name,) = [one["computeEnvironmentName"] for one in batch.describe_compute_environments()["computeEnvironments"]
               if one["computeEnvironmentName"].startswith("spot")]  # fmt: skip
    batch.update_compute_environment(computeEnvironment=name, computeResources={"desiredvCpus": 8})
    again = stack.up("--refresh", "--expect-no-changes")
    assert (again.ops("same", "refresh"), again.drift) == ({}, {})

    # In place: a limit.
    stack.write_environment(put(f"{SPOT}.max_vcpus", 128, small(region)))
    assert changes(stack.up()) == [
        ("update", "spot", ("computeResources.maxVcpus",)),
        ("update", "targets-gpu", ("value",)),
    ]

    # Replaced: the new one exists and the queue names it before the old one goes.
    wanted = put(f"{SPOT}.max_vcpus", 128, small(region))
    stack.write_environment(put("aws.environments.on-demand.allocation_strategy", "BEST_FIT", wanted))
    operations = [(op, name) for op, name, _ in changes(stack.up()) if name in ("on-demand", "gpu")]
    assert operations == [
        ("create-replacement", "on-demand"),
        ("replace", "on-demand"),
        ("update", "gpu"),
        ("delete-replaced", "on-demand"),
    ]
    assert len(batch.describe_compute_environments()["computeEnvironments"]) == 2

    gone = stack.destroy()
    assert set(gone.ops("same")) == {"delete"}
    assert listing(sandbox, region) == before


OTHERS = {
    "prod": ("us-west-2", {"aws.logs.retain_on_delete": False, "aws.claims.protect": False,
                           "aws.repositories.training.protect": False, "aws.code.protect": False}),
    "closed": ("eu-central-1", {"aws.network.egress": "endpoints", "aws.claims": None}),
}  # fmt: skip
"""Environments beside the sandbox's: what is changed of prod so that it can be destroyed, and one without a way out."""


@soak_only
@pytest.mark.slow
@pytest.mark.parametrize("name", ["prod", "closed"])
def test_every_environment_converges(tmp_path: Path, sandbox: Sandbox, name: str) -> None:
    region, changed = OTHERS[name]
    values = environment("prod") if name == "prod" else small(region)
    for path, value in changed.items():
        values = put(path, value, values)
    before = listing(sandbox, region)
    stack = Stack(tmp_path / name, sandbox, values, stack=name)
    stack.up()
    assert stack.up("--refresh", "--expect-no-changes").ops("same", "refresh") == {}
    assert set(stack.destroy().ops("same")) == {"delete"}
    assert listing(sandbox, region) == before


def test_messages_of_the_sdk_are_sent_when_asked_for(tmp_path: Path, sandbox: Sandbox, region: str) -> None:
    stack = Stack(tmp_path / "debug", sandbox, small(region), stack="debug")
    stack.variables["PULUMI_PYTHON_CMD"] = sys.executable  # the tests' forked programs send none

    def of_the_sdk() -> int:
        return stack.run("preview", "--debug").stdout.count("resource registration successful: ty=aws:")

    assert of_the_sdk() == 0
    stack.variables["ACCEL_SDK_DEBUG"] = "1"
    assert of_the_sdk() > 20


def test_bad_config_is_said_line_by_line(tmp_path: Path, sandbox: Sandbox, region: str) -> None:
    wrong = put(f"{SPOT}.max_vcpu", 4, put("aws.queues.gpu.environments", ["spto"], small(region)))
    refused = Stack(tmp_path / "wrong", sandbox, wrong, stack="wrong").preview(check=False)
    assert refused.exit_code == 1
    said = "\n".join(refused.diagnostics)
    assert f"environment.{SPOT}.max_vcpu: unknown key; did you mean max_vcpus?" in said
    assert "Traceback" not in refused.text


def test_a_definition_that_no_instance_holds_stops_the_preview(tmp_path: Path, sandbox: Sandbox, region: str) -> None:
    wrong = put("aws.definitions.examples.memory_mib", 60_000, small(region))
    for name in ("spot", "on-demand"):
        wrong = put(f"aws.environments.{name}.max_vcpus", 8, wrong)
    refused = Stack(tmp_path / "held", sandbox, wrong, stack="held").preview(check=False)
    assert refused.exit_code == 1 and not refused.steps
    said = "\n".join(refused.diagnostics)
    assert "environment.aws.definitions.examples.memory_mib: 2 vCPUs, 60000 MiB and 1 GPUs need an instance" in said
    assert "raise max_vcpus of spot to at least 16, or ask for at most 30000 MiB to fit g6.2xlarge" in said


@soak_only
def test_another_environment_stands_on_the_outputs(tmp_path: Path, sandbox: Sandbox) -> None:
    values = small("us-west-2")
    platform = Stack(tmp_path / "platform", sandbox, values, stack="platform")
    platform.up()
    try:
        # A second environment on the first one's network makes none of its own.
        team = put("aws.network", {"kind": "stack", "stack": "organization/accel/platform"}, values)
        guest = Stack(tmp_path / "guest", sandbox, team, stack="guest")
        assert not [step for step in guest.up().steps if step.type.startswith("aws:ec2/subnet")]
        guest.destroy()
    finally:
        platform.destroy()

"""`stacks quota` and `jobs` against the quotas of the sandbox's account."""

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.environment import project
from sandbox.keys import bearer
from tests.support.engine import Sandbox

from .conftest import Shell

G, G_SPOT = "L-DB2E81BA", "L-3819A6DF"


@pytest.fixture
def grant(sandbox: Sandbox) -> Iterator[Callable[..., None]]:
    """Sets limits of the sandbox's account by code; they are as before afterwards."""

    def call(**limits: int | None) -> None:
        body = json.dumps({code.replace("_", "-"): limit for code, limit in limits.items()}).encode()
        address = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/quotas"
        request = urllib.request.Request(address, body, bearer(sandbox.home), method="POST")  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            assert answer.status == 200

    yield call
    call(L_DB2E81BA=1024, L_3819A6DF=1024)


@pytest.fixture
def bare(sandbox: Sandbox, tmp_path: Path) -> Shell:
    """A user's shell before anything was deployed."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "PULUMI_", "ACCEL_"))}
    folders = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return Shell(project(), {**kept, **sandbox.variables, **folders, "PYTHONPATH": str(project())})


def verdicts(shell: Shell, code: int, *arguments: str) -> dict[str, Any]:
    """Of AWS's quotas; nobody answers for Google's here, which fails nothing."""
    rows = json.loads(shell.stacks("quota", "sandbox", "-o", "json", *arguments, code=code))
    found = {row["quota"]: row for row in rows}
    assert found["NVIDIA_L4_GPUS"]["verdict"] == "unknown" and found["NVIDIA_L4_GPUS"]["reason"]
    return {code: row for code, row in found.items() if row["service"] == "ec2"}


def test_a_quota_of_zero_is_red_before_anything_is_made(bare: Shell, grant: Callable[..., None]) -> None:
    found = verdicts(bare, 0)
    assert {code: row["verdict"] for code, row in found.items()} == {G: "ok", G_SPOT: "ok"}
    grant(L_3819A6DF=0)
    row = verdicts(bare, 5)[G_SPOT]
    assert (row["limit"], row["need"], row["verdict"]) == (0, 256 + 192, "over")
    text = bare.stacks("quota", "sandbox", "--request")
    assert f"quota_code='{G_SPOT}'" in text and "value=448," in text
    # Without a grant AWS's own default applies, which is 0.
    grant(L_3819A6DF=None)
    assert verdicts(bare, 5)[G_SPOT]["limit"] == 0


def test_what_runs_counts_once(bare: Shell, grant: Callable[..., None], sandbox: Sandbox) -> None:
    ec2 = sandbox.client("ec2")
    tags = [{"Key": "accel:project", "Value": "accel"}, {"Key": "accel:stack", "Value": "sandbox"}]
    own = {"TagSpecifications": [{"ResourceType": "instance", "Tags": tags}]}
    started = [
        ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, InstanceType="g5.4xlarge", **more)[
            "Instances"
        ]
        for more in (own, {})
    ]
    try:
        grant(L_DB2E81BA=96 + 192 + 16)
        row = verdicts(bare, 0)[G]
        assert (row["use"], row["own"], row["need"], row["total"]) == (32, 16, 288, 304)
        grant(L_DB2E81BA=96 + 192 + 15)
        assert verdicts(bare, 5)[G]["verdict"] == "over"
    finally:
        ec2.terminate_instances(InstanceIds=[each["InstanceId"] for group in started for each in group])
    assert verdicts(bare, 0)[G]["use"] == 0


def test_machines_that_are_only_planned(bare: Shell, grant: Callable[..., None]) -> None:
    arguments = ("quota", "--machine", "aws:g5.12xlarge:2", "--region", "us-east-1", "-o", "json")
    grant(L_DB2E81BA=96, L_3819A6DF=95)
    (row,) = json.loads(bare.stacks(*arguments))
    assert (row["quota"], row["need"], row["use"], row["total"]) == (G, 96, 0, 96)
    (row,) = json.loads(bare.stacks(*arguments, "--spot", code=5))
    assert (row["quota"], row["need"], row["verdict"]) == (G_SPOT, 96, "over")


def test_an_api_that_throttles_is_silent(bare: Shell, sandbox: Sandbox) -> None:
    address = f"{sandbox.variables['AWS_ENDPOINT_URL']}/sandbox-api/faults"
    plan = json.dumps({"operation": "GetServiceQuota", "kind": "reset", "count": 5}).encode()
    with urllib.request.urlopen(urllib.request.Request(address, plan, bearer(sandbox.home), method="POST")):  # noqa: S310
        bare.stacks("quota", "sandbox", code=9)
    verdicts(bare, 0)


def test_submit_says_that_the_job_cannot_start(shell: Shell, grant: Callable[..., None]) -> None:
    job = ["examples/jobs/digits.yaml", "--to", "gpu"]
    shell.jobs("validate", *job, "--strict")
    grant(L_3819A6DF=0, L_DB2E81BA=0)
    # The limits that were enough are kept for an hour; a user without them is told.
    other = {"XDG_CACHE_HOME": f"{shell.variables['XDG_CACHE_HOME']}-2"}
    lines = shell.fails("submit", *job, "--strict", code=5, **other)
    assert lines[0].startswith("error: quota: spot: g6.xlarge is the smallest type that holds the job")
    assert lines[1].startswith("hint: ask for more")
    shell.jobs("validate", *job, "--strict", "--no-quota", **other)

"""`jobs explain` as a user runs it, against the sandbox."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel.contract.targets import write
from sandbox import keys
from tests.jobs.backends.aws_batch_target import make_target
from tests.support import commands

ROOT = Path(__file__).parents[2]
Shell = Callable[..., tuple[str, str]]


@pytest.fixture
def shell(aws: Any, tmp_path: Path) -> Shell:
    """Runs `jobs`; what it printed on stdout and on stderr."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ACCEL_"))}
    folders = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    reach = {"AWS_ENDPOINT_URL": aws.told["url"], **keys.aws(keys.key(aws.home))}
    environ = {**kept, **folders, **reach, "PYTHONPATH": str(ROOT)}

    def call(*arguments: str, code: int = 0) -> tuple[str, str]:
        done = commands.run("jobs", *arguments, cwd=tmp_path, env=environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout, done.stderr

    return call


def test_three_short_parts(aws: Any, shell: Shell, queue: str) -> None:
    job = aws.submit(queue, aws.definition(["sh", "-c", "echo epoch 1; echo no data; exit 3"]))
    aws.ended(job)
    ref = f"aws-batch:us-east-1/{job}"
    assert shell("explain", ref)[0].splitlines() == [
        "why       the command ended by itself with exit code 3 (exit-code)",
        "evidence  epoch 1",
        "          no data",
        f"next      the last lines are the program's own words; `accel-jobs logs {ref}` shows them all",
    ]
    row = json.loads(shell("explain", ref, "-o", "json")[0])
    assert list(row) == ["ref", "cause", "reason", "evidence", "next_step", "not_read"]
    assert (row["ref"], row["cause"], row["evidence"], row["not_read"]) == (
        ref,
        "exit-code",
        ["epoch 1", "no data"],
        [],
    )
    assert json.loads(shell("explain", ref, "-o", "jsonl")[0]) == row
    assert shell("explain", ref, "-o", "id")[0] == "exit-code\n"


def test_what_may_not_be_read_is_a_part_too(aws: Any, shell: Shell) -> None:
    name = aws.environment(instanceTypes=["g5.xlarge"])
    aws.control("faults", kind="unregistered", environments=[name])
    job = aws.submit(aws.queue(name), aws.definition(["true"], gpu=1))
    aws.reaches(job, "RUNNABLE")
    aws.control("faults", operation="DescribeScalingActivities", kind="denied")
    out = shell("explain", f"aws-batch:us-east-1/{job}")[0].splitlines()
    aws.control("faults", "DELETE")
    assert out[-1].startswith("not read  autoscaling:DescribeScalingActivities: ")
    assert "AccessDeniedException" in out[-1]


def test_a_job_of_another_region_is_found_by_the_targets(aws: Any, shell: Shell, queue: str, tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(write({"gpu": make_target()})))
    job = aws.submit(queue, aws.definition(["true"]))
    out, _ = shell("explain", f"aws-batch:eu-west-1/{job}", "--targets", str(path))
    assert out.startswith("why       the job is in us-east-1, not in eu-west-1 (wrong-region)")
    out, err = shell("explain", f"aws-batch:eu-west-1/{job}", "--targets", str(tmp_path / "none.json"))
    assert out.startswith("why       AWS Batch in eu-west-1 knows no job")
    assert "jobs in other regions are not looked for" in err


def test_a_job_that_is_nowhere_is_asked_for_in_regions_of_its_own_cloud(aws: Any, shell: Shell, tmp_path: Path) -> None:
    google = {"kind": "vertex", "project": "p", "region": "us-central1", "bucket": "b", "service_account": "a@b.c"}
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(write({"gpu": make_target()}) | {"vertex": google}))
    out, err = shell("explain", "aws-batch:eu-west-1/0b9d5d29-7f5c-4a3b-9b5d-0123456789ab", "--targets", str(path))
    assert "us-east-1: no such job" in out and "us-central1" not in out + err
    assert "(unknown-job)" in out


def test_bad_references(aws: Any, shell: Shell) -> None:
    _, err = shell("explain", "aws-bach:us-east-1/x", code=2)
    assert err.startswith("error: job reference ") and "aws-batch" in err
    shell("explain", code=2)
    aws.control("faults", operation="DescribeJobs", kind="denied")
    _, err = shell("explain", "aws-batch:us-east-1/x", code=4)
    assert err.splitlines()[0].startswith("error: DescribeJobs: AccessDeniedException")

"""`stacks report` over real previews: the jobs that a change ends are named, and secrets are not."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.environment import project
from tests.engine.test_replacement import described, end_jobs, wait
from tests.support import commands
from tests.support.engine import Engine, Sandbox
from tests.support.project import Stack, environment, put
from tests.support.soak import soak_only

REGION = "eu-central-1"


def small(types: str = "g5", **queue: Any) -> dict[str, Any]:
    """The sandbox's environment with two that AWS cannot update in place, each with a queue of its own: `fast` ends its
    jobs before it goes, `slow` waits for them. `queue`: fields of the first queue."""
    values = put("aws.region", REGION, environment("sandbox"))
    values = put("aws.network.zones", [f"{REGION}a"], values)
    section = values["aws"]
    common = {**section["environments"].pop("on-demand"), "allocation_strategy": "BEST_FIT", "instance_types": [types]}
    section["environments"] = {
        "fast": {**common, "drain": {"jobs": "terminate"}},
        "slow": {**common, "drain": {"jobs": "wait"}},
    }
    (first,) = section["queues"].values()
    section["queues"] = {name: {**first, "environments": [name]} for name in section["environments"]}
    section["queues"]["fast"] |= queue
    return values


@pytest.fixture(scope="module")
def batch(sandbox: Sandbox) -> Any:
    return sandbox.client("batch", REGION)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, batch: Any) -> Iterator[Stack]:
    """Deployed; the tests change its file only, never what is there."""
    made = Stack(tmp_path_factory.mktemp("report"), sandbox, small(), stack="reported")
    made.up()
    yield made
    end_jobs(batch)
    made.write_environment(small())
    made.destroy()


def report(engine: Engine, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return commands.run(
        "stacks", "report", engine.stack, *arguments, cwd=engine.folder, env={**engine.variables, **variables}
    )


def submit(batch: Any, stack: Stack, name: str, queue: str) -> str:
    """A job that lasts."""
    target = stack.outputs()["targets"][queue]
    job: str = batch.submit_job(
        jobName=name,
        jobQueue=target["queue_arn"],
        jobDefinition=target["definitions"]["examples"]["arn"],
        containerOverrides={"command": ["sleep", "600"]},
    )["jobId"]
    return job


@pytest.fixture
def running(stack: Stack, batch: Any) -> Iterator[dict[str, str]]:
    """A job in each queue, by name."""
    jobs = {
        name: submit(batch, stack, name, queue) for name, queue in (("pretraining", "fast"), ("evaluation", "slow"))
    }
    for job in jobs.values():
        wait(lambda job=job: described(batch, job)["status"] == "RUNNING")
    yield jobs
    end_jobs(batch)


@soak_only
def test_a_change_of_idle_environments_names_no_job(stack: Stack) -> None:
    stack.write_environment(small("g6"))
    idle = report(stack, "--fail-on", "kills-jobs,waits-for-jobs")
    assert idle.returncode == 0, idle.stdout + idle.stderr
    assert "No job waits or runs on what changes." in idle.stdout
    assert "GPU-hours" not in idle.stdout


def test_the_same_change_names_the_jobs_and_their_hours(stack: Stack, running: dict[str, str], tmp_path: Path) -> None:
    """What each environment says now decides whether the deployment waits, not what it shall say."""
    stack.write_environment(put("aws.environments.slow.drain", {"jobs": "terminate"}, small("g6")))
    busy = report(stack, "--fail-on", "kills-jobs,cost>100000", "--save", str(tmp_path))
    found = json.loads((tmp_path / "report.json").read_text())
    assert busy.returncode == 5, busy.stderr
    assert "kills-jobs: jobs: pretraining\n" in busy.stderr
    assert (tmp_path / "report.md").read_text() == busy.stdout
    assert "#### Jobs that end" in busy.stdout
    assert "#### Jobs that the deployment waits for" in busy.stdout and "at most 360 min" in busy.stdout
    assert f"pretraining (aws-batch:{REGION}/{running['pretraining']})" in busy.stdout
    assert "GPU-hours of work until now" in busy.stdout
    ended, waited = found["jobs"]["hit"]
    assert (ended["accelerators"], ended["unit"], ended["fate"], ended["resources"]) == (1, "GPU", "ends", ["fast"])
    assert (waited["name"], waited["fate"], waited["resources"]) == ("evaluation", "waits", ["slow"])
    assert 0 <= ended["hours"] < 1
    assert found["cost"]["before"]["worst"]["usd_hour"] > found["cost"]["after"]["worst"]["usd_hour"] > 0
    assert found["quota"]["rows"]
    assert [each["limit"] for each in found["fails"]] == ["kills-jobs"]


def test_a_queue_that_goes_takes_its_jobs_along(stack: Stack, running: dict[str, str]) -> None:
    stack.write_environment(small(fair_share={"shares": {"a": 1.0}}))
    found = json.loads(report(stack, "-o", "json").stdout)
    (hit,) = found["jobs"]["hit"]
    assert (hit["name"], hit["fate"], hit["resources"]) == ("pretraining", "ends", ["fast"])


def test_nothing_is_one_line(stack: Stack) -> None:
    stack.write_environment(small())
    done = report(stack, "--fail-on", "kills-jobs,replace-stateful")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "**reported**: nothing changes. <!-- accel-report:accel/reported -->\n"


def test_what_is_deleted_for_good_comes_first(stack: Stack) -> None:
    values = small()
    values["aws"].pop("repositories")
    values["aws"]["claims"] = None
    stack.write_environment(put("aws.definitions.examples.image", "local/other", values))
    done = report(stack, "--fail-on", "replace-stateful")
    assert done.returncode == 5
    lines = done.stdout.splitlines()
    assert lines.index("#### Lost for good") < lines.index("#### Cost, USD an hour")
    assert any(line.startswith("| deleted | training | aws:ecr/repository:Repository |") for line in lines)
    assert any(line.startswith("| deleted | claims | aws:dynamodb/table:Table |") for line in lines)
    assert "| examples | image | local/examples | local/other |" in lines


def test_a_preview_that_failed_is_told_as_such(stack: Stack, tmp_path: Path) -> None:
    stack.write_environment(put("aws.environments.fast.instance_types", ["x9x"], small()))
    done = report(stack)
    assert done.returncode == 1
    assert "error: the preview of reported failed with 2 errors" in done.stderr
    assert "**The preview failed." in done.stdout
    assert "which is no GPU type of the catalogue" in done.stdout
    kept = stack.run("preview", "--json", "--stack", stack.stack, check=False).stdout
    (tmp_path / "half.json").write_text(kept[: len(kept) // 2])
    half = report(stack, "--preview", str(tmp_path / "half.json"))
    assert half.returncode == 2
    assert "is no JSON, or not all of it" in half.stderr
    missing = report(stack, "--config-file", "none.yaml")
    assert (missing.returncode, missing.stderr) == (6, "error: none.yaml: no such file\n")


SECRETS = [f"planted-{number:02}-qZ8vTr4L" for number in range(20)]
PROGRAM = """
import os
import pulumi
import pulumi_aws as aws

config = pulumi.Config()
secret = config.require_secret("password")
aws.ssm.Parameter("one", type="SecureString", value=secret)
aws.ssm.Parameter("two", type="SecureString", value=pulumi.Output.secret({s[2]!r}))
aws.ssm.Parameter("three", type="String", value={s[3]!r}, tags={{"note": {s[4]!r}}})
aws.sns.Topic("four", display_name={s[5]!r})
aws.batch.JobDefinition("five", type="container", container_properties='''{{"image": "{s[17]}x/busybox",
  "command": ["{s[6]}"], "environment": [{{"name": "KEY", "value": "{s[7]}"}}],
  "resourceRequirements": [{{"type": "VCPU", "value": "1"}}, {{"type": "MEMORY", "value": "64"}}]}}''')
pulumi.export("six", pulumi.Output.secret({s[8]!r}))
pulumi.export("seven", {s[9]!r})
pulumi.log.warn("cannot reach https://user:{s[10]}@example.com/")
pulumi.log.warn("password={s[11]}")
pulumi.log.warn("Authorization: Bearer {s[12]}")
pulumi.log.warn("the variable is " + os.environ["DEPLOY_TOKEN"])
pulumi.log.warn("first line\\nsecond line {s[14]}")
pulumi.log.info("info {s[15]}")
print("printed {s[16]}")
{raises}
"""


def test_no_secret_is_in_any_output(engine: Engine, tmp_path: Path) -> None:
    variables = {"DEPLOY_TOKEN": SECRETS[13], "PULUMI_CONFIG_PASSPHRASE": SECRETS[18]}
    engine.variables |= variables
    engine.run("stack", "rm", "--yes", "--force", engine.stack)
    engine.run("stack", "select", "--create", engine.stack, "--secrets-provider", "passphrase")
    engine.run("config", "set", "--secret", "password", SECRETS[0], "--stack", engine.stack)
    engine.run("config", "set", "aws:region", "us-east-1", "--stack", engine.stack)
    outputs: list[str] = []

    def collect(done: subprocess.CompletedProcess[str], folder: Path) -> str:
        outputs.extend([done.stdout, done.stderr, *(path.read_text() for path in folder.iterdir())])
        return done.stdout

    engine.write(PROGRAM.format(s=SECRETS, raises=""))
    kept = engine.run("preview", "--json", "--stack", engine.stack).stdout
    assert SECRETS[6] in kept, "the preview itself has what is no secret to Pulumi"
    (tmp_path / "kept.json").write_text(kept)
    read = report(engine, "--preview", str(tmp_path / "kept.json"), "--offline", "--save", str(tmp_path / "read"))
    assert "cannot reach https" in collect(read, tmp_path / "read"), "warnings are shown at all"
    refused = report(engine, "-o", "json", "--fail-on", "quota", "--offline", "--save", str(tmp_path / "refused"))
    assert refused.returncode == 5, refused.stderr
    collect(refused, tmp_path / "refused")
    engine.write(PROGRAM.format(s=SECRETS, raises=f'raise RuntimeError("no login with {SECRETS[19]} {SECRETS[1]}")'))
    failed = tmp_path / "failed"
    debugged = subprocess.run(
        [sys.executable, "-m", "stacks", "--debug", "report", engine.stack, "--offline", "--save", str(failed)],
        cwd=engine.folder,
        env={**engine.variables, "PYTHONPATH": str(project())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the program failed: RuntimeError" in collect(debugged, failed)
    assert debugged.returncode == 1
    found = [secret for secret in SECRETS if any(secret in text for text in outputs)]
    assert found == []

"""The policy pack as the real engine runs it: on previews and updates, advisory and mandatory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.environment import project
from tests.support.engine import Engine, Result, Sandbox
from tests.support.project import Stack, environment
from tests.support.soak import soak_only

pytestmark = pytest.mark.engine
PACK = project() / "policy"

PROGRAM = """
import pulumi
import pulumi_aws as aws

role = aws.iam.Role("role", assume_role_policy="{}")
aws.ec2.LaunchTemplate("open", image_id="ami-1")
aws.iam.RolePolicy("wide", role=role.id, policy=role.arn.apply(
    lambda arn: '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "%s"}]}' % arn
))
"""


def pack(config: Path) -> list[str]:
    return ["--policy-pack", str(PACK), "--policy-pack-config", str(config)]


def violations(engine: Engine) -> list[dict[str, Any]]:
    """What the last command's event log says of policies."""
    events = [json.loads(line) for line in (engine.folder / "events.json").read_text().splitlines()]
    return [event["policyEvent"] for event in events if event.get("policyEvent")]


def told(engine: Engine) -> set[tuple[str, str, str]]:
    """Policy, resource and level of each violation."""
    return {
        (each["policyName"], each["resourceUrn"].rpartition("::")[2], each["enforcementLevel"])
        for each in violations(engine)
    }


def passed(engine: Engine, name: str) -> set[str]:
    """The policies that the last command's event log says a resource passed: not those that could not be told."""
    events = [json.loads(line) for line in (engine.folder / "events.json").read_text().splitlines()]
    summaries = [event["policyAnalyzeSummaryEvent"] for event in events if event.get("policyAnalyzeSummaryEvent")]
    (own,) = [each for each in summaries if each["resourceUrn"].endswith(f"::{name}")]
    return set(own["passed"])


def written(folder: Path, **config: Any) -> Path:
    path = folder / "levels.json"
    path.write_text(json.dumps(config))
    return path


def test_mandatory_refuses_the_preview_and_what_an_update_learns(engine: Engine, tmp_path: Path) -> None:
    engine.write(PROGRAM)
    assert engine.preview(*pack(written(tmp_path, all="mandatory")), check=False).exit_code != 0
    assert {("imdsv2", "open", "mandatory"), ("disks-encrypted", "open", "mandatory")} <= told(engine)
    # What the role's ARN will be is not known: the policy is asked when it is.
    assert "no-wildcard-iam" not in {name for name, _, _ in told(engine)} | passed(engine, "wide")
    assert "no-wildcard-iam" in passed(engine, "role")
    # What a config does not name advises.
    few = written(tmp_path, **{"no-wildcard-iam": "mandatory", "disks-encrypted": "disabled"})
    assert engine.up(*pack(few), check=False).exit_code != 0
    found = {each for each in told(engine) if each[0] != "cost-labels"}
    assert found == {
        ("no-wildcard-iam", "wide", "mandatory"),
        ("pass-role-by-arn", "wide", "advisory"),
        ("imdsv2", "open", "advisory"),
    }
    (said,) = [each["message"] for each in violations(engine) if each["policyName"] == "imdsv2"]
    assert "metadataOptions.httpTokens is not required" in said and "httpPutResponseHopLimit 1" in said
    # Refused before it is made.
    assert "wide" not in {each["urn"].rpartition("::")[2] for each in engine.export()}


@soak_only
def test_a_wrong_config_is_refused_by_the_engine(engine: Engine, tmp_path: Path) -> None:
    wrong = written(tmp_path, **{"log-retention": {"least_days": "many"}})
    refused: Result = engine.write("").preview(*pack(wrong), check=False)
    assert refused.exit_code != 0 and "least_days" in refused.text


def test_an_environment_passes_whole_but_for_a_maximum(tmp_path: Path, sandbox: Sandbox) -> None:
    few = {**json.loads((PACK / "dev.json").read_text())}
    few["accelerators-maximum"] = {"enforcementLevel": "mandatory", "most": 8}
    own = Stack(tmp_path / "dev", sandbox, environment("dev"), stack="dev")
    assert own.preview(*pack(written(tmp_path, **few)), check=False).exit_code != 0
    (said,) = violations(own)
    assert (said["policyName"], said["enforcementLevel"]) == ("accelerators-maximum", "mandatory")
    assert "GPUs and TPU chips, more than 8: spot " in said["message"]


@soak_only
@pytest.mark.parametrize("stack, using", [("dev", "dev"), ("prod", "prod")])
def test_an_environment_passes_on_the_engine_as_without_it(
    tmp_path: Path, sandbox: Sandbox, stack: str, using: str
) -> None:
    config = PACK / f"{using}.json"
    own = Stack(tmp_path / stack, sandbox, environment(stack), stack=stack)
    own.preview(*pack(config))
    assert told(own) == set()
    preview = own.run("preview", "--json", "--show-sames", "--stack", stack).stdout
    command = [sys.executable, "-m", "policy", "check", "--config", str(config), "-o", "json"]
    done = subprocess.run(command, input=preview, cwd=project(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["findings"] == []

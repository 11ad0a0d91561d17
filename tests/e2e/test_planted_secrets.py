"""Twenty secrets where people put them, and nowhere in what the commands say: words, JSON, dry runs, traces."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sandbox.environment import project

PLANTED = [f"pLaNtEd{number:02}qZ8vTr4Lx" for number in range(20)]
"""Not one beginning with what a known kind of secret begins with: it has to be the place that hides it."""

IN_ENVIRONMENT = dict(
    zip(
        (
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "PULUMI_CONFIG_PASSPHRASE",
            "PULUMI_ACCESS_TOKEN",
            "CLOUDSDK_AUTH_ACCESS_TOKEN",
            "GITHUB_TOKEN",
            "WANDB_API_KEY",
        ),
        PLANTED,
        strict=False,
    )
)
PROXY = f"http://me:{PLANTED[7]}@127.0.0.1:9"

JOB = f"""\
name: planted
image: local/examples
command: [python, -c, "print('done')"]
env:
  HF_TOKEN: {PLANTED[8]}
  DB_PASSWORD: {PLANTED[9]}
"""
WRONG_JOB = f"""\
name: planted
image: local/examples
command: [python, --password, {PLANTED[10]}, 3]
env:
  COUNT: [{PLANTED[11]}]
secrets:
  KEY: {PLANTED[12]}
passwd: {PLANTED[13]}
"""
WRONG_STACK = f"""\
config:
  other:token: {PLANTED[14]}
  accel:environment:
    owner: ml
    api_token: {PLANTED[15]}
    aws:
      region: us-east-1
      network: {{kind: create, zones: [us-east-1a]}}
      environments:
        spot: {{capacity: spot, instance_types: [g5], max_vcpus: 8}}
      queues:
        gpu: {{environments: [spot]}}
      definitions:
        train:
          image: repo/train:1
          vcpus: 1
          memory_mib: 1024
          secrets: {{KEY: {PLANTED[16]}}}
"""
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": f'"{PLANTED[17]}"'}
RESOURCES = [
    {
        "type": kind,
        "urn": f"urn:pulumi:dev::accel::{kind}::{name}",
        "inputs": inputs,
        "outputs": {"token": PLANTED[18]},
    }
    for kind, name, inputs in (
        ("aws:cloudwatch/logGroup:LogGroup", "jobs", {"retentionInDays": SECRET, "tags": {"a": SECRET}}),
        ("aws:ec2/launchTemplate:LaunchTemplate", "spot", {"userData": PLANTED[19], "metadataOptions": SECRET}),
        ("aws:batch/jobDefinition:JobDefinition", "train", {"containerProperties": SECRET}),
        ("aws:iam/policy:Policy", "submit", {"policy": SECRET}),
    )
]
STATE = {"deployment": {"resources": RESOURCES}}
PREVIEW = {
    "config": {"other:token": PLANTED[14]},
    "steps": [
        {
            "op": "replace",
            "urn": each["urn"],
            "oldState": {**each, "id": "was"},
            "newState": {**each, "inputs": {"token": PLANTED[18]}},
            "detailedDiff": {"token": {"kind": "update-replace"}},
            "replaceReasons": ["token"],
        }
        for each in RESOURCES
    ],
    "diagnostics": [
        {"severity": "error", "message": f"cannot reach {PROXY}: password={PLANTED[9]}, API_TOKEN: {PLANTED[15]}"},
        {"severity": "warning", "message": f'the answer was {{"secret": "{PLANTED[17]}"}}'},
    ],
}
TARGETS = {"here": {"kind": "local", "schema": 1, "root": str(project())}}

COMMANDS: list[tuple[str, ...]] = [
    ("jobs", "validate", "job.yaml"),
    ("jobs", "validate", "wrong.yaml", "--debug"),
    ("jobs", "submit", "job.yaml", "--to", "here", "--dry-run"),
    ("jobs", "submit", "wrong.yaml", "--to", "here", "--debug"),
    ("jobs", "submit", "job.yaml", "--to", "here", "--wait"),
    ("jobs", "submit", "job.yaml", "--to", "here", "-o", "json", "--key", "again"),
    ("jobs", "ls", "-o", "json"),
    ("jobs", "cost", "job.yaml"),
    ("jobs", "doctor"),
    ("jobs", "ls", "--targets", "ssm:us-east-1/accel/dev/targets", "--debug"),
    ("stacks", "validate", "Pulumi.wrong.yaml", "--debug"),
    ("stacks", "cost", "Pulumi.wrong.yaml"),
    ("stacks", "export", "--stack", "dev"),
    ("policy", "check", "state.json"),
    ("policy", "check", "state.json", "-o", "json"),
    ("policy", "check", "Pulumi.wrong.yaml", "--debug"),
    ("policy", "check", "preview.json"),
    ("stacks", "report", "dev", "--preview", "preview.json", "--offline"),
    ("stacks", "report", "dev", "--preview", "preview.json", "--offline", "-o", "json", "--debug"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    texts = {"job.yaml": JOB, "wrong.yaml": WRONG_JOB, "Pulumi.wrong.yaml": WRONG_STACK}
    documents = {"state.json": STATE, "preview.json": PREVIEW, "targets.json": TARGETS}
    texts |= {name: json.dumps(document) for name, document in documents.items()}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def said(folder: Path, command: tuple[str, ...]) -> str:
    """Everything that the command printed."""
    variables: dict[str, Any] = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PULUMI_"))},
        **IN_ENVIRONMENT,
        "AWS_ACCESS_KEY_ID": "planted",
        "HTTPS_PROXY": PROXY,
        "HTTP_PROXY": PROXY,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "ACCEL_TARGETS": str(folder / "targets.json"),
        "PYTHONPATH": str(project()),
    }
    module, *rest = command
    run = [sys.executable, "-m", module, *rest]
    done = subprocess.run(run, cwd=folder, env=variables, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_all_twenty_are_planted() -> None:
    everywhere = "".join([*IN_ENVIRONMENT.values(), PROXY, JOB, WRONG_JOB, WRONG_STACK, json.dumps(STATE)])
    assert [value for value in PLANTED if value not in everywhere] == []


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_says_one(folder: Path, command: tuple[str, ...]) -> None:
    told = said(folder, command)
    assert told  # a command that says nothing hides nothing
    assert [value for value in PLANTED if value in told] == []

"""A SubmitJob request as a job file, and back to an equal request."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from accel.contract.targets import write
from accel.diagnostics.errors import BadInput
from jobs.backends.aws_batch import retries
from jobs.backends.base import Request
from jobs.importers.aws_batch import fitted, imported
from jobs.model.document import parse
from jobs.model.job import Job
from tests.jobs.backends.aws_batch_target import make_target
from tests.jobs.backends.test_aws_batch_render import JOBS, render

TARGET = make_target(shares={"research": 0.5})

GIVEN: dict[str, Any] = {
    "jobName": "training-run-001",
    "jobQueue": "gpu",
    "jobDefinition": "train:3",
    "containerOverrides": {
        "command": ["python3", "train.py"],
        "environment": [
            {"name": "EPOCHS", "value": "50"},
            {"name": "BATCH_SIZE", "value": "64"},
            {"name": "LEARNING_RATE", "value": "0.001"},
            {"name": "S3_DATA_PATH", "value": "s3://data/train"},
        ],
        "resourceRequirements": [
            {"type": "GPU", "value": "1"},
            {"type": "MEMORY", "value": "30000"},
            {"type": "VCPU", "value": "8"},
        ],
    },
    "arrayProperties": {"size": 4},
    "dependsOn": [{"jobId": "0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"}],
    "retryStrategy": {"attempts": 3},
    "timeout": {"attemptDurationSeconds": 14_400},
    "shareIdentifier": "research",
    "schedulingPriorityOverride": 7,
    "tags": {"team": "vision"},
}


def fields_of(request: dict[str, Any]) -> dict[str, Any]:
    found = imported(copy.deepcopy(request))
    fitted(found, {"gpu": TARGET})
    return found.values


def test_what_a_request_says_is_what_the_job_asks_for() -> None:
    submit = render(TARGET, **fields_of(GIVEN)).body["submit"]
    overrides, asked = submit["containerOverrides"], GIVEN["containerOverrides"]
    assert submit["jobName"].startswith("training-run-001-")
    assert submit["jobQueue"].endswith("/gpu") and submit["jobDefinition"].endswith("/train")
    assert (overrides["command"], overrides["resourceRequirements"]) == (
        asked["command"],
        asked["resourceRequirements"],
    )
    assert all(one in overrides["environment"] for one in asked["environment"])
    same = ("arrayProperties", "dependsOn", "timeout", "shareIdentifier", "schedulingPriorityOverride")
    assert {name: submit[name] for name in same} == {name: GIVEN[name] for name in same}
    assert submit["retryStrategy"]["attempts"] == 3
    assert submit["tags"] | GIVEN["tags"] == submit["tags"]


def render_of(case: str) -> Request:
    shared = "share_identifier" in JOBS[case].get("aws_batch", {})
    return render(TARGET if shared else None, **JOBS[case])


@pytest.mark.parametrize("case", [case for case in JOBS if render_of(case).body["register"] is None])
def test_our_own_request_comes_back_equal(case: str) -> None:
    submit = render_of(case).body["submit"]
    found = imported({**copy.deepcopy(submit), "jobName": "digits"})
    assert fitted(found, {"gpu": make_target()}) == "gpu"
    assert all(note.endswith("is set by the platform") or "kept for AWS" in note for note in found.notes)
    assert render(TARGET if "shareIdentifier" in submit else None, **found.values).body["submit"] == submit


SPOT_ONLY = [{"action": "retry", "onStatusReason": "Host EC2*"}, {"action": "exit", "onReason": "*"}]


@pytest.mark.parametrize(
    "strategy, fields",
    [
        ({"attempts": 3}, {"retries": 2}),
        ({"attempts": 1}, {"retries": 0}),
        (retries.any_failure(2), {"retries": 2}),
        (retries.infrastructure_only(4), {"lost_retries": 3}),
        (retries.failures_only(2), {"retries": 2, "lost_retries": 0}),
        ({"attempts": 5, "evaluateOnExit": SPOT_ONLY}, {"lost_retries": 4}),
    ],
)
def test_retries(strategy: dict[str, Any], fields: dict[str, int]) -> None:
    found = imported({"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", "retryStrategy": strategy})
    assert {name: found.values[name] for name in found.values if "retries" in name} == fields


@pytest.mark.parametrize(
    "changed, note",
    [
        ({"parameters": {"epochs": "5"}}, "the definition's command says Ref::epochs"),
        ({"propagateTags": True}, "propagateTags: is true"),
        ({"jobDefinition": "train:3"}, "jobDefinition: revision 3 is not carried"),
        ({"dependsOn": [{"type": "LATER", "jobId": "j"}]}, "dependsOn[0]: is "),
        ({"dependsOn": [{"type": "N_TO_N"}]}, "dependsOn[0]: is "),
        ({"nodeOverrides": {"numNodes": 2}}, "nodeOverrides: has no counterpart"),
        ({"containerOverrides": {"instanceType": "g5.xlarge"}}, "containerOverrides.instanceType: is 'g5.xlarge'"),
        ({"containerOverrides": {"environment": [{"name": "AWS_BATCH_X", "value": "1"}]}}, "is set by the platform"),
        ({"retryStrategy": {"attempts": 2, "evaluateOnExit": [{"action": "RETRY", "onReason": "*"}]}}, "retries: 1"),
        ({"tags": {"aws:x": "1"}}, "tags.aws:x: is kept for AWS and accel"),
        ({"jobName": "n" * 128}, "jobName: cut to 100 characters"),
    ],
)  # fmt: skip
def test_what_is_not_carried_is_said(changed: dict[str, Any], note: str) -> None:
    found = imported({"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", **changed})
    assert [one for one in found.notes if note in one], found.notes
    Job(**found.values)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"jobName": None}, "jobName: must be a name, is empty"),
        ({"containerOverrides": []}, ""),
        ({"containerOverrides": "x"}, "containerOverrides: must be an object, is 'x'"),
        ({"tags": ["x"]}, "tags: must be an object"),
        ({"dependsOn": [1]}, "dependsOn[0]: must be an object, is 1"),
        ({"retryStrategy": {"attempts": "x"}}, "retryStrategy.attempts: must be an integer"),
    ],
)
def test_what_is_no_request(changed: dict[str, Any], message: str) -> None:
    request = {"jobName": "n", "jobQueue": "gpu", "jobDefinition": "train", **changed}
    if not message:
        imported(request)
        return
    with pytest.raises(BadInput) as caught:
        imported(request)
    assert message in caught.value.message


def test_the_command(home: Path, invoke: Callable[..., Result]) -> None:
    Path("submit.json").write_text(json.dumps(GIVEN))
    Path("targets.json").write_text(json.dumps(write({"gpu-a": TARGET})))
    done = invoke("import", "aws-batch", "submit.json", "--targets", "targets.json")
    assert done.exit_code == 0
    assert "queue gpu: submit it with --to gpu-a" in done.stderr
    assert "warning: submit.json: jobDefinition: revision 3" in done.stderr
    assert parse(done.stdout.encode(), "job").job() == Job(**fields_of(GIVEN))
    Path("job.yaml").write_text(done.stdout)
    assert invoke("validate", "job.yaml", "--to", "gpu-a", "--no-quota", "--targets", "targets.json").exit_code == 0
    as_json = invoke("import", "aws-batch", "-", "-o", "json", text=json.dumps(GIVEN))
    assert json.loads(as_json.stdout)["env"]["EPOCHS"] == "50"
    assert "no known target has it" in as_json.stderr
    assert invoke("import", "aws-batch", "submit.json", "--strict").exit_code == 2


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "bad.json: line 1: is not JSON"),
        ("[]", "bad.json: must be one SubmitJob request"),
        ('{"jobName": "a/b", "jobQueue": "q", "jobDefinition": "d"}', "bad.json: name: "),
        ('{"jobName": "a", "jobQueue": "q", "jobDefinition": "d", "arrayProperties": {"size": -1}}', "tasks: must be"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(home: Path, invoke: Callable[..., Result], text: str, message: str) -> None:
    Path("bad.json").write_text(text)
    done = invoke("import", "aws-batch", "bad.json")
    assert done.exit_code == 2 and message in done.stderr and done.stdout == ""
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1

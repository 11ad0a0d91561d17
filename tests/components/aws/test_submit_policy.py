"""What the submit policy allows, and what it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.laws import components as make
from tests.support import memory
from tests.support.golden import check_golden
from tests.support.iam import Ask, allows

GOLDEN = Path(__file__).parents[2] / "golden" / "submit_policy.json"
BATCH = "arn:aws:batch:us-east-1:111122223333"
ROLE = "arn:aws:iam::111122223333:role/job"
TRAIN = f"{BATCH}:job-definition/train-0000000"
OWN = f"{BATCH}:job-definition/accel-dev-0123456789ab"
PASSED = {"iam:PassedToService": "ecs-tasks.amazonaws.com"}
OURS = {"aws:ResourceTag/accel:key": "k", "aws:ResourceTag/accel:job-stack": "accel-dev"}
THEIRS = {"aws:ResourceTag/accel:key": "k", "aws:ResourceTag/accel:job-stack": "accel-prod"}
SUBMITTED = {"aws:RequestTag/accel:key": "k", "aws:RequestTag/accel:job-stack": "accel-dev"}
CLAIM = {"dynamodb:LeadingKeys": "0f3c" * 16}
STOP = {"dynamodb:LeadingKeys": "accel-budget-stop"}
PLAIN, PRIVILEGED = {"batch:Privileged": "false"}, {"batch:Privileged": "true"}
JOB = f"{BATCH}:job/0f3c2a1b-4d5e-4f60-8a7b-9c0d1e2f3a4b"
PUBLISHED = "arn:aws:ssm:us-east-1:111122223333:parameter/accel/dev/targets"
CODE = "arn:aws:s3:::code-1a2b3c4"
TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/claims"
GROUP = "arn:aws:logs:us-east-1:111122223333:log-group:jobs"
STREAM = f"{GROUP}:log-stream:train/default/1"

MAX = 6144
"""Characters of a policy, white space not counted.
Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""


def documents(name: str = "dev", **values: Any) -> list[dict[str, Any]]:
    seen = memory.run(lambda: make.submit_policy(name, **values))
    return [json.loads(one.inputs["policy"]) for one in seen.of("iam/policy:Policy")]


def test_golden() -> None:
    (document,) = documents()
    check_golden(GOLDEN, document, sort_keys=False)


ALLOWED = [
    ("batch:SubmitJob", make.QUEUE, {}),
    ("batch:SubmitJob", TRAIN, {}),
    ("batch:SubmitJob", f"{TRAIN}:7", {}),
    ("batch:SubmitJob", OWN, {}),
    ("batch:SubmitJob", f"{OWN}:1", {}),
    ("batch:SubmitJob", JOB, {}),
    ("batch:RegisterJobDefinition", OWN, {}),
    ("batch:RegisterJobDefinition", OWN, PLAIN),
    ("batch:TagResource", f"{OWN}:1", {}),
    ("batch:TagResource", JOB, SUBMITTED),
    ("batch:TagResource", JOB, {**SUBMITTED, **OURS}),
    ("iam:PassRole", ROLE, PASSED),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "batch.amazonaws.com"}),
    ("batch:TerminateJob", JOB, OURS),
    ("batch:TerminateJob", f"{JOB}:3", OURS),
    ("batch:DescribeJobs", "*", {}),
    ("batch:ListJobs", "*", {}),
    ("batch:GetJobQueueSnapshot", make.QUEUE, {}),
    ("dynamodb:PutItem", TABLE, CLAIM),
    ("dynamodb:UpdateItem", TABLE, CLAIM),
    ("dynamodb:DeleteItem", TABLE, CLAIM),
    ("dynamodb:GetItem", TABLE, CLAIM),
    ("dynamodb:GetItem", TABLE, STOP),
    ("s3:ListBucket", CODE, {}),
    ("s3:GetObject", f"{CODE}/accel-jobs/code/0f3c.tar.gz", {}),
    ("s3:PutObject", f"{CODE}/accel-jobs/code/0f3c.tar.gz", {}),
    ("logs:GetLogEvents", STREAM, {}),
    ("logs:FilterLogEvents", GROUP, {}),
    ("logs:FilterLogEvents", f"{GROUP}:*", {}),
    ("ssm:GetParametersByPath", PUBLISHED, {}),
]
REFUSED = [
    ("batch:SubmitJob", f"{BATCH}:job-queue/gpu-2", {}),
    ("batch:SubmitJob", f"{BATCH}:job-queue/other", {}),
    ("batch:SubmitJob", f"{TRAIN}-2:1", {}),
    ("batch:SubmitJob", f"{BATCH}:job-definition/accel-prod-0123456789ab", {}),
    ("batch:SubmitJob", f"{BATCH}:job-definition/accel-dev-2-0123456789ab", {}),
    ("batch:RegisterJobDefinition", TRAIN, {}),
    ("batch:DeregisterJobDefinition", f"{OWN}:1", {}),
    ("batch:TagResource", make.QUEUE, {}),
    ("batch:TagResource", f"{TRAIN}:1", {}),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    ("iam:PassRole", ROLE, {}),
    ("iam:PassRole", "arn:aws:iam::111122223333:role/admin", PASSED),
    ("batch:RegisterJobDefinition", OWN, PRIVILEGED),
    ("batch:RegisterJobDefinition", OWN, {"batch:EKSPrivileged": "true"}),
    ("batch:TagResource", JOB, {**SUBMITTED, **THEIRS}),
    ("batch:TagResource", JOB, {"aws:RequestTag/accel:job-stack": "accel-prod"}),
    ("batch:TerminateJob", JOB, {}),
    ("batch:TerminateJob", JOB, {"aws:ResourceTag/accel:key": "k"}),
    ("batch:TerminateJob", JOB, THEIRS),
    ("batch:TerminateJob", f"{JOB}:3", {}),
    ("batch:TerminateJob", f"{JOB}:3", THEIRS),
    ("dynamodb:PutItem", TABLE, STOP),
    ("dynamodb:UpdateItem", TABLE, STOP),
    ("dynamodb:DeleteItem", TABLE, STOP),
    ("dynamodb:PutItem", TABLE, {}),
    ("batch:UpdateJobQueue", make.QUEUE, {}),
    ("dynamodb:PutItem", f"{TABLE}-2", {}),
    ("dynamodb:Scan", TABLE, {}),
    ("logs:GetLogEvents", STREAM.replace("jobs", "others"), {}),
    ("logs:FilterLogEvents", GROUP.replace("jobs", "others"), {}),
    ("logs:DeleteLogGroup", GROUP, {}),
    ("ssm:GetParametersByPath", "arn:aws:ssm:us-east-1:111122223333:parameter/accel", {}),
    ("ssm:GetParametersByPath", PUBLISHED.replace("dev", "dev-2"), {}),
    ("ssm:PutParameter", f"{PUBLISHED}/gpu", {}),
]


@pytest.mark.parametrize(("action", "resource", "context"), ALLOWED)
def test_allowed(action: str, resource: str, context: dict[str, str]) -> None:
    assert allows(documents(), Ask(action, resource, context))


@pytest.mark.parametrize(("action", "resource", "context"), REFUSED)
def test_refused(action: str, resource: str, context: dict[str, str]) -> None:
    assert not allows(documents(), Ask(action, resource, context))


def test_many_definitions_take_several_policies() -> None:
    longest = "x" * 40  # of a key, to which auto-naming appends eight
    found = documents("a" * 60, definitions=40, definition=longest)
    assert len(found) == 3
    assert all(len("".join(json.dumps(each).split())) <= MAX for each in found)
    for i in range(40):
        assert allows(found, Ask("batch:SubmitJob", f"{BATCH}:job-definition/{longest}-{i:07}:1"))


def test_without_a_claim_table_no_table_is_named() -> None:
    assert "dynamodb" not in json.dumps(documents(claims=False))

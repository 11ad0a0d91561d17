"""Whether a caller may do it: the sandbox's AWS refuses in the words and the form of each service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import requests
from botocore.exceptions import ClientError

from accel.contract import claims, stop, submissions
from sandbox import keys
from tests.laws import components as make
from tests.support import memory

NAME = "caller"
TRUST = {"Version": "2012-10-17", "Statement": []}


class Caller:
    """Clients of one access key, and what it may do."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home

    def client(self, service: str, region: str = "us-east-1") -> Any:
        made: Any = boto3.client
        given = keys.boto(keys.key(self.home), NAME)
        return made(service, region_name=region, endpoint_url=self.url, **given)

    def may(self, *statements: dict[str, Any]) -> None:
        policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **one} for one in statements]}
        self._permissions(requests.post, json={"caller": NAME, "policies": [policy]})

    def everything(self) -> None:
        self._permissions(requests.delete)

    def needed(self) -> list[list[str]]:
        return self._permissions(requests.get)["needed"][NAME]

    def _permissions(self, ask: Any, **body: Any) -> Any:
        answer = ask(f"{self.url}/sandbox-api/permissions", timeout=120, headers=keys.bearer(self.home), **body)
        answer.raise_for_status()
        return answer.json()


@pytest.fixture
def caller(aws: Any) -> Iterator[Caller]:
    made = Caller(aws.told["url"], aws.home)
    yield made
    made.everything()


def refused(call: Any, **given: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as error:
        call(**given)
    return error.value.response["Error"]["Code"], error.value.response["Error"]["Message"]


CALLS: tuple[tuple[str, str, dict[str, Any], str, str, str], ...] = (
    ("ec2", "create_vpc", {"CidrBlock": "10.0.0.0/16"}, "UnauthorizedOperation", "ec2:CreateVpc", "*"),
    ("iam", "get_role", {"RoleName": "r"}, "AccessDenied", "iam:GetRole", "arn:aws:iam::210020003000:role/r"),
    ("sns", "create_topic", {"Name": "t"}, "AuthorizationError", "sns:CreateTopic",
     "arn:aws:sns:us-east-1:210020003000:t"),
    ("batch", "describe_job_queues", {}, "AccessDeniedException", "batch:DescribeJobQueues", "*"),
    ("batch", "delete_job_queue", {"jobQueue": "q"}, "AccessDeniedException", "batch:DeleteJobQueue",
     "arn:aws:batch:us-east-1:210020003000:job-queue/q"),
    ("dynamodb", "describe_table", {"TableName": "table"}, "AccessDeniedException", "dynamodb:DescribeTable",
     "arn:aws:dynamodb:us-east-1:210020003000:table/table"),
    ("lambda", "get_policy", {"FunctionName": "f"}, "AccessDeniedException", "lambda:GetPolicy",
     "arn:aws:lambda:us-east-1:210020003000:function:f"),
    ("logs", "create_log_group", {"logGroupName": "/a/b"}, "AccessDeniedException", "logs:CreateLogGroup",
     "arn:aws:logs:us-east-1:210020003000:log-group:/a/b"),
    ("ssm", "get_parameter", {"Name": "/a/b"}, "AccessDeniedException", "ssm:GetParameter",
     "arn:aws:ssm:us-east-1:210020003000:parameter/a/b"),
    ("s3", "get_bucket_lifecycle_configuration", {"Bucket": "b-1"}, "AccessDenied", "s3:GetLifecycleConfiguration",
     "arn:aws:s3:::b-1"),
    ("s3", "delete_public_access_block", {"Bucket": "b-1"}, "AccessDenied", "s3:PutBucketPublicAccessBlock",
     "arn:aws:s3:::b-1"),
    ("cloudwatch", "delete_alarms", {"AlarmNames": ["a"]}, "AccessDeniedException", "cloudwatch:DeleteAlarms",
     "arn:aws:cloudwatch:us-east-1:210020003000:alarm:a"),
    ("budgets", "describe_budget", {"AccountId": "210020003000", "BudgetName": "b"}, "AccessDeniedException",
     "budgets:ViewBudget", "arn:aws:budgets::210020003000:budget/b"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("service", "call", "given", "code", "action", "resource"), CALLS, ids=[f"{one[0]}-{one[1]}" for one in CALLS]
)
def test_a_call_that_no_policy_allows(
    caller: Caller, service: str, call: str, given: dict[str, Any], code: str, action: str, resource: str
) -> None:
    caller.may({"Action": "sts:*", "Resource": "*"})
    why = f"not authorized to perform: {action} on resource: {resource} because no identity-based policy allows the"
    answer = refused(getattr(caller.client(service), call), **given)
    assert answer[0] == code
    assert why in answer[1]
    assert [action, resource] in caller.needed()


def test_who_one_is_needs_no_permission(caller: Caller) -> None:
    caller.may()
    assert caller.client("sts").get_caller_identity()["Account"] == "210020003000"


def test_others_are_not_held_to_it(aws: Any, caller: Caller) -> None:
    caller.may()
    assert aws.client("ec2").describe_vpcs()["Vpcs"]


def test_tags_and_roles_need_permissions_of_their_own(aws: Any, caller: Caller) -> None:
    iam, name = caller.client("iam"), aws.name("reader")
    given = {"RoleName": name, "AssumeRolePolicyDocument": json.dumps(TRUST), "Tags": [{"Key": "a", "Value": "b"}]}
    caller.may({"Action": ["iam:CreateRole"], "Resource": f"arn:aws:iam::*:role/{name}"})
    assert "iam:TagRole" in refused(iam.create_role, **given)[1]
    caller.may({"Action": ["iam:CreateRole", "iam:TagRole"], "Resource": f"arn:aws:iam::*:role/{name}"})
    iam.create_role(**given)
    other = given | {"RoleName": f"x-{name}"}
    assert "iam:CreateRole on resource" in refused(iam.create_role, **other)[1]

    profile = aws.name("profile")
    on_profiles = {"Action": "iam:*InstanceProfile", "Resource": f"arn:aws:iam::*:instance-profile/{profile}"}
    passing = {"Action": "iam:PassRole", "Resource": "arn:aws:iam::*:role/*"}
    caller.may(on_profiles)
    iam.create_instance_profile(InstanceProfileName=profile)
    add = {"InstanceProfileName": profile, "RoleName": name}
    assert "iam:PassRole on resource" in refused(iam.add_role_to_instance_profile, **add)[1]
    elsewhere = {"StringEquals": {"iam:PassedToService": ["lambda.amazonaws.com"]}}
    caller.may(on_profiles, {**passing, "Condition": elsewhere})
    assert "iam:PassRole on resource" in refused(iam.add_role_to_instance_profile, **add)[1]
    here = {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}}
    caller.may(on_profiles, {**passing, "Condition": here})
    iam.add_role_to_instance_profile(**add)


def test_a_condition_on_the_region(caller: Caller) -> None:
    condition = {"StringEquals": {"aws:RequestedRegion": ["us-east-1"]}}
    caller.may({"Action": "ec2:DescribeVpcs", "Resource": "*", "Condition": condition})
    caller.client("ec2").describe_vpcs()
    assert "ec2:DescribeVpcs" in refused(caller.client("ec2", "us-west-2").describe_vpcs)[1]


PREFIX = "accel-dev"


@pytest.fixture
def submitter(caller: Caller) -> Caller:
    """Has the submit policy of a stack, and nothing else; the stack's claim table is there."""
    seen = memory.run(lambda: make.submit_policy("dev"))
    text = "\n".join(one.inputs["policy"] for one in seen.of("iam/policy:Policy"))
    document = json.loads(text.replace(":111122223333:", ":210020003000:"))
    caller.may(*({name: value for name, value in one.items() if name != "Effect"} for one in document["Statement"]))
    return caller


def test_the_stop_of_a_budget_is_read_and_not_written(aws: Any, submitter: Caller) -> None:
    table = {"TableName": "claims", "BillingMode": "PAY_PER_REQUEST"}
    schema = [{"AttributeName": claims.KEY, "KeyType": "HASH"}]
    admin, dynamodb = aws.client("dynamodb"), submitter.client("dynamodb")
    admin.create_table(
        **table, KeySchema=schema, AttributeDefinitions=[{"AttributeName": claims.KEY, "AttributeType": "S"}]
    )
    stopped = {claims.KEY: {"S": stop.KEY}, stop.STOPPED: {"S": "the budget is crossed"}}
    admin.put_item(TableName="claims", Item=stopped)
    key = {claims.KEY: {"S": stop.KEY}}
    assert dynamodb.get_item(TableName="claims", Key=key)["Item"] == stopped
    forged = {claims.KEY: {"S": stop.KEY}, stop.STATE: {"S": "{}"}}
    for call, given in (
        (dynamodb.delete_item, {"Key": key}),
        (dynamodb.put_item, {"Item": forged}),
        (dynamodb.update_item, {"Key": key, "UpdateExpression": "REMOVE stopped"}),
    ):
        assert refused(call, TableName="claims", **given)[0] == "AccessDeniedException"
    assert admin.get_item(TableName="claims", Key=key)["Item"] == stopped
    own = {claims.KEY: {"S": "0f3c" * 16}}
    dynamodb.put_item(TableName="claims", Item=own)
    dynamodb.delete_item(TableName="claims", Key=own)
    admin.delete_table(TableName="claims")


def test_no_privileged_definition_is_registered(submitter: Caller) -> None:
    batch = submitter.client("batch")

    def register(**more: Any) -> Any:
        size = [{"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "64"}]
        container = {"image": "local/examples", "resourceRequirements": size, **more}
        own = {"jobDefinitionName": f"{PREFIX}-0123456789ab", "type": "container"}
        return batch.register_job_definition(**own, containerProperties=container, tags={"accel:owner": "jobs"})

    assert "batch:RegisterJobDefinition on resource" in refused(register, privileged=True)[1]
    register(privileged=False)
    register()


def test_jobs_of_other_stacks_are_not_ended(aws: Any, queue: str, submitter: Caller) -> None:
    definition = aws.definition(["sleep", "60"])

    def job(stack: str | None, **more: Any) -> str:
        tags = {"accel:key": "k", **({submissions.STACK_TAG: stack} if stack else {})}
        return aws.batch.submit_job(jobName="j", jobQueue=queue, jobDefinition=definition, tags=tags, **more)["jobId"]

    batch = submitter.client("batch")
    own, theirs, unmarked = job(PREFIX), job("accel-prod"), job(None)
    array = job("accel-prod", arrayProperties={"size": 2})
    for each in (theirs, unmarked, array, f"{array}:1"):
        assert "batch:TerminateJob on resource" in refused(batch.terminate_job, jobId=each, reason="mine")[1]
    arn = f"arn:aws:batch:us-east-1:210020003000:job/{theirs}"
    marked = {submissions.STACK_TAG: PREFIX}
    assert "batch:TagResource on resource" in refused(batch.tag_resource, resourceArn=arn, tags=marked)[1]
    batch.terminate_job(jobId=own, reason="mine")
    for each in (theirs, unmarked, array):
        aws.batch.terminate_job(jobId=each, reason="the test has ended")

"""Limits that AWS sets for an account that has just been opened, as its refusals."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from sandbox import keys
from sandbox.aws.account import LIMITS

REGION = "eu-west-3"
"""Where no other test makes anything."""


def archive() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("index.py", "def handler(event, context): ...\n")
    return packed.getvalue()


@pytest.fixture
def function(aws: Any) -> Any:
    role = aws.client("iam").create_role(RoleName=aws.name("runs"), AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    name, client = aws.name("function"), aws.client("lambda")
    client.create_function(
        FunctionName=name, Runtime="python3.13", Role=role, Handler="index.handler", Code={"ZipFile": archive()}
    )
    yield name
    client.delete_function(FunctionName=name)


def test_no_concurrency_can_be_reserved(aws: Any, function: str) -> None:
    client = aws.client("lambda")
    with pytest.raises(client.exceptions.InvalidParameterValueException, match=r"below its minimum value of \[10\]"):
        client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=1)
    client.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=0)


def test_an_eleventh_log_policy_is_refused(aws: Any) -> None:
    logs = aws.client("logs")
    document = json.dumps({"Version": "2012-10-17", "Statement": []})
    existing = [policy["policyName"] for policy in logs.describe_resource_policies()["resourcePolicies"]]
    made = [f"policy-{number}" for number in range(10 - len(existing))]
    for name in made:
        logs.put_resource_policy(policyName=name, policyDocument=document)
    with pytest.raises(logs.exceptions.LimitExceededException):
        logs.put_resource_policy(policyName="one-more", policyDocument=document)
    logs.put_resource_policy(policyName=made[0], policyDocument=document)
    # That of a log group is none of the ten, and a group has one.
    logs.create_log_group(logGroupName="/own/policy")
    group = logs.describe_log_groups(logGroupNamePrefix="/own/policy")["logGroups"][0]["logGroupArn"]
    own = {"resourceArn": group, "policyDocument": document}
    revision = logs.put_resource_policy(**own)["revisionId"]
    with pytest.raises(logs.exceptions.ClientError, match="expected revision"):
        logs.put_resource_policy(**own)
    logs.put_resource_policy(**own, expectedRevisionId=revision)
    assert [
        each["policyScope"]
        for each in logs.describe_resource_policies(policyScope="RESOURCE", resourceArn=group)["resourcePolicies"]
    ] == ["RESOURCE"]
    assert len(logs.describe_resource_policies()["resourcePolicies"]) == 10
    logs.delete_log_group(logGroupName="/own/policy")
    for name in made:
        logs.delete_resource_policy(policyName=name)


class Account:
    """A region that is empty but for its default VPC, and what may be made there until AWS says no."""

    def __init__(self, aws: Any) -> None:
        session = boto3.Session(region_name=REGION)
        signed = {"endpoint_url": aws.told["url"], **keys.boto(keys.key(aws.home))}
        self.ec2, self.iam, self.batch = (session.client(name, **signed) for name in ("ec2", "iam", "batch"))
        self.number = count()
        self.undo: list[Callable[[], Any]] = []

    def vpc(self) -> str:
        made = self.ec2.create_vpc(CidrBlock=f"10.{next(self.number)}.0.0/16")["Vpc"]["VpcId"]
        self.undo.append(lambda: self.ec2.delete_vpc(VpcId=made))
        return made

    def gateway(self) -> None:
        made = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.undo.append(lambda: self.ec2.delete_internet_gateway(InternetGatewayId=made))

    def address(self) -> str:
        made = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        self.undo.append(lambda: self.ec2.release_address(AllocationId=made))
        return made

    def subnet(self, zone: str = "a") -> str:
        found = self.ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [f"{REGION}{zone}"]}])
        return found["Subnets"][0]["SubnetId"]

    def nat(self, zone: str = "a") -> None:
        made = self.ec2.create_nat_gateway(SubnetId=self.subnet(zone), ConnectivityType="private")["NatGateway"]
        self.undo.append(lambda: self.ec2.delete_nat_gateway(NatGatewayId=made["NatGatewayId"]))

    def endpoint(self, kind: str) -> None:
        (vpc,) = self.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
        made = self.ec2.create_vpc_endpoint(
            VpcId=vpc["VpcId"], ServiceName=f"com.amazonaws.{REGION}.s3", VpcEndpointType=kind
        )["VpcEndpoint"]["VpcEndpointId"]
        self.undo.append(lambda: self.ec2.delete_vpc_endpoints(VpcEndpointIds=[made]))


@pytest.fixture
def account(aws: Any) -> Iterator[Account]:
    made = Account(aws)
    yield made
    for each in reversed(made.undo):
        each()


def refused(call: Callable[..., Any], *given: Any, **named: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as error:
        call(*given, **named)
    told = error.value.response["Error"]
    return told["Code"], told["Message"]


# More than these five VPCs can be made: one is the default VPC.
@pytest.mark.parametrize(
    ("make", "most", "code", "text"),
    [
        (Account.vpc, 4, "VpcLimitExceeded", "The maximum number of VPCs has been reached."),
        (
            Account.gateway,
            5,
            "InternetGatewayLimitExceeded",
            "The maximum number of internet gateways has been reached.",
        ),
        (Account.address, 5, "AddressLimitExceeded", "The maximum number of addresses has been reached."),
        (
            Account.nat,
            5,
            "NatGatewayLimitExceeded",
            "Performing this operation would exceed the limit of 5 NAT gateways",
        ),
        (
            lambda account: account.endpoint("Interface"),
            50,
            "VpcEndpointLimitExceeded",
            "The maximum number of VPC endpoints has been reached.",
        ),
        (
            lambda account: account.endpoint("Gateway"),
            20,
            "VpcEndpointLimitExceeded",
            "The maximum number of VPC endpoints has been reached.",
        ),
    ],
    ids=["vpcs", "internet-gateways", "addresses", "nat-gateways", "interface-endpoints", "gateway-endpoints"],
)
def test_a_new_account_has_room_for_so_many(
    account: Account, make: Callable[[Account], Any], most: int, code: str, text: str
) -> None:
    for _ in range(most):
        make(account)
    assert refused(make, account) == (code, text)
    account.undo.pop()()
    make(account)


def test_nat_gateways_are_counted_by_zone(account: Account) -> None:
    for _ in range(5):
        account.nat("a")
    account.nat("b")
    assert refused(account.nat, "a")[0] == "NatGatewayLimitExceeded"


def test_what_is_granted_raises_a_limit_and_service_quotas_show_it(aws: Any, account: Account) -> None:
    service = aws.client("service-quotas")
    vpcs = {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}
    assert service.get_service_quota(**vpcs)["Quota"]["Value"] == 5
    aws.control("quotas", **{"L-F678F1CE": 7})
    try:
        assert service.get_service_quota(**vpcs)["Quota"]["Value"] == 7
        for _ in range(6):
            account.vpc()
        assert refused(account.vpc)[0] == "VpcLimitExceeded"
    finally:
        aws.control("quotas", **{"L-F678F1CE": None})


def test_rules_of_a_security_group(account: Account) -> None:
    group = account.ec2.create_security_group(GroupName="rules", Description="rules")["GroupId"]
    account.undo.append(lambda: account.ec2.delete_security_group(GroupId=group))

    def rule(number: int) -> dict[str, Any]:
        ranges = [{"CidrIp": f"10.0.{number}.0/24"}]
        return {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": ranges}

    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule(each) for each in range(60)])
    more = {"GroupId": group, "IpPermissions": [rule(60)]}
    assert refused(account.ec2.authorize_security_group_ingress, **more)[0] == "RulesPerSecurityGroupLimitExceeded"


def policy(characters: int) -> str:
    """A policy of so many characters as IAM counts them; white space comes on top."""
    document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": ""}]}
    short = json.dumps(document, separators=(",", ":"))
    name = "arn:aws:s3:::"
    document["Statement"][0]["Resource"] = name + "a" * (characters - len(short) - len(name))  # pyright: ignore
    return json.dumps(document, indent=4)


def test_sizes_of_policies(aws: Any, account: Account) -> None:
    iam = account.iam
    role, managed = aws.name("role"), aws.name("policy")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    assert refused(iam.create_policy, PolicyName=managed, PolicyDocument=policy(6145)) == (
        "LimitExceeded",
        "Cannot exceed quota for PolicySize: 6144",
    )
    arn = iam.create_policy(PolicyName=managed, PolicyDocument=policy(6144))["Policy"]["Arn"]
    assert refused(iam.create_policy_version, PolicyArn=arn, PolicyDocument=policy(6145))[0] == "LimitExceeded"
    # The inline policies of a role count together; one that is replaced does not count twice.
    iam.put_role_policy(RoleName=role, PolicyName="one", PolicyDocument=policy(10000))
    assert refused(iam.put_role_policy, RoleName=role, PolicyName="two", PolicyDocument=policy(241)) == (
        "LimitExceeded",
        f"Maximum policy size of 10240 bytes exceeded for role {role}",
    )
    iam.put_role_policy(RoleName=role, PolicyName="one", PolicyDocument=policy(9999))
    iam.put_role_policy(RoleName=role, PolicyName="two", PolicyDocument=policy(241))
    trust = {"RoleName": aws.name("role"), "AssumeRolePolicyDocument": policy(2049)}
    assert refused(iam.create_role, **trust) == ("LimitExceeded", "Cannot exceed quota for ACLSizePerRole: 2048")
    assert refused(iam.update_assume_role_policy, RoleName=role, PolicyDocument=policy(2049))[0] == "LimitExceeded"


def test_an_eleventh_managed_policy_is_not_attached(aws: Any, account: Account) -> None:
    iam, role = account.iam, aws.name("role")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    arns = [
        iam.create_policy(PolicyName=aws.name("policy"), PolicyDocument=policy(200))["Policy"]["Arn"] for _ in range(11)
    ]
    for arn in arns[:10]:
        iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    assert refused(iam.attach_role_policy, RoleName=role, PolicyArn=arns[10]) == (
        "LimitExceeded",
        "Cannot exceed quota for PoliciesPerRole: 10",
    )
    iam.attach_role_policy(RoleName=role, PolicyArn=arns[0])


def test_batch_has_fifty_of_each(start_aws: Any) -> None:
    aws = start_aws()
    aws.control("quotas", **dict.fromkeys(["batch/environments", "batch/queues"]))
    names = [aws.environment(wait=False) for _ in range(50)]
    assert refused(aws.environment, wait=False)[0] == "ClientException"
    order = [{"order": 1, "computeEnvironment": names[0]}]
    aws.until(lambda: aws.shown_environment(names[0])["status"] == "VALID")
    for number in range(50):
        aws.batch.create_job_queue(jobQueueName=f"queue-{number}", priority=1, computeEnvironmentOrder=order)
    more = {"jobQueueName": "one-more", "priority": 1, "computeEnvironmentOrder": order}
    assert refused(aws.batch.create_job_queue, **more)[0] == "ClientException"
    container = {"image": "local/work", "command": ["a" * 24 * 1024], "vcpus": 1, "memory": 64}
    large = {"jobDefinitionName": "large", "type": "container", "containerProperties": container}
    assert "24576" in refused(aws.batch.register_job_definition, **large)[1]


def test_nothing_is_granted_to_an_account_that_is_new(start_aws: Any) -> None:
    aws = start_aws()
    known = aws.control("quotas")
    assert {"L-DB2E81BA", "L-F678F1CE"} < known.keys() == aws.control("quotas", **dict.fromkeys(known)).keys()
    assert set(aws.control("quotas", "GET").values()) == {None}
    quotas = aws.client("service-quotas", retries={"total_max_attempts": 1})
    for code in ("L-DB2E81BA", "L-3819A6DF", "L-417A185B", "L-C4BD4855"):
        row = {"ServiceCode": "ec2", "QuotaCode": code}
        assert refused(quotas.get_service_quota, **row)[0] == "NoSuchResourceException"
        assert quotas.get_aws_default_service_quota(**row)["Quota"]["Value"] == 0
    queue = aws.queue(aws.environment())
    job = aws.submit(queue, aws.definition(["true"], gpu=1))
    ec2 = aws.client("ec2")

    def failed() -> Any:
        groups = aws.client("autoscaling").describe_scaling_activities()["Activities"]
        return [each for each in groups if "VcpuLimitExceeded" in each["StatusMessage"]]

    assert "vCPU limit of 0" in aws.until(failed)[0]["StatusMessage"]
    assert aws.job(job)["status"] == "RUNNABLE" and not ec2.describe_instances()["Reservations"]
    aws.control("quotas", **{"L-DB2E81BA": 64})
    aws.reaches(job, "SUCCEEDED")


def test_every_limit_has_its_source() -> None:
    assert all(each.source.startswith("https://docs.aws.amazon.com/") and each.default > 0 for each in LIMITS)
    assert len({each.code for each in LIMITS}) == len(LIMITS)

"""`stacks validate --online` against networks and roles that are there: each fault is one that leaves jobs waiting."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from click.testing import CliRunner, Result

from stacks.cli.main import stacks
from stacks.operations.online.aws import WAYS_OUT
from tests.support.moto import KEYS, Moto
from tests.support.project import KEY, environment, put

REGION = "us-east-1"


@dataclass
class Account:
    """What an account has before the stack, made through its own APIs."""

    endpoint: str

    def client(self, service: str) -> Any:
        return boto3.client(service, region_name=REGION, endpoint_url=self.endpoint)

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    def network(self, **changes: Any) -> dict[str, Any]:
        """A VPC with a subnet in each of two zones behind a NAT gateway."""
        ec2 = self.ec2
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnets = [
            ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=f"{REGION}{zone}")["Subnet"]
            for i, zone in enumerate(changes.get("zones", "ab"))
        ]
        group = ec2.create_security_group(GroupName="jobs", Description="jobs", VpcId=vpc)["GroupId"]
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        for subnet in subnets:
            ec2.associate_route_table(RouteTableId=table, SubnetId=subnet["SubnetId"])
        if changes.get("nat", True):
            address = ec2.allocate_address(Domain="vpc")["AllocationId"]
            nat = ec2.create_nat_gateway(SubnetId=subnets[0]["SubnetId"], AllocationId=address)["NatGateway"]
            ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat["NatGatewayId"])
        self.table = table
        return {
            "kind": "existing",
            "vpc_id": vpc,
            "subnet_ids": [subnet["SubnetId"] for subnet in subnets],
            "security_group_ids": [group],
        }

    def role(self, name: str, service: str, *actions: str) -> str:
        """A role with these actions, in a profile of its name too."""
        iam = self.client("iam")
        trust = {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}]}
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        if actions:
            allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [*actions], "Resource": "*"}]}
            iam.put_role_policy(RoleName=name, PolicyName="own", PolicyDocument=json.dumps(allow))
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        return arn.replace("123456789012", "210020003000")  # our rules refuse moto's own account


@pytest.fixture(scope="module")
def server() -> Iterator[Moto]:
    made = Moto()
    yield made
    made.stop()


@pytest.fixture
def account(server: Moto, monkeypatch: pytest.MonkeyPatch) -> Account:
    server.reset()
    for name, value in {"AWS_ENDPOINT_URL": server.url, "AWS_CONFIG_FILE": "/dev/null", **KEYS}.items():
        monkeypatch.setenv(name, value)
    return Account(server.url)


Run = Callable[..., Result]


@pytest.fixture
def validate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    def validate(network: dict[str, Any] | None, *options: str, **changes: Any) -> Result:
        values = environment("dev")
        values["aws"]["network"] = network or values["aws"]["network"]
        for path, value in changes.items():
            values = put(path.replace("__", "."), value, values)
        (tmp_path / "Pulumi.it.yaml").write_text(yaml.safe_dump({"config": {KEY: values}}, sort_keys=False))
        monkeypatch.chdir(tmp_path)
        return CliRunner().invoke(stacks, ["validate", "it", "--online", *options])

    return validate


def rules(done: Result) -> list[str]:
    """The ids of the rules that are broken, and each line has its file and line number."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert all(line.startswith("error: Pulumi.it.yaml:") for line in lines)
    return [line.rpartition("[")[2].rstrip("]") for line in lines]


def test_a_network_with_a_way_out_fits(account: Account, validate: Run) -> None:
    done = validate(account.network())
    assert (done.exit_code, done.stderr) == (0, "")
    looked = next(line for line in done.stdout.splitlines() if "fits what exists" in line)
    for call in ("DescribeSubnets", "DescribeRouteTables", "DescribeSecurityGroups", "DescribeInstanceTypeOfferings"):
        assert f"ec2:{call}" in looked


def test_a_network_that_the_stack_makes_is_not_asked_about(validate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    done = validate(None)
    assert done.exit_code == 0 and "names nothing that exists before it" in done.stdout


@pytest.mark.parametrize("missing", ["vpc_id", "subnet_ids", "security_group_ids"])
def test_what_is_not_there_is_named(account: Account, validate: Run, missing: str) -> None:
    network = account.network()
    prefix = {"vpc_id": "vpc", "subnet_ids": "subnet", "security_group_ids": "sg"}[missing]
    gone = f"{prefix}-0123456789abcdef0"
    network[missing] = [network[missing][0], gone] if isinstance(network[missing], list) else gone
    done = validate(network)
    assert done.exit_code == 2 and "aws.existing.missing" in rules(done)
    assert f'"{gone}", which is not there' in done.stderr


def test_a_subnet_of_another_vpc(account: Account, validate: Run) -> None:
    network, other = account.network(), account.network()
    network["subnet_ids"].append(other["subnet_ids"][0])
    network["security_group_ids"].append(other["security_group_ids"][0])
    assert sorted(rules(validate(network))) == ["aws.existing.vpc"] * 2


def test_no_way_to_ecs_ecr_or_s3(account: Account, validate: Run) -> None:
    done = validate(account.network(nat=False))
    assert rules(done) == ["aws.existing.egress"] * 2
    assert "which has no default route; no VPC endpoint leads to ecs, ecs-agent, ecs-telemetry, ecr.api" in done.stderr


def test_an_internet_gateway_needs_public_addresses(account: Account, validate: Run) -> None:
    network = account.network(nat=False)
    gateway = account.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    account.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network["vpc_id"])
    account.ec2.create_route(RouteTableId=account.table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    done = validate(network)
    assert rules(done) == ["aws.existing.egress"] * 2 and "get no public address" in done.stderr
    for subnet in network["subnet_ids"]:
        account.ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})
    assert validate(network).exit_code == 0


def endpoints(account: Account, network: dict[str, Any], services: Any, group: str, gateway_tables: list[str]) -> None:
    for service in services:
        name, vpc = f"com.amazonaws.{REGION}.{service}", network["vpc_id"]
        if service == "s3":
            account.ec2.create_vpc_endpoint(
                VpcEndpointType="Gateway", VpcId=vpc, ServiceName=name, RouteTableIds=gateway_tables
            )
        else:
            account.ec2.create_vpc_endpoint(
                VpcEndpointType="Interface", VpcId=vpc, ServiceName=name, SubnetIds=network["subnet_ids"],
                SecurityGroupIds=[group], PrivateDnsEnabled=True,
            )  # fmt: skip


def test_endpoints_take_the_place_of_a_gateway(account: Account, validate: Run) -> None:
    network = account.network(nat=False)
    group = account.ec2.create_security_group(GroupName="e", Description="e", VpcId=network["vpc_id"])["GroupId"]
    endpoints(account, network, WAYS_OUT, group, [account.table])
    # Nothing comes into a new security group, so its endpoints answer nobody.
    assert "ecs, ecs-agent" in validate(network).stderr
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    assert (validate(network).exit_code, validate(network).stderr) == (0, "")


@pytest.mark.parametrize("missing", ["ecr.dkr", "logs", "s3"])
def test_one_endpoint_less_is_named(account: Account, validate: Run, missing: str) -> None:
    network = account.network(nat=False)
    group = network["security_group_ids"][0]
    rule = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    endpoints(account, network, [one for one in WAYS_OUT if one != missing], group, [account.table])
    done = validate(network)
    assert rules(done) == ["aws.existing.egress"] * 2
    assert f"no VPC endpoint leads to {missing};" in done.stderr


def test_a_gateway_endpoint_counts_for_its_route_tables_alone(account: Account, validate: Run) -> None:
    network = account.network(nat=False)
    group = network["security_group_ids"][0]
    rule = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    account.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    other = account.ec2.create_route_table(VpcId=network["vpc_id"])["RouteTable"]["RouteTableId"]
    endpoints(account, network, WAYS_OUT, group, [other])
    assert "no VPC endpoint leads to s3;" in validate(network).stderr


def test_a_group_that_lets_nothing_out(account: Account, validate: Run) -> None:
    network = account.network()
    group = network["security_group_ids"][0]
    every = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    account.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=[every])
    done = validate(network)
    assert rules(done) == ["aws.existing.security-group"] and "TCP port 443, which ECS needs" in done.stderr
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    account.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[https])
    assert validate(network).exit_code == 0
    volumes = [{"kind": "efs", "file_system": "fs-0123456789abcdef0", "path": "/data"}]
    done = validate(network, aws__definitions__training__volumes=volumes)
    assert rules(done) == ["aws.existing.security-group"] and "TCP port 2049, which EFS needs" in done.stderr


def test_a_zone_without_the_instance_types(account: Account, validate: Run) -> None:
    offered = account.ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone")
    rows = [row for page in offered for row in page["InstanceTypeOfferings"]]
    zones = {row["Location"] for row in rows if row["InstanceType"].startswith("p4d.")}
    other = {row["Location"] for row in rows if row["InstanceType"].startswith("g5.")}
    without = sorted(other - zones)[0].removeprefix(REGION)
    network = account.network(zones=without)
    done = validate(network, aws__environments__spot__instance_types=["p4d"], aws__environments__spot__max_vcpus=96)
    assert rules(done) == ["aws.existing.zone-offer"]
    assert all(zone in done.stderr for zone in zones)


AGENT = ("ecs:*",)


@pytest.mark.parametrize(
    ("service", "actions", "rule", "text"),
    [
        ("ec2.amazonaws.com", AGENT, None, ""),
        ("ec2.amazonaws.com", ("s3:*",), "aws.existing.role-actions", "ecs:RegisterContainerInstance"),
        ("lambda.amazonaws.com", AGENT, "aws.existing.role-trust", "does not name ec2.amazonaws.com"),
    ],
)
def test_instance_profiles(
    account: Account, validate: Run, service: str, actions: tuple[str, ...], rule: str | None, text: str
) -> None:
    arn = account.role("workers", service, *actions).replace(":role/", ":instance-profile/")
    done = validate(None, aws__environments__spot__instance_profile=arn)
    assert rules(done) == ([rule] if rule else []) and text in done.stderr


@pytest.mark.parametrize(
    ("service", "actions", "rule", "text"),
    [
        ("ecs-tasks.amazonaws.com", ("logs:*", "ecr:*", "secretsmanager:GetSecretValue"), None, ""),
        ("ecs-tasks.amazonaws.com", ("logs:*",), "aws.existing.role-actions", "ecr:GetAuthorizationToken"),
        ("batch.amazonaws.com", ("*",), "aws.existing.role-trust", "does not name ecs-tasks.amazonaws.com"),
    ],
)
def test_execution_roles(
    account: Account, validate: Run, service: str, actions: tuple[str, ...], rule: str | None, text: str
) -> None:
    changes = {
        "aws__definitions__training__execution_role": account.role("runs", service, *actions),
        "aws__definitions__training__image": f"210020003000.dkr.ecr.{REGION}.amazonaws.com/train:1",
    }
    done = validate(None, **changes)
    assert rules(done) == ([rule] if rule else []) and text in done.stderr


@pytest.mark.parametrize(("actions", "rule"), [(["logs:*"], None), (["s3:*"], "aws.existing.role-actions")])
def test_actions_of_an_attached_policy_count(
    account: Account, validate: Run, actions: list[str], rule: str | None
) -> None:
    iam = account.client("iam")
    arn = account.role("attached", "ecs-tasks.amazonaws.com")
    allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    policy = iam.create_policy(PolicyName="attached", PolicyDocument=json.dumps(allow))["Policy"]["Arn"]
    iam.attach_role_policy(RoleName="attached", PolicyArn=policy)
    done = validate(
        None, aws__definitions__training__execution_role=arn, aws__definitions__training__image="train.test/any:1"
    )
    assert rules(done) == ([rule] if rule else [])


def test_a_role_that_is_not_there(account: Account, validate: Run) -> None:
    arn = "arn:aws:iam::210020003000:role/gone"
    done = validate(None, aws__definitions__training__job_role=arn)
    assert rules(done) == ["aws.existing.missing"]


def test_what_may_not_be_read_is_said(account: Account, validate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from accel.clouds.aws.reader import Reader
    from accel.diagnostics.errors import CloudRefused

    network, allowed = account.network(), Reader.ask

    def ask(self: Reader, permission: str, *arguments: Any, **options: Any) -> Any:
        if permission != "ec2:DescribeRouteTables":
            return allowed(self, permission, *arguments, **options)
        self.unread[permission] = CloudRefused("UnauthorizedOperation").message
        return None

    monkeypatch.setattr(Reader, "ask", ask)
    done = validate(network)
    assert done.exit_code == 0
    assert "not checked: ec2:DescribeRouteTables: UnauthorizedOperation" in done.stdout
    assert validate(network, "--strict").exit_code == 2

"""The AWS section of an environment against the account's resources."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from accel.clouds.aws import roles as iam_role
from accel.clouds.aws.clients import Clients, Timing
from accel.clouds.aws.reader import Absent, Reader
from accel.clouds.aws.responses import structure, structures
from accel.clouds.aws.routes import default_route
from accel.contract.network import AwsNetwork
from accel.diagnostics.findings import Finding, under
from accel.rules.aws import existing as rules
from accel.rules.aws.existing import HTTPS, NFS, GroupFacts, RoleFacts, SubnetFacts
from components.aws.compute_environment import OnDemandSpec, SpotSpec
from components.aws.job_definition import EfsVolume, JobDefinitionSpec
from components.aws.network import AGENT_ENDPOINTS, JOB_ENDPOINTS

from ...environment.aws.config import Aws, CreatedNetwork, ExistingNetwork, StackNetwork
from ..quota.aws import check_account
from ..stack_files import stack_output
from .checks import CheckResult

WAYS_OUT = (*AGENT_ENDPOINTS[:3], *JOB_ENDPOINTS, "s3")
"""Endpoints that an instance without a way out needs; layers of images in ECR lie in S3. Source:
https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html"""

TASKS, BATCH = "ecs-tasks.amazonaws.com", "batch.amazonaws.com"
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
PULL = ("ecr:GetAuthorizationToken", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
SECRETS = {"secretsmanager": "secretsmanager:GetSecretValue", "ssm": "ssm:GetParameters"}
"""Actions of the execution role by service. Source of all three:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_execution_IAM_role.html"""


def check_aws(section: Aws) -> CheckResult:
    """Raise NoCredentials, CloudSilent, and BadInput for credentials of another account."""
    if section.account_id is not None:
        check_account(section.region, section.account_id)
    reader = Reader(Clients(section.region, Timing()))
    found = [*_networks(section, reader), *_environments(section, reader), *_definitions(section, reader)]
    return CheckResult(tuple(dict.fromkeys(found)), tuple(reader.looked), reader.unread_lines())


@dataclass(frozen=True)
class _Network:
    """A network that exists before the stack: the field that names each subnet and group, by id."""

    vpc_id: str | None = None
    vpc_field: str = ""
    subnets: Mapping[str, str] = field(default_factory=dict[str, str])
    groups: Mapping[str, str] = field(default_factory=dict[str, str])


def _network(section: Aws) -> _Network:
    match section.network:
        case CreatedNetwork():
            return _Network()
        case ExistingNetwork() as given:
            subnets = {one: f"network.subnet_ids[{i}]" for i, one in enumerate(given.subnet_ids)}
            groups = {one: f"network.security_group_ids[{i}]" for i, one in enumerate(given.security_group_ids)}
            return _Network(given.vpc_id, "network.vpc_id", subnets, groups)
        case StackNetwork() as other:
            theirs = AwsNetwork.model_validate(stack_output("network", other.stack))
            at = "network.stack"
            return _Network(
                theirs.vpc_id, at, dict.fromkeys(theirs.subnet_ids, at), dict.fromkeys(theirs.security_group_ids, at)
            )


def _networks(section: Aws, reader: Reader) -> Iterator[Finding]:
    network = _network(section)
    if network.vpc_id and (known := read_vpcs(reader, network.vpc_id)) is not None:
        yield from rules.vpc(network.vpc_field, network.vpc_id, known)
    if network.groups and (groups := read_groups(reader, network.groups)) is not None:
        yield from rules.groups(network.groups, groups, network.vpc_id, _ports(section))
    own = {
        subnet: f"environments.{name}.subnet_ids[{i}]"
        for name, spec in section.environments.items()
        for i, subnet in enumerate(spec.subnet_ids or ())
    }
    fields = {**own, **network.subnets}
    if not fields or (subnets := read_subnets(reader, fields)) is None:
        return
    yield from rules.subnets(fields, subnets, network.vpc_id, [*WAYS_OUT, *sorted(_secret_services(section))])
    if (offered := read_offers(reader)) is None:
        return
    for name, spec in section.environments.items():
        zones = {subnets[one].zone for one in spec.subnet_ids or network.subnets if one in subnets}
        there = {zone for kind in spec.instance_types for zone in _zones_of(kind, offered)}
        yield from under(f"environments.{name}", rules.offers(zones, there) if zones else [])


def _zones_of(kind: str, offered: Mapping[str, Collection[str]]) -> set[str]:
    """Return the zones of an instance type, or of any size of a family."""
    return {zone for name, zones in offered.items() if name == kind or name.startswith(f"{kind}.") for zone in zones}


def _ports(section: Aws) -> Mapping[int, str]:
    efs = any(isinstance(volume, EfsVolume) for spec in section.definitions.values() for volume in spec.volumes)
    return {HTTPS: "ECS", **({NFS: "EFS"} if efs else {})}


def _secret_services(section: Aws) -> set[str]:
    arns = [arn for spec in section.definitions.values() for arn in spec.secrets.values()]
    return {service for service in SECRETS for arn in arns if f":{service}:" in arn}


def _environments(section: Aws, reader: Reader) -> Iterator[Finding]:
    for name, spec in section.environments.items():
        yield from under(f"environments.{name}", _environment(spec, reader))


def _environment(spec: OnDemandSpec | SpotSpec, reader: Reader) -> list[Finding]:
    found: list[Finding] = []
    profile, role = spec.instance_profile, spec.service_role
    if profile and (facts := _read_profile(reader, profile)) is not None:
        found += rules.role("instance_profile", profile, facts, "ec2.amazonaws.com")
    if role and (facts := _read_role(reader, role, BATCH, ())) is not None:
        found += rules.role("service_role", role, facts, BATCH)
    return found


def _definitions(section: Aws, reader: Reader) -> Iterator[Finding]:
    for name, spec in section.definitions.items():
        needed = {"job_role": (), "execution_role": _execution_actions(spec)}
        for at, actions in needed.items():
            role: str | None = getattr(spec, at)
            if role and (facts := _read_role(reader, role, TASKS, actions)) is not None:
                yield from under(f"definitions.{name}", rules.role(at, role, facts, TASKS))


def _execution_actions(spec: JobDefinitionSpec) -> tuple[str, ...]:
    pull = PULL if ".dkr.ecr." in spec.image else ()
    secrets = {action for service, action in SECRETS.items() for arn in spec.secrets.values() if f":{service}:" in arn}
    return (*pull, *LOGS, *sorted(secrets))


def _read_profile(reader: Reader, profile: str) -> RoleFacts | None:
    """Return the role of an instance profile, by name or ARN; None where it may not be read."""
    found = iam_role.role(reader, profile)
    if found is None:
        return None
    return RoleFacts(found.exists, found.trusted, () if found.role and found.registers else (iam_role.REGISTER,))


def _read_role(reader: Reader, arn: str, service: str, actions: Sequence[str]) -> RoleFacts | None:
    """Return a role by name or ARN; None where it may not be read."""
    name = arn.rpartition("/")[2]
    try:
        found = reader.ask("iam:GetRole", lambda iam: iam.get_role(RoleName=name), absent=("NoSuchEntity",))
    except Absent:
        return RoleFacts(exists=False)
    if found is None:
        return None
    missing = iam_role.lacking(reader, name, actions) if actions else ()
    return RoleFacts(True, iam_role.trusts(structure(found, "Role"), service), missing or ())


EVERY_PORT = range(65536)


def read_vpcs(reader: Reader, wanted: str) -> Collection[str] | None:
    """Return None where they may not be read."""
    rows = reader.pages("ec2:DescribeVpcs", "describe_vpcs", "Vpcs", Filters=_only("vpc-id", [wanted]))
    return None if rows is None else {str(row["VpcId"]) for row in rows}


def read_subnets(reader: Reader, wanted: Iterable[str]) -> dict[str, SubnetFacts] | None:
    """Return the existing subnets by id; None where they or the ways out of them may not be read."""
    # By filter: with ids, a single missing subnet makes EC2 refuse the whole request.
    only = _only("subnet-id", wanted)
    subnets = reader.pages("ec2:DescribeSubnets", "describe_subnets", "Subnets", Filters=only)
    if subnets is None:
        return None
    within = _only("vpc-id", sorted({str(row["VpcId"]) for row in subnets}))
    if not within[0]["Values"]:
        return {}
    tables = reader.pages("ec2:DescribeRouteTables", "describe_route_tables", "RouteTables", Filters=within)
    endpoints = reader.pages("ec2:DescribeVpcEndpoints", "describe_vpc_endpoints", "VpcEndpoints", Filters=within)
    if tables is None or endpoints is None:
        return None
    usable = _usable(reader, endpoints)
    return {
        str(row["SubnetId"]): SubnetFacts(
            vpc=str(row["VpcId"]),
            zone=str(row.get("AvailabilityZone") or ""),
            free_addresses=int(row.get("AvailableIpAddressCount", 1)),
            public_addresses=bool(row.get("MapPublicIpOnLaunch")),
            default_route=default_route(tables, str(row["SubnetId"]), str(row["VpcId"])),
            endpoints=_services(reader.region, usable, row, _table_of(tables, row)),
        )
        for row in subnets
    }


def _usable(reader: Reader, endpoints: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the working endpoints: available, under the service's own name, and open to HTTPS if they have groups."""
    ids = sorted({str(group["GroupId"]) for row in endpoints for group in structures(row, "Groups")})
    groups = {}
    if ids:
        rows = reader.pages(
            "ec2:DescribeSecurityGroups", "describe_security_groups", "SecurityGroups", Filters=_only("group-id", ids)
        )
        # An unreadable value counts as open: a finding has to be certain.
        groups = {str(row["GroupId"]): _open_ports(row, "IpPermissions") for row in rows or ()}
    found: list[dict[str, Any]] = []
    for row in endpoints:
        interface = row.get("VpcEndpointType") == "Interface"
        own = [groups[str(each["GroupId"])] for each in structures(row, "Groups") if str(each["GroupId"]) in groups]
        closed = bool(own) and not any(HTTPS in opening for openings in own for opening in openings)
        if str(row.get("State")).lower() == "available" and not (interface and (closed or not _private_dns(row))):
            found.append(row)
    return found


def _private_dns(row: Mapping[str, Any]) -> bool:
    return bool(row.get("PrivateDnsEnabled"))


def _services(region: str, endpoints: list[dict[str, Any]], subnet: Mapping[str, Any], table: str) -> frozenset[str]:
    """Return what a subnet reaches: interface endpoints of its VPC by name, gateway endpoints by its route table."""
    found: set[str] = set()
    for row in endpoints:
        gateway = row.get("VpcEndpointType") == "Gateway"
        if row["VpcId"] == subnet["VpcId"] and (not gateway or table in (row.get("RouteTableIds") or ())):
            found.add(str(row["ServiceName"]).rpartition(f".{region}.")[2])
    return frozenset(found)


def _table_of(tables: list[dict[str, Any]], subnet: Mapping[str, Any]) -> str:
    """Return the route table of a subnet: its own, else its VPC's main one."""
    main = ""
    for table in tables:
        for row in structures(table, "Associations"):
            if row.get("SubnetId") == subnet["SubnetId"]:
                return str(table["RouteTableId"])
            if row.get("Main") and table.get("VpcId") == subnet["VpcId"]:
                main = str(table["RouteTableId"])
    return main


def read_groups(reader: Reader, wanted: Iterable[str]) -> dict[str, GroupFacts] | None:
    """Return None where they may not be read."""
    rows = reader.pages(
        "ec2:DescribeSecurityGroups", "describe_security_groups", "SecurityGroups", Filters=_only("group-id", wanted)
    )
    if rows is None:
        return None
    return {
        str(row["GroupId"]): GroupFacts(str(row.get("VpcId") or ""), _open_ports(row, "IpPermissionsEgress"))
        for row in rows
    }


def _open_ports(group: Mapping[str, Any], direction: str) -> tuple[range, ...]:
    """Return TCP ports of a group's rules in one direction. A rule for all protocols has no ports."""
    found: list[range] = []
    for row in structures(group, direction):
        if row.get("IpProtocol") == "-1":
            found.append(EVERY_PORT)
        elif row.get("IpProtocol") in ("tcp", "6"):
            found.append(range(int(row.get("FromPort", 0)), int(row.get("ToPort", 65535)) + 1))
    return tuple(found)


def read_offers(reader: Reader) -> Mapping[str, Collection[str]] | None:
    """Return the zones that offer each instance type of the region; None where they may not be read."""
    rows = reader.pages(
        "ec2:DescribeInstanceTypeOfferings",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
    )
    if rows is None:
        return None
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(str(row["InstanceType"]), set()).add(str(row["Location"]))
    return found


def _only(name: str, values: Iterable[str]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": sorted(set(values))}]

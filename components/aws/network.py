"""A VPC for GPU instances: private subnets over the zones, a way out, endpoints that every Batch job needs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.catalog.aws_partitions import endpoint_service
from accel.diagnostics.findings import Finding
from accel.rules.aws import network as rules

from ..base import Component, Spec, join
from ..sdk import aws
from . import policies
from .node_cluster import WayOut, default_group

JOB_ENDPOINTS = ("ecr.api", "ecr.dkr", "logs")
"""Interface endpoints with which an image pull and a log line need no NAT gateway. Source:
https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html"""

AGENT_ENDPOINTS = ("ecs", "ecs-agent", "ecs-telemetry", "secretsmanager", "ssm")
"""Further endpoints that an ECS instance needs if it has no way out at all. Source:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/vpc-endpoints.html"""


class NetworkSpec(Spec):
    """A network that this stack creates."""

    cidr: str = Field(default="10.40.0.0/16", description="CIDR block of the VPC, /16 to /20")
    zones: list[str] = Field(max_length=6, description="Availability zones, in a fixed order")
    egress: Literal["nat", "nat-per-zone", "endpoints"] = Field(
        default="nat",
        description="nat: one NAT gateway; nat-per-zone: one in each zone; endpoints: none, AWS services and EFS only",
    )
    flow_logs_days: int | None = Field(
        default=14, ge=1, description="Retention of flow logs in days; null: no flow logs"
    )
    interface_endpoints: list[str] = Field(
        default=list(JOB_ENDPOINTS), description="Names of services that get an interface endpoint, such as ecr.api"
    )

    def check(self) -> list[Finding]:
        found = rules.network(self.cidr, self.zones)
        if not any(finding.field == "cidr" for finding in found) and not 16 <= int(self.cidr.partition("/")[2]) <= 20:
            found.append(rules.CIDR_SIZE.finding("cidr", f"is {self.cidr}", "write /16 to /20"))
        return found


@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """The spec and the network's location. `open_default`: members of the VPC's default group may reach each other and
    the same destinations as the instances."""

    spec: NetworkSpec
    region: str
    open_default: bool = False
    permissions_boundary: str | None = None


class Network(Component):
    """A VPC with private subnets for instances and, behind NAT, public ones for the gateways only. Replacing it
    (another cidr or list of zones) replaces every subnet, and with them each compute environment in it."""

    TYPE = "accel:aws:Network"

    vpc_id: pulumi.Output[str]
    subnet_ids: pulumi.Output[list[str]]
    security_group_id: pulumi.Output[str]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec
        vpc = aws.ec2.Vpc(
            name,
            cidr_block=spec.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags={"Name": name},
            opts=self.child(),
        )
        default_group(self, name, vpc.id, ways_out(spec) if args.open_default else None)
        private, public = blocks(spec.cidr, len(spec.zones))
        subnets = _subnets(self, f"{name}-private", vpc, spec.zones, private)
        tables = _tables(self, name, vpc, subnets)
        if spec.egress != "endpoints":
            _nat(self, name, vpc, spec, public, tables)
        group = _job_group(self, name, vpc, spec)
        _endpoints(self, name, args, vpc, subnets, tables)
        if spec.flow_logs_days is not None:
            _flow_logs(self, name, args, vpc, spec.flow_logs_days)
        self.vpc_id = vpc.id
        self.subnet_ids = pulumi.Output.all(*[subnet.id for subnet in subnets.values()])
        self.security_group_id = group.id
        self.finish()


def blocks(cidr: str, zones: int) -> tuple[list[str], list[str]]:
    """Return private and public blocks: eighths for instances, slices of the last for NAT. The private ones are as
    large as possible, since instances with up to 8 network interfaces each use up addresses fast."""
    eighths = list(ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=3))
    slices = list(eighths[-1].subnets(prefixlen_diff=5))
    return [str(block) for block in eighths[:zones]], [str(block) for block in slices[:zones]]


def ways_out(spec: NetworkSpec) -> list[WayOut]:
    """Return the permitted destinations: everywhere, or with endpoints only, HTTPS to them and to S3, and NFS to EFS.
    The mount targets of EFS lie in the VPC. Source: https://docs.aws.amazon.com/efs/latest/ug/network-access.html"""
    if spec.egress != "endpoints":
        return [WayOut("out", None, "0.0.0.0/0", "image pulls, data, logs")]
    return [
        WayOut("out", 443, "0.0.0.0/0", "image pulls, data, logs"),
        WayOut("nfs", 2049, spec.cidr, "EFS within the VPC"),
    ]


def _subnets(
    self: Component, name: str, vpc: aws.ec2.Vpc, zones: list[str], cidrs: list[str]
) -> dict[str, aws.ec2.Subnet]:
    return {
        zone: aws.ec2.Subnet(
            f"{name}-{zone}",
            vpc_id=vpc.id,
            availability_zone=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags={"Name": f"{name}-{zone}"},
            opts=self.child(),
        )
        for zone, cidr in zip(zones, cidrs, strict=True)
    }


def _tables(
    self: Component, name: str, vpc: aws.ec2.Vpc, subnets: dict[str, aws.ec2.Subnet]
) -> dict[str, aws.ec2.RouteTable]:
    tables: dict[str, aws.ec2.RouteTable] = {}
    for zone, subnet in subnets.items():
        tables[zone] = aws.ec2.RouteTable(
            f"{name}-private-{zone}",
            vpc_id=vpc.id,
            tags={"Name": f"{name}-private-{zone}"},
            opts=self.child(),
        )
        aws.ec2.RouteTableAssociation(
            f"{name}-private-{zone}", route_table_id=tables[zone].id, subnet_id=subnet.id, opts=self.child()
        )
    return tables


def _nat(
    self: Component,
    name: str,
    vpc: aws.ec2.Vpc,
    spec: NetworkSpec,
    cidrs: list[str],
    tables: dict[str, aws.ec2.RouteTable],
) -> None:
    gateway = aws.ec2.InternetGateway(name, vpc_id=vpc.id, tags={"Name": name}, opts=self.child())
    zones = spec.zones if spec.egress == "nat-per-zone" else spec.zones[:1]
    public = _subnets(self, f"{name}-public", vpc, zones, cidrs[: len(zones)])
    table = aws.ec2.RouteTable(f"{name}-public", vpc_id=vpc.id, tags={"Name": f"{name}-public"}, opts=self.child())
    outward = aws.ec2.Route(
        f"{name}-public",
        route_table_id=table.id,
        destination_cidr_block="0.0.0.0/0",
        gateway_id=gateway.id,
        opts=self.child(),
    )
    gateways: dict[str, aws.ec2.NatGateway] = {}
    for zone, subnet in public.items():
        aws.ec2.RouteTableAssociation(
            f"{name}-public-{zone}", route_table_id=table.id, subnet_id=subnet.id, opts=self.child()
        )
        address = aws.ec2.Eip(f"{name}-nat-{zone}", domain="vpc", opts=self.child())
        gateways[zone] = aws.ec2.NatGateway(
            f"{name}-{zone}",
            allocation_id=address.allocation_id,
            subnet_id=subnet.id,
            tags={"Name": f"{name}-{zone}"},
            # Without the way out AWS creates a NAT gateway in state failed.
            opts=self.child(depends_on=[outward]),
        )
    for zone, private in tables.items():
        aws.ec2.Route(
            f"{name}-private-{zone}",
            route_table_id=private.id,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=gateways.get(zone, gateways[zones[0]]).id,
            opts=self.child(),
        )


def _job_group(self: Component, name: str, vpc: aws.ec2.Vpc, spec: NetworkSpec) -> aws.ec2.SecurityGroup:
    group = aws.ec2.SecurityGroup(
        f"{name}-jobs",
        vpc_id=vpc.id,
        description="Batch instances",
        tags={"Name": f"{name}-jobs"},
        opts=self.child(),
    )
    for way in ways_out(spec):
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-jobs-{way.name}",
            security_group_id=group.id,
            cidr_ipv4=way.cidr,
            ip_protocol="tcp" if way.port else "-1",
            from_port=way.port,
            to_port=way.port,
            description=way.description,
            opts=self.child(),
        )
    return group


def _endpoints(
    self: Component,
    name: str,
    args: NetworkArgs,
    vpc: aws.ec2.Vpc,
    subnets: dict[str, aws.ec2.Subnet],
    tables: dict[str, aws.ec2.RouteTable],
) -> None:
    """Create a gateway endpoint for S3, which is free; the interface endpoints share one security group."""
    aws.ec2.VpcEndpoint(
        f"{name}-s3",
        vpc_id=vpc.id,
        service_name=f"com.amazonaws.{args.region}.s3",
        vpc_endpoint_type="Gateway",
        route_table_ids=[table.id for table in tables.values()],
        tags={"Name": f"{name}-s3"},
        opts=self.child(),
    )
    services = list(args.spec.interface_endpoints)
    if args.spec.egress == "endpoints":
        services += [service for service in (*JOB_ENDPOINTS, *AGENT_ENDPOINTS) if service not in services]
    if not services:
        return
    group = aws.ec2.SecurityGroup(
        f"{name}-endpoints",
        vpc_id=vpc.id,
        description="interface endpoints",
        tags={"Name": f"{name}-endpoints"},
        opts=self.child(),
    )
    aws.vpc.SecurityGroupIngressRule(
        f"{name}-endpoints-in",
        security_group_id=group.id,
        cidr_ipv4=args.spec.cidr,
        ip_protocol="tcp",
        from_port=443,
        to_port=443,
        description="from the VPC",
        opts=self.child(),
    )
    for service in services:
        aws.ec2.VpcEndpoint(
            f"{name}-{service.replace('.', '-')}",
            vpc_id=vpc.id,
            service_name=endpoint_service(args.region, service),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=[subnet.id for subnet in subnets.values()],
            security_group_ids=[group.id],
            tags={"Name": f"{name}-{service}"},
            opts=self.child(),
        )


def _flow_logs(self: Component, name: str, args: NetworkArgs, vpc: aws.ec2.Vpc, days: int) -> None:
    group = aws.cloudwatch.LogGroup(f"{name}-flow", retention_in_days=days, opts=self.child())
    role = aws.iam.Role(
        f"{name}-flow",
        assume_role_policy=policies.trust_policy("vpc-flow-logs.amazonaws.com"),
        permissions_boundary=args.permissions_boundary,
        opts=self.child(),
    )
    aws.iam.RolePolicy(
        f"{name}-flow",
        role=role.id,
        policy=policies.document(
            policies.allow(
                ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
                [group.arn, join(group.arn, ":*")],
            )
        ),
        opts=self.child(),
    )
    aws.ec2.FlowLog(
        name,
        vpc_id=vpc.id,
        traffic_type="REJECT",
        log_destination=group.arn,
        iam_role_arn=role.arn,
        opts=self.child(),
    )

"""Routes out of the subnets of a compute environment, as reported by EC2."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .reader import Reader
from .responses import structures


@dataclass(frozen=True)
class Network:
    """The target of each subnet's default route, and the services that it reaches by endpoint."""

    routes: Mapping[str, str]
    endpoints: Mapping[str, frozenset[str]]
    egress_allowed: bool


def network(reader: Reader, resources: Mapping[str, Any]) -> Network | None:
    """Return None if it may not be read."""
    subnets = list(resources.get("subnets") or ())
    found = reader.ask("ec2:DescribeSubnets", lambda ec2: ec2.describe_subnets(SubnetIds=subnets))
    if found is None:
        return None
    vpcs = {str(row["SubnetId"]): str(row["VpcId"]) for row in structures(found, "Subnets")}
    within = [{"Name": "vpc-id", "Values": sorted(set(vpcs.values()))}]
    tables = reader.pages("ec2:DescribeRouteTables", "describe_route_tables", "RouteTables", Filters=within)
    endpoints = reader.pages("ec2:DescribeVpcEndpoints", "describe_vpc_endpoints", "VpcEndpoints", Filters=within)
    if tables is None or endpoints is None:
        return None
    prefix = f"com.amazonaws.{reader.region}."
    services: dict[str, set[str]] = {}
    for row in endpoints:
        private = row.get("VpcEndpointType") != "Interface" or row.get("PrivateDnsEnabled")
        if str(row.get("State")).lower() == "available" and private:
            services.setdefault(str(row["VpcId"]), set()).add(str(row["ServiceName"]).rpartition(prefix)[2])
    return Network(
        routes={subnet: default_route(tables, subnet, vpc) for subnet, vpc in vpcs.items()},
        endpoints={subnet: frozenset(services.get(vpc, ())) for subnet, vpc in vpcs.items()},
        egress_allowed=_egress_allowed(reader, list(resources.get("securityGroupIds") or ())),
    )


def default_route(tables: list[dict[str, Any]], subnet: str, vpc: str) -> str:
    """Return its target, or "" if none works."""
    own = [each for each in tables if any(row.get("SubnetId") == subnet for row in structures(each, "Associations"))]
    main = [
        each
        for each in tables
        if each.get("VpcId") == vpc and any(row.get("Main") for row in structures(each, "Associations"))
    ]
    for route in structures((own or main or [{}])[0], "Routes"):
        everywhere = (route.get("DestinationCidrBlock"), route.get("DestinationIpv6CidrBlock"))
        if route.get("State") != "blackhole" and ("0.0.0.0/0" in everywhere or "::/0" in everywhere):
            # A NAT gateway, an internet gateway, a transit gateway, an instance, a peering, ...
            return next((str(value) for key, value in route.items() if key.endswith("Id") and value), "?")
    return ""


def _egress_allowed(reader: Reader, groups: list[str]) -> bool:
    """Return True without groups: those of the launch template apply then."""
    if not groups:
        return True
    found = reader.ask("ec2:DescribeSecurityGroups", lambda ec2: ec2.describe_security_groups(GroupIds=groups))
    return found is None or any(structures(each, "IpPermissionsEgress") for each in structures(found, "SecurityGroups"))

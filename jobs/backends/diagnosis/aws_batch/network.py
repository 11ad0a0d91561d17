"""Reads what leads out of the subnets of an environment."""

from collections.abc import Mapping
from typing import Any

from accel.clouds.aws.responses import structures
from accel.clouds.aws.routes import default_route

from .facts import Network
from .reader import Reader

Document = Mapping[str, Any]


def network(reader: Reader, resources: Document) -> Network | None:
    """The ways out of an environment's subnets; None where they may not be read."""
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


def _egress_allowed(reader: Reader, groups: list[str]) -> bool:
    """Whether any security group has a rule for outgoing traffic; without groups those of the launch template count."""
    if not groups:
        return True
    found = reader.ask("ec2:DescribeSecurityGroups", lambda ec2: ec2.describe_security_groups(GroupIds=groups))
    return found is None or any(structures(each, "IpPermissionsEgress") for each in structures(found, "SecurityGroups"))

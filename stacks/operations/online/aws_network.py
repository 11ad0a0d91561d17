"""Reads subnets, what leads out of them, and security groups."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from accel.clouds.aws.responses import parts
from accel.rules.aws.existing import HTTPS, GroupFacts, SubnetFacts
from jobs.backends.aws_batch.explain.network import default_route
from jobs.backends.aws_batch.explain.reader import Reader

EVERY_PORT = range(65536)


def read_vpcs(reader: Reader, wanted: str) -> Collection[str] | None:
    """The VPCs with this id; None where they may not be read."""
    rows = reader.pages("ec2:DescribeVpcs", "describe_vpcs", "Vpcs", Filters=_only("vpc-id", [wanted]))
    return None if rows is None else {str(row["VpcId"]) for row in rows}


def read_subnets(reader: Reader, wanted: Iterable[str]) -> dict[str, SubnetFacts] | None:
    """The subnets that are there, by id; None where they or the ways out of them may not be read."""
    # By filter: asked for by id, one that is missing makes EC2 answer for none.
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
    """Endpoints that answer: available, under the service's own name, and open to HTTPS where they have groups."""
    ids = sorted({str(group["GroupId"]) for row in endpoints for group in parts(row, "Groups")})
    groups = {}
    if ids:
        rows = reader.pages(
            "ec2:DescribeSecurityGroups", "describe_security_groups", "SecurityGroups", Filters=_only("group-id", ids)
        )
        # What may not be read is taken for open: a finding has to be certain.
        groups = {str(row["GroupId"]): _ports(row, "IpPermissions") for row in rows or ()}
    found: list[dict[str, Any]] = []
    for row in endpoints:
        interface = row.get("VpcEndpointType") == "Interface"
        own = [groups[str(each["GroupId"])] for each in parts(row, "Groups") if str(each["GroupId"]) in groups]
        closed = bool(own) and not any(HTTPS in opening for openings in own for opening in openings)
        if str(row.get("State")).lower() == "available" and not (interface and (closed or not _private_dns(row))):
            found.append(row)
    return found


def _private_dns(row: Mapping[str, Any]) -> bool:
    return bool(row.get("PrivateDnsEnabled"))


def _services(region: str, endpoints: list[dict[str, Any]], subnet: Mapping[str, Any], table: str) -> frozenset[str]:
    """What a subnet reaches: interface endpoints of its VPC by name, gateway endpoints by its route table."""
    found: set[str] = set()
    for row in endpoints:
        gateway = row.get("VpcEndpointType") == "Gateway"
        if row["VpcId"] == subnet["VpcId"] and (not gateway or table in (row.get("RouteTableIds") or ())):
            found.add(str(row["ServiceName"]).rpartition(f".{region}.")[2])
    return frozenset(found)


def _table_of(tables: list[dict[str, Any]], subnet: Mapping[str, Any]) -> str:
    """The route table of a subnet: its own, else its VPC's main one."""
    main = ""
    for table in tables:
        for row in parts(table, "Associations"):
            if row.get("SubnetId") == subnet["SubnetId"]:
                return str(table["RouteTableId"])
            if row.get("Main") and table.get("VpcId") == subnet["VpcId"]:
                main = str(table["RouteTableId"])
    return main


def read_groups(reader: Reader, wanted: Iterable[str]) -> dict[str, GroupFacts] | None:
    """The security groups that are there, by id; None where they may not be read."""
    rows = reader.pages(
        "ec2:DescribeSecurityGroups", "describe_security_groups", "SecurityGroups", Filters=_only("group-id", wanted)
    )
    if rows is None:
        return None
    return {
        str(row["GroupId"]): GroupFacts(str(row.get("VpcId") or ""), _ports(row, "IpPermissionsEgress")) for row in rows
    }


def _ports(group: Mapping[str, Any], direction: str) -> tuple[range, ...]:
    """TCP ports of a group's rules in one direction. A rule for all protocols has no ports."""
    found: list[range] = []
    for row in parts(group, direction):
        if row.get("IpProtocol") == "-1":
            found.append(EVERY_PORT)
        elif row.get("IpProtocol") in ("tcp", "6"):
            found.append(range(int(row.get("FromPort", 0)), int(row.get("ToPort", 65535)) + 1))
    return tuple(found)


def read_offers(reader: Reader) -> Mapping[str, Collection[str]] | None:
    """The zones that offer each instance type of the region; None where that may not be read."""
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

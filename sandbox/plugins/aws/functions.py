"""Functions of pulumi-aws that only read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accel.catalog.aws_partitions import partition_of

from ..mapping import adopted
from ..resource import State
from .cloud import Cloud


@dataclass(frozen=True)
class Function:
    service: str
    act: Callable[[Cloud, State], State]


class NotOne(Exception):
    """A look-up that must find one thing found none or several."""


def _filters(args: State, **direct: str) -> list[dict[str, Any]]:
    filters = [{"Name": api, "Values": [args[name]]} for name, api in direct.items() if args.get(name)]
    filters += [{"Name": f["name"], "Values": f["values"]} for f in args.get("filters", [])]
    return filters + [{"Name": f"tag:{k}", "Values": [v]} for k, v in args.get("tags", {}).items()]


def _zones(cloud: Cloud, args: State) -> State:
    filters = _filters(args, state="state")
    zones = cloud.call("describe_availability_zones", Filters=filters)["AvailabilityZones"]
    skipped = {*args.get("excludeNames", []), *args.get("excludeZoneIds", [])}
    kept = [z for z in zones if not {z["ZoneName"], z["ZoneId"]} & skipped]
    return {
        "id": cloud.region,
        "names": [zone["ZoneName"] for zone in kept],
        "zoneIds": [zone["ZoneId"] for zone in kept],
        "groupNames": sorted({zone.get("GroupName", cloud.region) for zone in kept}),
    }


def _identity(cloud: Cloud, args: State) -> State:
    found = cloud.call("get_caller_identity")
    return {
        "id": found["Account"],
        "accountId": found["Account"],
        "arn": found["Arn"],
        "userId": found["UserId"],
    }


def _partition(cloud: Cloud, args: State) -> State:
    found = partition_of(cloud.region)
    prefix = ".".join(reversed(found.suffix.split(".")))
    return {"id": found.name, "partition": found.name, "dnsSuffix": found.suffix, "reverseDnsPrefix": prefix}


def _region(cloud: Cloud, args: State) -> State:
    region = args.get("name") or cloud.region
    endpoint = f"ec2.{region}.amazonaws.com"
    return {"id": region, "name": region, "description": region, "endpoint": endpoint}


def _parameter(cloud: Cloud, args: State) -> State:
    found = cloud.call("get_parameter", Name=args["name"], WithDecryption=args.get("withDecryption", True))
    shown = {k[:1].lower() + k[1:]: v for k, v in found["Parameter"].items() if k in ("Value", "Type", "Version")}
    insecure = {"insecureValue": shown["value"]} if shown["type"] != "SecureString" else {}
    return {**shown, **insecure, "id": args["name"], "arn": found["Parameter"]["ARN"]}


def _one(cloud: Cloud, args: State, op: str, listed: str, ids: str, **direct: str) -> State:
    given = {ids: [args["id"]]} if args.get("id") else {}
    found = cloud.call(op, Filters=_filters(args, **direct), **given)[listed]
    if len(found) != 1:
        raise NotOne(f"{len(found)} {listed} match, exactly one has to")
    tags = {tag["Key"]: tag["Value"] for tag in found[0].pop("Tags", [])}
    return {**adopted(found[0], {}), "tags": tags}


def _subnet(cloud: Cloud, args: State) -> State:
    direct = {
        "vpcId": "vpc-id",
        "availabilityZone": "availability-zone",
        "cidrBlock": "cidr-block",
        "state": "state",
    }
    found = _one(cloud, args, "describe_subnets", "Subnets", "SubnetIds", **direct)
    return {**found, "id": found["subnetId"], "arn": found["subnetArn"]}


def _vpc(cloud: Cloud, args: State) -> State:
    direct = {"cidrBlock": "cidr", "state": "state"}
    wanted = {**args, "filters": [*args.get("filters", [])]}
    if args.get("default") is not None:
        wanted["filters"].append({"name": "is-default", "values": [str(args["default"]).lower()]})
    found = _one(cloud, wanted, "describe_vpcs", "Vpcs", "VpcIds", **direct)
    arn = f"arn:{cloud.facts()['partition']}:ec2:{cloud.region}:{cloud.account.number}:vpc/{found['vpcId']}"
    return {**found, "id": found["vpcId"], "arn": arn, "default": found.get("isDefault", False)}


def _group(cloud: Cloud, args: State) -> State:
    direct = {"vpcId": "vpc-id", "name": "group-name"}
    found = _one(cloud, args, "describe_security_groups", "SecurityGroups", "GroupIds", **direct)
    arn = (
        f"arn:{cloud.facts()['partition']}:ec2:{cloud.region}:{cloud.account.number}:security-group/{found['groupId']}"
    )
    return {**found, "id": found["groupId"], "name": found["groupName"], "arn": arn}


def _subnets(cloud: Cloud, args: State) -> State:
    found = cloud.call("describe_subnets", Filters=_filters(args))["Subnets"]
    return {"id": cloud.region, "ids": [subnet["SubnetId"] for subnet in found]}


FUNCTIONS = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": Function("ec2", _zones),
    "aws:index/getCallerIdentity:getCallerIdentity": Function("sts", _identity),
    "aws:index/getPartition:getPartition": Function("sts", _partition),
    "aws:index/getRegion:getRegion": Function("sts", _region),
    "aws:ssm/getParameter:getParameter": Function("ssm", _parameter),
    "aws:ec2/getSubnet:getSubnet": Function("ec2", _subnet),
    "aws:ec2/getSubnets:getSubnets": Function("ec2", _subnets),
    "aws:ec2/getVpc:getVpc": Function("ec2", _vpc),
    "aws:ec2/getSecurityGroup:getSecurityGroup": Function("ec2", _group),
}

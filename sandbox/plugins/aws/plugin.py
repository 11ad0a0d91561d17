"""pulumi-aws as the engine sees it: tables behind the protocol, errors in one line."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from accel.catalog.aws_partitions import partition_of

from ..mapping import Unmapped, adopted, has_unknown
from ..planning import difference, preview_create, preview_update
from ..resource import Kind, State, load
from ..server import PartlyMade, ProviderError
from .cloud import Account, Cloud
from .life import InitFailed, NotAnArn, UnexpectedState, checked, create, delete, read, update


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


_TABLES = sorted(Path(__file__).with_name("tables").glob("*.yaml"))
KINDS: dict[str, Kind] = {token: kind for path in _TABLES for token, kind in load(path, __package__ or "").items()}
_SETTINGS = {"region", "defaultTags", "version", "allowedAccountIds"}
# allowedAccountIds is taken and not held against the sandbox's own account: any environment can be previewed here.
_ERRORS = (ClientError, BotoCoreError, Unmapped, UnexpectedState, NotOne)


class AwsPlugin:
    def __init__(self, url: str, key: str) -> None:
        self.version = version("pulumi_aws")
        self.account = Account(url, key)

    def configured(self, args: State) -> State:
        return {key: _decoded(value) for key, value in args.items()}

    def check_config(self, news: State) -> list[tuple[str, str]]:
        if not news.get("region"):
            return [("region", "Missing region configuration: set aws:region, or `region` of the provider")]
        unknown = sorted(key for key in news if key not in _SETTINGS and not key.startswith("skip"))
        return [(key, f"the sandbox's aws provider does not know the setting {key}") for key in unknown]

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        try:
            return checked(_kind(type), name, olds, news, config, seed)
        except NotAnArn as error:
            raise ProviderError(f"{type} resource '{name}' has a problem: {error}") from error

    def diff(self, type: str, olds: State, news: State) -> tuple[dict[str, str], set[str], bool]:
        return difference(_kind(type), olds, news)

    def create(self, type: str, inputs: State, preview: bool) -> tuple[str, State]:
        kind = _kind(type)
        if preview:
            return "", preview_create(kind, inputs)
        try:
            return create(self.account, kind, inputs)
        except InitFailed as error:
            raise PartlyMade(error.id, error.outputs, inputs, _said(error.__cause__)) from error
        except _ERRORS as error:
            raise ProviderError(f"creating {kind.title} ({_label(kind, inputs)}): {_said(error)}") from error

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        kind = _kind(type)
        try:
            region = {"region": config["region"]} if kind.regional else {}
            return read(self.account, kind, id, {**region, **inputs}, outputs)
        except _ERRORS as error:
            raise ProviderError(f"reading {kind.title} ({id}): {_said(error)}") from error

    def update(self, type: str, id: str, outputs: State, olds: State, news: State, preview: bool) -> State:
        kind = _kind(type)
        if preview:
            return preview_update(kind, outputs, olds, news)
        try:
            return update(self.account, kind, id, outputs, olds, news)
        except _ERRORS as error:
            raise ProviderError(f"updating {kind.title} ({id}): {_said(error)}") from error

    def delete(self, type: str, id: str, outputs: State) -> None:
        kind = _kind(type)
        try:
            delete(self.account, kind, id, outputs)
        except _ERRORS as error:
            raise ProviderError(f"deleting {kind.title} ({id}): {_said(error)}") from error

    def invoke(self, token: str, args: State, config: State) -> State:
        function = FUNCTIONS.get(token)
        if function is None:
            raise ProviderError(f"the sandbox's aws provider has no function {token}")
        region = args.get("region") or config["region"]
        if has_unknown(args):
            return {}
        try:
            return {
                **args,
                **function.act(Cloud(self.account, region, function.service), args),
                "region": region,
            }
        except _ERRORS as error:
            raise ProviderError(f"invoking {token}: {_said(error)}") from error


def _kind(type: str) -> Kind:
    if type not in KINDS:
        raise ProviderError(f"the sandbox's aws provider has no resource type {type}")
    return KINDS[type]


def _decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value


def _label(kind: Kind, inputs: State) -> str:
    return str(inputs.get(kind.autoname.prop if kind.autoname else "name", "no name"))


def _said(error: BaseException | None) -> str:
    """The error in one line, an API's as aws-sdk-go words it."""
    if isinstance(error, ClientError):
        body = error.response.get("Error", {})
        text = f"operation error {error.operation_name}: {body.get('Code')}: {body.get('Message')}"
    else:
        text = str(error)
    return re.sub(r"\s*\n\s*", "; ", text.strip())

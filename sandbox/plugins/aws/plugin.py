"""pulumi-aws as the engine sees it: tables behind the protocol, errors in one line. Every step of a resource is
generic: it works for any row of the tables."""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jmespath
from botocore.exceptions import BotoCoreError, ClientError

from accel.catalog.aws_partitions import partition_of

from ..mapping import UNKNOWN, UnmappedName, fill, has_unknown, observe, to_pulumi
from ..planning import OURS, TablePlugin, changed_names, complete_inputs, retained_outputs
from ..resource import Kind, State, Step, load
from ..server import PartialCreation, ProviderError, one_line
from .cloud import Account, Cloud, is_missing

_POLL_S = 0.05
_ENDED = {"DELETED", "deleted"}


class InitFailure(Exception):
    """Error of a step after the creation: the resource exists."""

    def __init__(self, id: str, outputs: State) -> None:
        super().__init__(id)
        self.id, self.outputs = id, outputs


class NotAnArn(Exception):
    """Input that the provider accepts only as an ARN."""


class UnexpectedState(Exception):
    """Status, other than the wanted one, in which a wait ended."""


def _cloud(account: Account, kind: Kind, state: Mapping[str, Any]) -> Cloud:
    return Cloud(account, state.get("region") or "us-east-1", kind.service, kind.names)


def _run(step: Step, cloud: Cloud, kind: Kind, state: State, old: State, found: State) -> Any:
    if step.act:
        return step.act(cloud, state, old)
    sent: State = {}
    if step.spread:
        elsewhere = {name for other in kind.sets for name in other.on} | kind.own | OURS
        for name in [name for name in step.on if name in state] or sorted(state.keys() - elsewhere):
            if cloud.spelling(step.op, name):
                sent[name] = state[name]
            elif not old:
                raise UnmappedName(f"property {name} is not mapped to {step.op}")
        if step is kind.create and state.get("tagsAll") and cloud.spelling(step.op, "tags"):
            sent["tags"] = state["tagsAll"]
    if step is kind.create and kind.tagged and state.get("tagsAll"):
        pairs = [{"key": key, "value": value} for key, value in state["tagsAll"].items()]
        sent["tagSpecifications"] = [{"resourceType": kind.tagged, "tags": pairs}]
    return cloud.call(step.op, **{**sent, **(fill(dict(step.params), state, found) or {})})


def _describe(cloud: Cloud, kind: Kind, state: State) -> State | None:
    try:
        found = jmespath.search(kind.found, _run(kind.read, cloud, kind, state, {}, {}) or {})
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    ended = found and kind.wait and jmespath.search(kind.wait.status, found) in _ENDED
    return None if ended else found or None


def _settled(cloud: Cloud, kind: Kind, state: State, doing: str) -> State | None:
    """Wait for a ready status, and return the description; None where the resource is gone."""
    give_up = time.monotonic() + float(os.environ.get("SANDBOX_WAIT_S", "120"))
    while True:
        found, wait = _describe(cloud, kind, state), kind.wait
        if found is None or wait is None:
            return found
        status, deleting = jmespath.search(wait.status, found), doing == "delete"
        if status in wait.ready and not deleting:
            return found
        wanted = "''" if deleting else " or ".join(f"'{status}'" for status in sorted(wait.ready))
        about, reason = (
            f"waiting for {kind.title} ({state['id']}) {doing}",
            jmespath.search(wait.reason, found),
        )
        if status not in wait.pending | wait.ready:
            said = f". last error: {reason}" if reason else ""
            raise UnexpectedState(f"{about}: unexpected state '{status}', wanted target {wanted}{said}")
        if time.monotonic() > give_up:
            what = "resource to be gone" if deleting else f"state to become {wanted}"
            text = f"timeout while waiting for {what} (last state: '{status}', timeout: {wait.patience})"
            raise UnexpectedState(f"{about}: {text}")
        time.sleep(_POLL_S)


def _outputs(cloud: Cloud, kind: Kind, state: State, found: State) -> State:
    made = {name: value for name, value in state.items() if name != "__defaults"}
    for name, expression in kind.outputs.items():
        if expression.startswith(("arn:", "{")):
            made[name] = expression.format_map({**made, **cloud.facts()})
        else:
            value = jmespath.search(expression, found)
            made[name] = value.isoformat() if isinstance(value, datetime) else value
    return {name: value for name, value in made.items() if value is not None}


def _retagged(old: State, new: State) -> State:
    before, after = old.get("tagsAll") or {}, new.get("tagsAll") or {}
    put = {key: value for key, value in after.items() if before.get(key) != value}
    return {**new, "tagsPut": put, "tagsDropped": sorted(before.keys() - after.keys())}


def create_resource(account: Account, kind: Kind, inputs: State) -> tuple[str, State]:
    cloud, state = _cloud(account, kind, inputs), dict(inputs)
    answer = _run(kind.create, cloud, kind, state, {}, {}) or {}
    if kind.id.startswith("{"):
        state["id"] = kind.id.format_map({**cloud.facts(), **answer, **state})
    else:
        state["id"] = jmespath.search(kind.id, answer)
    try:
        found = _settled(cloud, kind, state, "create") or {}
        for step in kind.sets:
            if not step.on or any(state.get(name) is not None for name in step.on):
                _run(step, cloud, kind, state, {}, found)
        tagged = kind.tagged or (kind.create.spread and cloud.spelling(kind.create.op, "tags"))
        if kind.tag and state.get("tagsAll") and not tagged:
            _run(kind.tag, cloud, kind, _retagged({}, state), {}, found)
        if kind.sets:
            found = _settled(cloud, kind, state, "update") or {}
    except (ClientError, UnexpectedState) as error:
        raise InitFailure(state["id"], state) from error
    return state["id"], _outputs(cloud, kind, state, found)


def read_resource(account: Account, kind: Kind, id: str, inputs: State, outputs: State) -> tuple[State, State] | None:
    """Return inputs and outputs as the cloud has them; None where the resource does not exist."""
    state = {**inputs, **outputs, "id": outputs.get("id", id)}
    cloud = _cloud(account, kind, state)
    found = _describe(cloud, kind, state)
    if found is None:
        return None
    if not outputs:
        inputs = _imported(cloud, kind, found, inputs)
    known = {name: value for name, value in inputs.items() if name not in kind.own | OURS}
    seen = {**inputs, **observe(known, found, kind.names)}
    if kind.taggable:
        now, own = _tags(found), inputs.get("tags", {})
        of_provider = {key: value for key, value in inputs.get("tagsAll", {}).items() if key not in own}
        tags = {key: value for key, value in now.items() if of_provider.get(key) != value}
        seen |= {"tagsAll": now} | ({"tags": tags} if tags or "tags" in inputs else {})
    return seen, _outputs(cloud, kind, {**state, **seen}, found)


def _tags(found: State) -> dict[str, str]:
    """Return the tags of a description, in any of its forms, without those that AWS itself sets."""
    listed = found.get("Tags") or found.get("tags") or found.get("TagSet") or {}
    if isinstance(listed, list):
        listed = {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) for tag in listed}
    return {key: value for key, value in listed.items() if not key.startswith("aws:")}


def _imported(cloud: Cloud, kind: Kind, found: State, given: State) -> State:
    """Return inputs of a resource that Pulumi did not create: what the create call accepts and the description has."""
    back, inputs = {api: name for name, api in kind.names.items()}, dict(kind.defaults)
    for api in cloud.inputs(kind.create.op).members if kind.create.op else ():
        name = back.get(api, api[:1].lower() + api[1:])
        if found.get(api) not in (None, "", [], {}) and name not in OURS | kind.unknown:
            value = to_pulumi(found[api], kind.names)
            inputs[name] = json.dumps(value) if name in kind.texts else value
    return {**inputs, **given}


def update_resource(account: Account, kind: Kind, id: str, outputs: State, olds: State, news: State) -> State:
    """Update a resource from the old inputs to the new ones, and return its outputs. `outputs` are the old ones."""
    cloud, named = _cloud(account, kind, news), {"id": outputs.get("id", id)}
    before, state = ({**retained_outputs(kind, outputs), **side, **named} for side in (olds, news))
    moved = changed_names(olds, news) - kind.own
    found = _describe(cloud, kind, state) or {}
    for step in (*kind.sets, *kind.updates):
        if moved & set(step.on) if step.on else moved - OURS:
            _run(step, cloud, kind, state, before, found)
            found = _settled(cloud, kind, state, "update") or {}
    tags = _retagged(before, state)
    if kind.untag and tags["tagsDropped"]:
        _run(kind.untag, cloud, kind, tags, before, found)
    if kind.tag and (tags["tagsPut"] or (tags["tagsDropped"] and not kind.untag)):
        _run(kind.tag, cloud, kind, tags, before, found)
    return _outputs(cloud, kind, state, _settled(cloud, kind, state, "update") or {})


def delete_resource(account: Account, kind: Kind, id: str, outputs: State) -> None:
    cloud, state = _cloud(account, kind, outputs), {**outputs, "id": outputs.get("id", id)}
    found = _describe(cloud, kind, state)
    if found is None:
        return
    for step in kind.deletes:
        try:
            _run(step, cloud, kind, state, {}, found)
        except ClientError as error:
            if not is_missing(error) or _describe(cloud, kind, state):
                raise
        if step is not kind.deletes[-1]:
            with contextlib.suppress(UnexpectedState):  # an INVALID environment is deleted all the same
                _settled(cloud, kind, state, "update")
    if kind.wait:
        _settled(cloud, kind, state, "delete")


def _completed_inputs(kind: Kind, name: str, olds: State, news: State, config: State, seed: str) -> State:
    """Return the inputs completed as pulumi-aws does: defaults, an automatic name, the region, all tags."""
    inputs, defaulted = complete_inputs(kind, name, olds, news, seed)
    if kind.regional:
        inputs.setdefault("region", config.get("region"))
    if kind.taggable:
        own, of_provider = inputs.get("tags", {}), (config.get("defaultTags") or {}).get("tags") or {}
        unknown = has_unknown(own) or has_unknown(of_provider)
        inputs["tagsAll"] = UNKNOWN if unknown else {**of_provider, **own}
    _only_arns(kind, inputs)
    return {**inputs, "__defaults": defaulted}


def _only_arns(kind: Kind, inputs: State) -> None:
    """Check ARNs by the first part of terraform-provider-aws's verify.ValidARN. Source:
    https://github.com/hashicorp/terraform-provider-aws/blob/main/internal/verify/validate.go"""
    for path in kind.arns:
        value: Any = inputs
        for step in path.split("."):
            name = re.sub(r"_(\w)", lambda part: part[1].upper(), step)
            value = value if step.isdigit() else value.get(name) if isinstance(value, dict) else None
        if not value or value == UNKNOWN or not isinstance(value, str):
            continue
        fault = (
            "invalid prefix" if not value.startswith("arn:") else "not enough sections" if value.count(":") < 5 else ""
        )
        if fault:
            raise NotAnArn(f'"{path}" ({value}) is an invalid ARN: arn: {fault}')


@dataclass(frozen=True)
class Function:
    service: str
    act: Callable[[Cloud, State], State]


class NotOne(Exception):
    """Result of a lookup with none or several matches where there must be one."""


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
    return {**to_pulumi(found[0], {}), "tags": tags}


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
# allowedAccountIds is accepted and not checked against the sandbox's own account: any environment can be previewed.
_ERRORS = (ClientError, BotoCoreError, UnmappedName, UnexpectedState, NotOne)


class AwsPlugin(TablePlugin[Kind, Function]):
    def __init__(self, url: str, key: str) -> None:
        super().__init__("aws", KINDS, FUNCTIONS)
        self.version = version("pulumi_aws")
        self.account = Account(url, key)

    def check_config(self, news: State) -> list[tuple[str, str]]:
        if not news.get("region"):
            return [("region", "Missing region configuration: set aws:region, or `region` of the provider")]
        return self.unknown_settings(key for key in news if key not in _SETTINGS and not key.startswith("skip"))

    def check(self, type: str, name: str, olds: State, news: State, config: State, seed: str) -> State:
        try:
            return _completed_inputs(self.kind(type), name, olds, news, config, seed)
        except NotAnArn as error:
            raise ProviderError(f"{type} resource '{name}' has a problem: {error}") from error

    def _create(self, kind: Kind, inputs: State) -> tuple[str, State]:
        try:
            return create_resource(self.account, kind, inputs)
        except InitFailure as error:
            raise PartialCreation(error.id, error.outputs, inputs, _said(error.__cause__)) from error
        except _ERRORS as error:
            raise ProviderError(f"creating {kind.title} ({_label(kind, inputs)}): {_said(error)}") from error

    def read(self, type: str, id: str, inputs: State, outputs: State, config: State) -> Any:
        kind = self.kind(type)
        try:
            region = {"region": config["region"]} if kind.regional else {}
            return read_resource(self.account, kind, id, {**region, **inputs}, outputs)
        except _ERRORS as error:
            raise ProviderError(f"reading {kind.title} ({id}): {_said(error)}") from error

    def _update(self, kind: Kind, id: str, outputs: State, olds: State, news: State) -> State:
        try:
            return update_resource(self.account, kind, id, outputs, olds, news)
        except _ERRORS as error:
            raise ProviderError(f"updating {kind.title} ({id}): {_said(error)}") from error

    def delete(self, type: str, id: str, outputs: State) -> None:
        kind = self.kind(type)
        try:
            delete_resource(self.account, kind, id, outputs)
        except _ERRORS as error:
            raise ProviderError(f"deleting {kind.title} ({id}): {_said(error)}") from error

    def invoke(self, token: str, args: State, config: State) -> State:
        function = self.function(token)
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


def _label(kind: Kind, inputs: State) -> str:
    return str(inputs.get(kind.autoname.prop if kind.autoname else "name", "no name"))


def _said(error: BaseException | None) -> str:
    """Return the error in one line, an API's as aws-sdk-go words it."""
    if isinstance(error, ClientError):
        body = error.response.get("Error", {})
        text = f"operation error {error.operation_name}: {body.get('Code')}: {body.get('Message')}"
    else:
        text = str(error)
    return one_line(text)

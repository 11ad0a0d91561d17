"""EC2's placement groups, of which moto 5.2.1 has none: made, tagged, shown and removed by name."""

import secrets
from collections import defaultdict
from typing import Any
from urllib.parse import parse_qsl

from moto.core.serialize import EC2Serializer
from moto.core.utils import get_service_model
from moto.ec2.models import ec2_backends

EC2: Any = get_service_model("ec2")
Group = dict[str, Any]
_GROUPS: dict[tuple[str, str], dict[str, Group]] = defaultdict(dict)


class _Refused(Exception):
    pass


def answer(operation: str, account: str, region: str, body: bytes) -> tuple[int, bytes] | None:
    """Status and XML for an operation on placement groups; None for any other."""
    given = dict(parse_qsl(body.decode(), keep_blank_values=True))
    act = ACTS.get(operation)
    if act is None or (act is _tag and not given.get("ResourceId.1", "").startswith("pg-")):
        return None
    try:
        found = act(_GROUPS[account, region], given, account, region)
    except _Refused as refused:
        code, text = refused.args
        errors = f"<Errors><Error><Code>{code}</Code><Message>{text}</Message></Error></Errors>"
        return 400, f"<Response>{errors}<RequestID>0</RequestID></Response>".encode()
    serialized: Any = EC2Serializer(EC2.operation_model(operation)).serialize(found)["body"]
    return 200, serialized if isinstance(serialized, bytes) else serialized.encode()


def _tags(group: Group, account: str, region: str) -> Group:
    tags: Any = ec2_backends[account][region].tags[group["GroupId"]]
    return {**group, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _create(groups: dict[str, Group], given: dict[str, str], account: str, region: str) -> Group:
    name = given["GroupName"]
    if name in groups:
        raise _Refused("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    arn = f"arn:aws:ec2:{region}:{account}:placement-group/{name}"
    made = {"GroupName": name, "GroupId": f"pg-{secrets.token_hex(9)[:17]}", "GroupArn": arn, "State": "available"}
    groups[name] = {**made, "Strategy": given.get("Strategy", "cluster")}
    return {"PlacementGroup": _tags(groups[name], account, region)}


def _tag(groups: dict[str, Group], given: dict[str, str], account: str, region: str) -> Group:
    numbers = [key.split(".")[1] for key in given if key.startswith("Tag.") and key.endswith(".Key")]
    tags = {given[f"Tag.{n}.Key"]: given.get(f"Tag.{n}.Value", "") for n in numbers}
    kept: Any = ec2_backends[account][region].tags[given["ResourceId.1"]]
    if given["Action"] == "CreateTags":
        kept.update(tags)
    else:
        for key in tags:
            kept.pop(key, None)
    return {}


def _describe(groups: dict[str, Group], given: dict[str, str], account: str, region: str) -> Group:
    names = [value for key, value in given.items() if key.startswith("GroupName.")] or list(groups)
    return {"PlacementGroups": [_tags(_found(groups, name), account, region) for name in names]}


def _delete(groups: dict[str, Group], given: dict[str, str], account: str, region: str) -> Group:
    _found(groups, given["GroupName"])
    del groups[given["GroupName"]]
    return {}


ACTS = {
    "CreatePlacementGroup": _create,
    "CreateTags": _tag,
    "DeletePlacementGroup": _delete,
    "DeleteTags": _tag,
    "DescribePlacementGroups": _describe,
}


def _found(groups: dict[str, Group], name: str) -> Group:
    if name not in groups:
        raise _Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return groups[name]

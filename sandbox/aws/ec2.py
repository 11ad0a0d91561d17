"""EC2 where moto 5.2.1 has less: placement groups, capacity reservations, and NAT gateways that release their
addresses. Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteNatGateway.html"""

import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from moto.core.serialize import EC2Serializer
from moto.core.utils import get_service_model
from moto.ec2.models import ec2_backends

from .answers import Answer

_EC2: Any = get_service_model("ec2")
_Item = dict[str, Any]
_GROUPS: dict[tuple[str, str], dict[str, _Item]] = defaultdict(dict)
_RESERVATIONS: dict[tuple[str, str], dict[str, _Item]] = defaultdict(dict)
_XML = [("Content-Type", "text/xml")]


class _Refusal(Exception):
    """Code and text of an error."""


@dataclass(frozen=True)
class _Call:
    account: str
    region: str
    given: Mapping[str, str]

    @property
    def groups(self) -> dict[str, _Item]:
        return _GROUPS[self.account, self.region]

    @property
    def reservations(self) -> dict[str, _Item]:
        return _RESERVATIONS[self.account, self.region]

    def values(self, prefix: str) -> list[str]:
        return [value for key, value in self.given.items() if key.startswith(prefix)]

    def tags(self, item: str) -> Any:
        return ec2_backends[self.account][self.region].tags[item]


def answer(operation: str, account: str, region: str, body: bytes) -> Answer | None:
    """Answer an operation on placement groups or capacity reservations; return None for any other, left to moto."""
    act = _OPERATIONS.get(operation)
    call = _Call(account, region, dict(parse_qsl(body.decode(), keep_blank_values=True)) if act else {})
    if act is None or (act is _tag_group and not call.given.get("ResourceId.1", "").startswith("pg-")):
        return None
    try:
        found = act(call)
    except _Refusal as refusal:
        code, text = refusal.args
        errors = f"<Errors><Error><Code>{code}</Code><Message>{text}</Message></Error></Errors>"
        return 400, _XML, f"<Response>{errors}<RequestID>0</RequestID></Response>".encode()
    serialized: Any = EC2Serializer(_EC2.operation_model(operation)).serialize(found)["body"]
    return 200, _XML, serialized if isinstance(serialized, bytes) else serialized.encode()


def install() -> None:
    """Patch moto: a deleted NAT gateway disassociates its address and removes its interface."""
    from moto.ec2.models.nat_gateways import NatGatewayBackend

    delete = NatGatewayBackend.delete_nat_gateway

    def released(self: Any, nat_gateway_id: str) -> Any:
        gateway = delete(self, nat_gateway_id)
        for address in [each for each in self.addresses if each.eni is gateway._eni]:
            self.disassociate_address(address=address.public_ip)
        self.enis.pop(gateway._eni.id, None)
        return gateway

    NatGatewayBackend.delete_nat_gateway = released  # type: ignore[method-assign]


def _group_and_tags(call: _Call, group: _Item) -> _Item:
    tags = call.tags(group["GroupId"])
    return {**group, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _group(call: _Call, name: str) -> _Item:
    if name not in call.groups:
        raise _Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return call.groups[name]


def _create_group(call: _Call) -> _Item:
    name = call.given["GroupName"]
    if name in call.groups:
        raise _Refusal("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    arn = f"arn:aws:ec2:{call.region}:{call.account}:placement-group/{name}"
    group = {"GroupName": name, "GroupId": f"pg-{secrets.token_hex(9)[:17]}", "GroupArn": arn, "State": "available"}
    call.groups[name] = {**group, "Strategy": call.given.get("Strategy", "cluster")}
    return {"PlacementGroup": _group_and_tags(call, call.groups[name])}


def _tag_group(call: _Call) -> _Item:
    given = call.given
    numbers = [key.split(".")[1] for key in given if key.startswith("Tag.") and key.endswith(".Key")]
    tags = {given[f"Tag.{n}.Key"]: given.get(f"Tag.{n}.Value", "") for n in numbers}
    now = call.tags(given["ResourceId.1"])
    if given["Action"] == "CreateTags":
        now.update(tags)
    else:
        for key in tags:
            now.pop(key, None)
    return {}


def _describe_groups(call: _Call) -> _Item:
    names = call.values("GroupName.") or list(call.groups)
    return {"PlacementGroups": [_group_and_tags(call, _group(call, name)) for name in names]}


def _delete_group(call: _Call) -> _Item:
    _group(call, call.given["GroupName"])
    del call.groups[call.given["GroupName"]]
    return {}


def _reservation_ids(call: _Call) -> list[str]:
    ids = call.values("CapacityReservationId")
    if unknown := [each for each in ids if each not in call.reservations]:
        text = f"The capacity reservation ID '{unknown[0]}' does not exist"
        raise _Refusal("InvalidCapacityReservationId.NotFound", text)
    return ids


def _create_reservation(call: _Call) -> _Item:
    given, end = call.given, call.given.get("EndDate")
    reservation: _Item = {
        "CapacityReservationId": f"cr-{secrets.token_hex(9)[:17]}",
        "InstanceType": given["InstanceType"],
        "AvailabilityZone": given.get("AvailabilityZone", ""),
        "TotalInstanceCount": int(given["InstanceCount"]),
        "State": "active",
        "EndDateType": "limited" if end else "unlimited",
        **({"EndDate": datetime.fromisoformat(end).astimezone(UTC)} if end else {}),
    }
    call.reservations[reservation["CapacityReservationId"]] = reservation
    return {"CapacityReservation": reservation}


def _describe_reservations(call: _Call) -> _Item:
    ids = _reservation_ids(call)
    return {"CapacityReservations": [call.reservations[each] for each in ids or call.reservations]}


def _cancel_reservation(call: _Call) -> _Item:
    call.reservations[_reservation_ids(call)[0]]["State"] = "cancelled"
    return {"Return": True}


_OPERATIONS: Mapping[str, Callable[[_Call], _Item]] = {
    "CancelCapacityReservation": _cancel_reservation,
    "CreateCapacityReservation": _create_reservation,
    "CreatePlacementGroup": _create_group,
    "CreateTags": _tag_group,
    "DeletePlacementGroup": _delete_group,
    "DeleteTags": _tag_group,
    "DescribeCapacityReservations": _describe_reservations,
    "DescribePlacementGroups": _describe_groups,
}

"""EC2's capacity reservations, of which moto 5.2.1 has none: made, shown by id, and cancelled."""

import secrets
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from moto.core.serialize import EC2Serializer
from moto.core.utils import get_service_model

EC2: Any = get_service_model("ec2")
Reservation = dict[str, Any]
_MADE: dict[tuple[str, str], dict[str, Reservation]] = defaultdict(dict)


def answer(operation: str, account: str, region: str, body: bytes) -> tuple[int, bytes] | None:
    """Status and XML for an operation on capacity reservations; None for any other."""
    act = ACTS.get(operation)
    if act is None:
        return None
    given = dict(parse_qsl(body.decode(), keep_blank_values=True))
    ids = [value for key, value in given.items() if key.startswith("CapacityReservationId")]
    made = _MADE[account, region]
    if unknown := [each for each in ids if each not in made]:
        text = f"The capacity reservation ID '{unknown[0]}' does not exist"
        error = f"<Errors><Error><Code>InvalidCapacityReservationId.NotFound</Code><Message>{text}</Message></Error>"
        return 400, f"<Response>{error}</Errors><RequestID>0</RequestID></Response>".encode()
    found = act(made, given, ids)
    serialized: Any = EC2Serializer(EC2.operation_model(operation)).serialize(found)["body"]
    return 200, serialized if isinstance(serialized, bytes) else serialized.encode()


def _create(made: dict[str, Reservation], given: dict[str, str], ids: list[str]) -> Reservation:
    end = given.get("EndDate")
    reservation: Reservation = {
        "CapacityReservationId": f"cr-{secrets.token_hex(9)[:17]}",
        "InstanceType": given["InstanceType"],
        "AvailabilityZone": given.get("AvailabilityZone", ""),
        "TotalInstanceCount": int(given["InstanceCount"]),
        "State": "active",
        "EndDateType": "limited" if end else "unlimited",
        **({"EndDate": datetime.fromisoformat(end).astimezone(UTC)} if end else {}),
    }
    made[reservation["CapacityReservationId"]] = reservation
    return {"CapacityReservation": reservation}


def _describe(made: dict[str, Reservation], given: dict[str, str], ids: list[str]) -> Reservation:
    return {"CapacityReservations": [made[each] for each in ids or made]}


def _cancel(made: dict[str, Reservation], given: dict[str, str], ids: list[str]) -> Reservation:
    made[ids[0]]["State"] = "cancelled"
    return {"Return": True}


ACTS = {
    "CancelCapacityReservation": _cancel,
    "CreateCapacityReservation": _create,
    "DescribeCapacityReservations": _describe,
}

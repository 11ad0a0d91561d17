"""Secret Manager v1: versions of secrets, and their values."""

import base64
import binascii
from collections.abc import Callable
from typing import Any

from .errors import ApiError
from .world import Call, Collection, Json, World, stamp

_SECRETS = "secretmanager.projects.secrets"


def value(world: World, version: str) -> bytes:
    """Return the value of `projects/p/secrets/s/versions/1` or latest, else raise ApiError as for a missing secret."""
    secret, _, number = version.partition("/versions/")
    found = latest(world, secret) if number == "latest" else f"{secret}/versions/{number}"
    if f"secretmanager/{found}" not in world.media:
        raise ApiError(404, f"Secret Version [{version}] not found.")
    return world.media[f"secretmanager/{found}"]


def latest(world: World, secret: str) -> str:
    numbers = [int(row["name"].rpartition("/")[2]) for row in world.below("secretmanager", f"{secret}/versions")]
    return f"{secret}/versions/{max(numbers)}" if numbers else ""


def _add(call: Call, collection: Collection) -> Json:
    if call.find(call.key) is None:
        raise ApiError(404, f"Secret [{call.key}] not found.")
    try:
        data = base64.b64decode(call.body.get("payload", {}).get("data", ""), validate=True)
    except binascii.Error:
        raise ApiError(400, "Invalid value at 'payload.data' (TYPE_BYTES)", "invalid") from None
    last = latest(call.world, call.key)
    name = f"{call.key}/versions/{int(last.rpartition('/')[2] or 0) + 1}"
    call.world.media[f"secretmanager/{name}"] = data
    made = {"name": name, "state": "ENABLED", "createTime": stamp()}
    call.world.items[f"secretmanager/{name}"] = made
    return made


def _access(call: Call, collection: Collection) -> Json:
    return {"name": call.key, "payload": {"data": base64.b64encode(value(call.world, call.key)).decode()}}


COLLECTIONS = (
    Collection(
        id=f"{_SECRETS}.versions", schema="SecretVersion", full_name=True, missing="Secret Version [{key}] not found."
    ),
)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_SECRETS}.addVersion": _add,
    f"{_SECRETS}.versions.access": _access,
}

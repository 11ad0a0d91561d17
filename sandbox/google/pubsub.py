"""Pub/Sub v1: topics with their policies, published messages, and pull subscriptions."""

import base64
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any

from .errors import ApiError
from .functions import deliver
from .verbs import get
from .world import Call, Collection, Json, World, by_id, stamp

_SUBSCRIPTIONS = "pubsub.projects.subscriptions"
_DEADLINE_S = 10  # by the description of ackDeadlineSeconds
_MISSING = "Resource not found (resource={id})."  # https://github.com/ScaleSec/project_lockdown/issues/57


def publish(world: World, topic: str, text: str, attributes: Mapping[str, str]) -> str:
    """Publish to every current subscription of `projects/p/topics/t`; return the message's id, "" for no such topic."""
    if f"pubsub/{topic}" not in world.items:
        return ""
    number = str(world.number())
    message: Json = {"messageId": number, "publishTime": stamp(), "attributes": dict(attributes)}
    message |= {"data": base64.b64encode(text.encode()).decode()} if text else {}
    _deliver(world, topic, message)
    return number


def _deliver(world: World, topic: str, message: Json) -> None:
    for row in world.below("pubsub", "projects/-/subscriptions"):
        if row["topic"] == topic:
            _backlog(world, row["name"]).append({"message": message, "attempts": 0, "until": 0.0, "ack": ""})
    deliver(world, topic, message)


def _backlog(world: World, subscription: str) -> list[Json]:
    """Return the messages that were not acknowledged, with the time until when each is leased, and to whom."""
    return world.live.setdefault(f"pubsub/{subscription}", [])


def _created(call: Call, collection: Collection) -> Json:
    """Create a topic or a subscription: their names are in the path. Source of the wording:
    https://github.com/GoogleCloudPlatform/nodejs-getting-started/issues/351"""
    if call.find(call.key) is not None:
        name = call.key.rpartition("/")[2]
        raise ApiError(409, f"Resource already exists in the project (resource={name}).")
    made: Json = {**call.body, "name": call.key}
    if collection.schema == "Topic":
        made["state"] = "ACTIVE"
    else:
        made["topic"] = by_id(made.get("topic", ""))
        if call.find(made["topic"]) is None:
            raise ApiError(404, _MISSING.format(id=made["topic"].rpartition("/")[2]))
        made |= {"state": "ACTIVE", "ackDeadlineSeconds": made.get("ackDeadlineSeconds") or _DEADLINE_S}
    call.world.items[f"pubsub/{call.key}"] = made
    return made


def _publish(call: Call, collection: Collection) -> Json:
    get(call, collection)
    messages: list[Json] = call.body.get("messages", [])
    if not messages or not all(each.get("data") or each.get("attributes") for each in messages):
        said = "One or more messages in the publish request is empty. Each message must contain either non-empty data,"
        raise ApiError(400, f"{said} or at least one attribute.")  # from memory
    numbers: list[str] = []
    for each in messages:
        numbers.append(str(call.world.number()))
        _deliver(call.world, call.key, {**each, "messageId": numbers[-1], "publishTime": stamp()})
    return {"messageIds": numbers}


def _pull(call: Call, collection: Collection) -> Json:
    """Return the messages that are there now, without waiting, as `returnImmediately` asks."""
    subscription, now = get(call, collection), time.monotonic()
    if int(call.body.get("maxMessages", 0)) < 1:
        raise ApiError(400, "The value for max_messages is too small: the minimum value is 1.")  # from memory
    lent = [row for row in _backlog(call.world, call.key) if row["until"] <= now][: int(call.body["maxMessages"])]
    for row in lent:
        row |= {"until": now + subscription["ackDeadlineSeconds"], "ack": secrets.token_urlsafe(24)}
        row["attempts"] += 1
    return {"receivedMessages": [{"ackId": row["ack"], "message": row["message"]} for row in lent]} if lent else {}


def _acknowledge(call: Call, collection: Collection) -> Json:
    get(call, collection)
    backlog, asked = _backlog(call.world, call.key), set(call.body.get("ackIds", []))
    backlog[:] = [row for row in backlog if row["ack"] not in asked]
    return {}


def _deadline(call: Call, collection: Collection) -> Json:
    get(call, collection)
    until = time.monotonic() + int(call.body.get("ackDeadlineSeconds", 0))
    for row in _backlog(call.world, call.key):
        if row["ack"] in call.body.get("ackIds", []):
            row["until"] = until
    return {}


def _gone(call: Call, key: str) -> str:
    """Detach the subscriptions of a deleted topic. They stay, as the description of their `topic` says."""
    for row in call.world.below("pubsub", "projects/-/subscriptions"):
        if row["topic"] == key:
            row["topic"] = "_deleted-topic_"
    call.world.live.pop(f"pubsub/{key}", None)
    return ""


COLLECTIONS = (
    Collection(id="pubsub.projects.topics", schema="Topic", full_name=True, wrap="topic", missing=_MISSING, gone=_gone),
    Collection(
        id=_SUBSCRIPTIONS, schema="Subscription", full_name=True, wrap="subscription", missing=_MISSING, gone=_gone
    ),
)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    "pubsub.projects.topics.create": _created,
    "pubsub.projects.topics.publish": _publish,
    f"{_SUBSCRIPTIONS}.create": _created,
    f"{_SUBSCRIPTIONS}.pull": _pull,
    f"{_SUBSCRIPTIONS}.acknowledge": _acknowledge,
    f"{_SUBSCRIPTIONS}.modifyAckDeadline": _deadline,
}

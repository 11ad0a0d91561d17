"""Operations, as the three families of Google's APIs show them."""

import time
from collections.abc import Callable
from typing import Any

from .world import Call, Json, Pending, stamp

Ended = Callable[[], str]
"""What happens when an operation ends; answers why it failed, or ""."""


def begin(call: Call, style: str, verb: str, target: str, end: Ended, ready: Callable[[], bool] = lambda: True) -> Json:
    """Start an operation; `verb` is how the API names it (CREATE_CLUSTER, insert). Without one, `direct`, it ends at
    once."""
    if style == "direct":
        end()
        return {}
    world, plan = call.world, call.plan
    key, operation = _FORMS[style](call, verb, target)
    world.items[f"{call.api}/{key}"] = operation
    failure = plan.fails if plan else ""

    def ended() -> None:
        why = failure or end()
        operation.update(_ENDED[style](call, target, why))

    delay = plan.delay_s if plan else 0
    world.pending.append(Pending(key, time.monotonic() + world.settle_s + delay, ended, ready))
    return operation


def _container(call: Call, verb: str, target: str) -> tuple[str, Json]:
    place = "/".join(call.key.split("/")[:4])
    name = f"operation-{int(time.time() * 1000)}-{call.world.number() % 10**9:09d}"
    key = f"{place}/operations/{name}"
    return key, {
        "name": name,
        "operationType": verb,
        "status": "RUNNING",
        "startTime": stamp(),
        "location": call.location,
        "zone": call.location,
        "selfLink": f"{call.link}{key}",
        "targetLink": f"{call.link}{target}",
    }


def _compute(call: Call, verb: str, target: str) -> tuple[str, Json]:
    parts = call.key.split("/")
    place = "/".join(parts[:3] if parts[2] == "global" else parts[:4])
    number = call.world.number()
    name = f"operation-{int(time.time() * 1000)}-{number % 10**9:09d}"
    key = f"{place}/operations/{name}"
    where = {parts[2].removesuffix("s"): f"{call.link}{place}"} if parts[2] != "global" else {}
    return key, {
        "kind": "compute#operation",
        "id": str(number),
        "name": name,
        "operationType": verb,
        "status": "RUNNING",
        "progress": 0,
        "insertTime": stamp(),
        "startTime": stamp(),
        "selfLink": f"{call.link}{key}",
        "targetLink": f"{call.link}{target}",
        **where,
    }


def _longrunning(call: Call, verb: str, target: str) -> tuple[str, Json]:
    parts = call.key.split("/")
    place = "/".join(parts[:4]) + "/" if "/locations/" in call.key else ""
    key = f"{place}operations/operation-{int(time.time() * 1000)}-{call.world.number() % 10**9:09d}"
    metadata = {"target": target, "verb": verb, "createTime": stamp()}
    return key, {"name": key, "done": False, "metadata": metadata}


def _container_ended(call: Call, target: str, why: str) -> Json:
    ended: dict[str, Any] = {"status": "DONE", "endTime": stamp()}
    if not why:
        return ended
    code, _, said = why.partition(": ") if why.startswith("GCE_STOCKOUT: ") else ("", "", why)
    stockout = {"nodepoolConditions": [{"code": code, "message": said, "canonicalCode": "RESOURCE_EXHAUSTED"}]}
    return {**ended, "statusMessage": said, "error": {"code": 8 if code else 13, "message": said}} | (
        stockout if code else {}
    )


def _compute_ended(call: Call, target: str, why: str) -> Json:
    ended: dict[str, Any] = {"status": "DONE", "progress": 100, "endTime": stamp()}
    if not why:
        return ended
    code, _, said = why.partition(": ") if why.split(":")[0].isupper() else ("INTERNAL_ERROR", "", why)
    status = {"httpErrorStatusCode": 400, "httpErrorMessage": "BAD REQUEST"}
    return {**ended, **status, "error": {"errors": [{"code": code, "message": said}]}}


def _longrunning_ended(call: Call, target: str, why: str) -> Json:
    if why:
        return {"done": True, "error": {"code": 13, "message": why}}
    found = call.find(target)
    return {"done": True, "response": found or {"@type": "type.googleapis.com/google.protobuf.Empty"}}


_FORMS = {"container": _container, "compute": _compute, "longrunning": _longrunning}
_ENDED = {"container": _container_ended, "compute": _compute_ended, "longrunning": _longrunning_ended}

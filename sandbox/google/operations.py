"""Operations, as the three families of Google's APIs show them."""

import time
from collections.abc import Callable
from typing import Any

from .errors import Failure
from .world import Call, Json, Pending, stamp

KEPT = 2000
"""Number of ended operations that can still be seen. Google keeps them for days; here every list looks through them."""

Ended = Callable[[], str | Failure]
"""Action at the end of an operation; returns why it failed, or ""."""


def begin(
    call: Call,
    style: str,
    verb: str,
    target: str,
    end: Ended,
    ready: Callable[[], bool] = lambda: True,
    failed: Callable[[], None] = lambda: None,
) -> Json:
    """Start an operation. `verb` is how the API names it (CREATE_CLUSTER, insert). A call without an operation,
    `direct`, ends at once. `failed` runs in the place of `end` where a test plans a failure."""
    if style == "direct":
        end()
        return {}
    world, plan = call.world, call.plan
    key, operation = _FORMS[style](call, verb, target)
    world.items[f"{call.api}/{key}"] = operation
    failure = plan.fails if plan else ""

    def ended() -> None:
        if failure:
            failed()
        why = failure or end()
        operation.update(_ENDED[style](call, target, why))
        world.ended.append(f"{call.api}/{key}")
        if len(world.ended) > KEPT:
            world.items.pop(world.ended.popleft(), None)

    delay = plan.delay_s if plan else 0
    world.pending.append(Pending(key, time.monotonic() + world.settle_s + delay, ended, ready))
    return operation


def once(call: Call, act: Callable[[Call], Any]) -> Any:
    """Return a call's answer. A repeated requestId of Compute Engine returns the first call's operation. Source:
    clientOperationId of the discovery document."""
    asked = call.query.get("requestId") if call.api == "compute" else None
    if not asked:
        return act(call)
    known = (item for name, item in call.world.items.items() if name.startswith("compute/") and "/operations/" in name)
    again = next((item for item in known if item.get("clientOperationId") == asked), None)
    if again is None:
        again = act(call)
        again["clientOperationId"] = asked
    return again


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


def event(call: Call, verb: str, said: str) -> None:
    """Record an operation that Compute Engine itself has carried out on a resource. Form:
    https://github.com/cloudpilot-ai/karpenter-provider-gcp/pull/37."""
    key, operation = _compute(call, verb, call.key)
    name = operation["name"].replace("operation-", "systemevent-")
    key = f"{key.rpartition('/')[0]}/{name}"
    ended = {"status": "DONE", "progress": 100, "endTime": stamp(), "statusMessage": said, "user": "system"}
    call.world.items[f"{call.api}/{key}"] = {**operation, **ended, "name": name, "selfLink": f"{call.link}{key}"}


def _longrunning(call: Call, verb: str, target: str) -> tuple[str, Json]:
    parts = call.key.split("/")
    parts = target.split("/") if "/databases/" in target else parts
    place = "/".join(parts[:4]) + "/" if "/locations/" in call.key or "databases" in parts else ""
    key = f"{place}operations/operation-{int(time.time() * 1000)}-{call.world.number() % 10**9:09d}"
    metadata = {"target": target, "verb": verb, "createTime": stamp()}
    return key, {"name": key, "done": False, "metadata": metadata}


def _container_ended(call: Call, target: str, why: str | Failure) -> Json:
    ended: dict[str, Any] = {"status": "DONE", "endTime": stamp()}
    if not why:
        return ended
    text = str(why)
    code, _, said = text.partition(": ") if text.startswith("GCE_STOCKOUT: ") else ("", "", text)
    stockout = {"nodepoolConditions": [{"code": code, "message": said, "canonicalCode": "RESOURCE_EXHAUSTED"}]}
    return {**ended, "statusMessage": said, "error": {"code": 8 if code else 13, "message": said}} | (
        stockout if code else {}
    )


def _compute_ended(call: Call, target: str, why: str | Failure) -> Json:
    ended: dict[str, Any] = {"status": "DONE", "progress": 100, "endTime": stamp()}
    if not why:
        return ended
    failure = as_failure(why)
    status = {"httpErrorStatusCode": failure.http[0], "httpErrorMessage": failure.http[1]}
    return {**ended, **status, "error": {"errors": [failure.as_json()]}}


def as_failure(why: str | Failure) -> Failure:
    if isinstance(why, Failure):
        return why
    code, _, said = why.partition(": ") if why.split(":")[0].isupper() else ("INTERNAL_ERROR", "", why)
    return Failure(code, said)


def _longrunning_ended(call: Call, target: str, why: str | Failure) -> Json:
    if why:
        failure = as_failure(why)
        return {"done": True, "error": {"code": _CODES.get(failure.code, 13), "message": failure.message}}
    found = call.find(target)
    return {"done": True, "response": found or {"@type": "type.googleapis.com/google.protobuf.Empty"}}


_CODES = {"RESOURCE_EXHAUSTED": 8}
"""Codes of google.rpc.Code; any other failure is INTERNAL."""
_FORMS = {"container": _container, "compute": _compute, "longrunning": _longrunning}
_ENDED = {"container": _container_ended, "compute": _compute_ended, "longrunning": _longrunning_ended}

"""Cloud TPU API v2: nodes, queued resources, and what the catalogue knows of zones, types and software versions.

Queued resources are requests for nodes, which wait for room, hold nodes, and lose them:

    CREATING -> WAITING_FOR_RESOURCES -> PROVISIONING -> ACTIVE -> SUSPENDING -> SUSPENDED
                      |                        |
                    FAILED                     +----> SUSPENDING -> FAILED

WAITING_FOR_RESOURCES took the place of ACCEPTED: https://cloud.google.com/tpu/docs/queued-resources. A request whose
provisioning fails is SUSPENDING before it is FAILED, as people see it: stateInitiator SERVICE, code 13, "an internal
error has occurred". Every step is one of World.tick.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.catalog.tpu import tpu

from .. import PROJECT, verbs
from ..errors import ApiError
from ..faults import Plan
from ..world import Call, Collection, Json, Pending, World, by_id, stamp
from . import nodes as tpu_nodes
from .nodes import (
    GRACE_S,
    NAME,
    bad_argument,
    bad_request,
    boot,
    check_node,
    check_zone,
    complete,
    count,
    out_of_stock,
    runtimes,
    spot,
    within_quota,
    zones,
)

_DATA = {"ACTIVE", "CREATING", "DELETING", "FAILED", "PROVISIONING", "SUSPENDED", "SUSPENDING"}


@dataclass(frozen=True)
class Request:
    """Queued resource. `plan` is the fault of its creation: it makes PROVISIONING longer, or end in FAILED."""

    world: World
    key: str
    item: Json
    plan: Plan | None = None

    @property
    def state(self) -> str:
        return self.item["state"]["state"]

    @property
    def here(self) -> bool:
        return self.world.items.get(f"tpu/{self.key}") is self.item

    @property
    def zone(self) -> str:
        return self.key.split("/")[3]

    @property
    def fails(self) -> str:
        return self.plan.fails if self.plan else ""

    @property
    def names(self) -> list[str]:
        """Keys of its nodes, whether or not they exist."""
        return [name for spec in self.item["tpu"]["nodeSpec"] for name in _names(spec)]

    @property
    def nodes(self) -> dict[str, Json]:
        found = {name: self.world.items.get(f"tpu/{name}") for name in self.names}
        return {name: node for name, node in found.items() if node and node.get("queuedResource") == self.key}


def _names(spec: Json) -> list[str]:
    several = spec.get("multisliceParams")
    ids = [f"{several['nodeIdPrefix']}-{i}" for i in range(count(spec))] if several else [spec["nodeId"]]
    return [f"{spec['parent']}/nodes/{each}" for each in ids]


def enter(request: Request, state: str, initiator: str = "SERVICE", error: Json | None = None) -> None:
    told: Json = {"state": state, "stateInitiator": initiator}
    if state in _DATA:
        told[f"{state.lower()}Data"] = {"error": error} if error else {}
    request.item["state"] = told
    _ENTERED.get(state, lambda request: None)(request)
    if state in _NEXT:
        slow = request.plan.delay_s if request.plan and state == "PROVISIONING" else 0
        _later(request, state, request.world.settle_s + slow)


def _later(request: Request, state: str, delay_s: float) -> None:
    def over() -> bool:
        return not request.here or request.state != state

    def ended() -> None:
        if not over():
            new = _NEXT[state](request)
            initiator = request.item["state"]["stateInitiator"] if state == "SUSPENDING" else "SERVICE"
            enter(request, new, initiator, _error(request, state) if new == "FAILED" else None)

    due = time.monotonic() + delay_s
    request.world.pending.append(Pending(request.key, due, ended, lambda: over() or bool(_NEXT[state](request))))


def _error(request: Request, state: str) -> Json:
    # The code and message of an expired request were not found.
    expired = {"code": 4, "message": "the queued resource was not provisioned before its valid-until time"}
    return expired if state == "WAITING_FOR_RESOURCES" else {"code": 13, "message": request.fails}


def _waited(request: Request) -> str:
    first, last = interval(request.item)
    now = datetime.now(UTC)
    if last and now >= last:
        return "FAILED"
    early = first is not None and now < first
    wanted = {spec["node"]["acceleratorType"] for spec in request.item["tpu"]["nodeSpec"]}
    short = any(out_of_stock(request.world, request.zone, tpu(name)) for name in wanted)
    return "" if early or short else "PROVISIONING"


def interval(item: Json) -> tuple[datetime | None, datetime | None]:
    """Return from when on nodes may be created, and until when. Raises ValueError for text that is no time."""
    policy = item.get("queueingPolicy", {})
    ends = [
        _moment(policy.get(f"valid{word}Time") or policy.get("validInterval", {}).get(other),
                policy.get(f"valid{word}Duration"), item["createTime"])
        for word, other in (("After", "startTime"), ("Until", "endTime"))
    ]  # fmt: skip
    return ends[0], ends[1]


def _moment(at: str | None, after: str | None, made: str) -> datetime | None:
    if at is None:
        return datetime.fromisoformat(made) + timedelta(seconds=float(after.removesuffix("s"))) if after else None
    found = datetime.fromisoformat(at)
    if found.tzinfo is None:
        raise ValueError(f"{at} has no time zone")
    return found


def _suspended(request: Request) -> str:
    if any(request.world.guests.running(f"tpu/{name}") for name in request.nodes):
        return ""
    return "FAILED" if request.fails else "SUSPENDED"


_NEXT: dict[str, Callable[[Request], str]] = {
    "CREATING": lambda request: "WAITING_FOR_RESOURCES",
    "WAITING_FOR_RESOURCES": _waited,
    "PROVISIONING": lambda request: "SUSPENDING" if request.fails else "ACTIVE",
    "SUSPENDING": _suspended,
}
"""Next state, "" while it may not begin yet."""


def _provision(request: Request) -> None:
    for spec in request.item["tpu"]["nodeSpec"]:
        for name in _names(spec):
            number = request.world.number()
            node = complete(copy.deepcopy(spec["node"]), name, tpu(spec["node"]["acceleratorType"]), number)
            node |= {"queuedResource": request.key} | ({"multisliceNode": True} if "multisliceParams" in spec else {})
            if "spot" in request.item:
                node["schedulingConfig"] = {**node.get("schedulingConfig", {}), "spot": True}
            request.world.items[f"tpu/{name}"] = node


def _activate(request: Request) -> None:
    for node in request.nodes.values():
        boot(request.world, node)


def stop(request: Request) -> None:
    for name, node in request.nodes.items():
        if node["state"] != "PREEMPTED":
            node["state"] = "DELETING"
            request.world.guests.stop(f"tpu/{name}")


def drop(request: Request) -> None:
    for name in request.nodes:
        del request.world.items[f"tpu/{name}"]


_ENTERED: dict[str, Callable[[Request], None]] = {
    "PROVISIONING": _provision,
    "ACTIVE": _activate,
    "SUSPENDING": stop,
    "SUSPENDED": drop,
    "FAILED": drop,
}


def preempt(world: World, name: str) -> None:
    """Preempt a Spot node; one of a queued resource goes with all others, whichever name is given. Raise ApiError."""
    item = world.items.get(f"tpu/{name}")
    if item is None:
        raise ApiError(404, f"Resource '{name}' was not found")
    if "queuedResource" in item:
        return preempt(world, item["queuedResource"])
    request = Request(world, name, item) if "tpu" in item else None
    state, nodes = (request.state, request.nodes) if request else (item["state"], {name: item})
    if state not in ("ACTIVE", "READY"):
        raise ApiError(400, f"sandbox: {name} is {state}, so there is nothing to preempt")
    if not all(spot(node) for node in nodes.values()):
        raise ApiError(400, f"sandbox: {name} is not Spot")
    for key, node in nodes.items():
        node["state"] = "PREEMPTED"
        node.pop("health", None)
        world.guests.preempt(f"tpu/{key}", GRACE_S)
    if request:
        enter(request, "SUSPENDING")
    return None


def remove_node(call: Call, key: str) -> str:
    """Delete a node. An active request without nodes is suspended, for the user."""
    node = call.world.items.pop(f"tpu/{key}", {})
    queued = node.get("queuedResource", "")
    if item := call.find(queued):
        request = Request(call.world, queued, item)
        if request.state == "ACTIVE" and not request.nodes:
            enter(request, "SUSPENDING", "USER")
    return ""


_REMOVABLE = {"CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "FAILED", "SUSPENDED"}


def create(call: Call, collection: Collection) -> Json:
    """Create a request, once for each requestId. A planned fault applies to the request, not to the operation."""

    def carried_out() -> Json:
        operation = verbs.create(replace(call, plan=None), collection)
        key = f"{call.key}/{call.query['queuedResourceId']}"
        enter(Request(call.world, key, call.world.items[f"tpu/{key}"], call.plan), "CREATING", "USER")
        return operation

    return _once(call, carried_out)


def delete(call: Call, collection: Collection) -> Json:
    return _once(call, lambda: verbs.delete(call, collection))


def _once(call: Call, carry_out: Callable[[], Json]) -> Json:
    if not (asked := call.query.get("requestId")):
        return carry_out()
    key = f"{call.method.id} {call.key} {asked}"
    if key not in call.world.requests:
        call.world.requests[key] = carry_out()
    return call.world.requests[key]


def create_request(call: Call, key: str, item: Json) -> None:
    world, zone = call.world, call.location
    check_zone(zone)
    if not NAME.fullmatch(call.query["queuedResourceId"]):
        raise bad_argument("queued_resource_id", call.query["queuedResourceId"])
    if "spot" in item and "guaranteed" in item:
        said = "oneof field 'tier' is already set. Cannot set 'spot'"  # as Google's parser words it elsewhere
        raise ApiError(400, f"Invalid value at 'queued_resource' (oneof), {said}", "invalid")
    specs = item.get("tpu", {}).get("nodeSpec", [])
    if not specs:
        raise ApiError(400, "Required field 'tpu.node_spec' not specified", "required")
    for spec in specs:
        _spec(world, zone, item, spec, key)
    item |= {"createTime": stamp()}
    try:
        interval(item)
    except ValueError as error:
        raise bad_argument("queueing_policy", error) from None
    others = [Request(world, each["name"], each) for each in world.below("tpu", call.key)]
    taken = {name for other in others if other.state not in ("SUSPENDED", "FAILED") for name in other.names}
    for name in Request(world, key, item).names:
        if name in taken or f"tpu/{name}" in world.items:
            raise ApiError(409, f"Resource '{name}' already exists")


def _spec(world: World, zone: str, item: Json, spec: Json, key: str) -> None:
    place = f"projects/{PROJECT}/locations/{zone}"
    if "parent" not in spec or "node" not in spec:
        raise ApiError(400, f"Required field 'node_spec.{'node' if 'parent' in spec else 'parent'}' not specified")
    spec["parent"] = by_id(spec["parent"])
    if spec["parent"] != place:
        raise bad_argument("node_spec.parent", spec["parent"])
    several = spec.get("multisliceParams")
    if (several is None) == ("nodeId" not in spec):
        raise bad_request("a node spec has either node_id or multislice_params")
    if several is not None and int(several.get("nodeCount", 0)) < 2:
        raise bad_argument("multislice_params.node_count", several.get("nodeCount", 0))
    if several is not None:
        several.setdefault("nodeIdPrefix", key.rpartition("/")[2])
    name = several["nodeIdPrefix"] if several else spec["nodeId"]
    if not NAME.fullmatch(name):
        raise bad_argument("node_id", name)
    is_spot = spot(spec["node"], item)
    if is_spot and ("reservationName" in item or spec["node"].get("schedulingConfig", {}).get("reserved")):
        raise bad_request("a queued resource is Spot or reserved, not both")
    found = check_node(world, zone, spec["node"])
    spec["node"]["acceleratorType"] = found.name
    spec["node"].pop("acceleratorConfig", None)
    within_quota(world, zone, found, found.chips * count(spec), is_spot)


def leaving(call: Call, key: str) -> None:
    """Refuse to delete a request with nodes, without force: the parameter's description says in which states. The
    wording is the sandbox's."""
    request = Request(call.world, key, call.world.items[f"tpu/{key}"])
    forced = call.query.get("force", "false").lower() == "true"
    if not forced and request.nodes and request.state not in _REMOVABLE:
        said = f"queued resource {key} is {request.state} and has nodes: delete them first, or set force"
        raise ApiError(400, said, "failedPrecondition", "FAILED_PRECONDITION")
    enter(request, "DELETING", "USER")
    stop(request)


def off(call: Call, key: str) -> Callable[[], bool]:
    nodes = list(Request(call.world, key, call.world.items[f"tpu/{key}"]).nodes)
    return lambda: not any(call.world.guests.running(f"tpu/{name}") for name in nodes)


def delete_request(call: Call, key: str) -> str:
    if item := call.find(key):
        drop(Request(call.world, key, item))
    return ""


_LOCATIONS = "tpu.projects.locations"


def _place(call: Call) -> str:
    check_zone(call.location)
    return "/".join(call.key.split("/")[:4])


def _locations(call: Call) -> list[Json]:
    project = "/".join(call.key.split("/")[:2])
    return [{"name": f"{project}/locations/{zone}", "locationId": zone} for zone in zones()]


def _types(call: Call) -> list[Json]:
    place = _place(call)
    rows: list[Json] = []
    for found in map(tpu, zones()[call.location]):
        configs = [{"type": found.version, "topology": found.topology}]
        rows.append(
            {"name": f"{place}/acceleratorTypes/{found.name}", "type": found.name, "acceleratorConfigs": configs}
        )
    return rows


def _versions(call: Call) -> list[Json]:
    place = _place(call)
    return [{"name": f"{place}/runtimeVersions/{name}", "version": name} for name in runtimes()]


COLLECTIONS = (
    Collection(
        id=f"{_LOCATIONS}.nodes", schema="Node", name="?nodeId", style="longrunning", kind="NODE", full_name=True,
        state=("state", "CREATING", "READY", "DELETING"), made=tpu_nodes.create_node, settled=tpu_nodes.settle_node,
        failed=tpu_nodes.drop_node, changed=tpu_nodes.change_node, leaving=tpu_nodes.leaving, ending=tpu_nodes.off,
        gone=remove_node,
    ),
    Collection(
        id=f"{_LOCATIONS}.queuedResources", schema="QueuedResource", name="?queuedResourceId", style="longrunning",
        kind="QUEUED_RESOURCE", full_name=True, made=create_request, leaving=leaving,
        ending=off, gone=delete_request,
    ),
    Collection(id=_LOCATIONS, schema="Location", listed=_locations),
    Collection(id=f"{_LOCATIONS}.acceleratorTypes", schema="AcceleratorType", listed=_types),
    Collection(id=f"{_LOCATIONS}.runtimeVersions", schema="RuntimeVersion", listed=_versions),
    Collection(id=f"{_LOCATIONS}.operations", schema="Operation"),
)  # fmt: skip
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_LOCATIONS}.nodes.start": tpu_nodes.start,
    f"{_LOCATIONS}.nodes.stop": tpu_nodes.stop,
    f"{_LOCATIONS}.nodes.getGuestAttributes": tpu_nodes.attributes,
    f"{_LOCATIONS}.queuedResources.create": create,
    f"{_LOCATIONS}.queuedResources.delete": delete,
}

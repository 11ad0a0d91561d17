"""Cloud TPU API v2: nodes, queued resources, and what the catalogue knows of zones, types and software versions."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accel.catalog.tpu import tpu

from . import PROJECT, tpu_nodes, tpu_queue, verbs
from .errors import ApiError
from .tpu_checks import NAME, bad_argument, bad_request, checked, count, located, runtimes, spot, within_quota, zones
from .tpu_queue import Request, drop, enter, interval, stop
from .world import Call, Collection, Json, World, by_id, stamp

_REMOVABLE = {"CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "FAILED", "SUSPENDED"}


def create(call: Call, collection: Collection) -> Json:
    """A request, once for each requestId. A fault that is planned for it is its own, not that of the operation."""

    def carried_out() -> Json:
        operation = verbs.create(replace(call, plan=None), collection)
        key = f"{call.key}/{call.query['queuedResourceId']}"
        enter(Request(call.world, key, call.world.items[f"tpu/{key}"], call.plan), "CREATING", "USER")
        return operation

    return _once(call, carried_out)


def delete(call: Call, collection: Collection) -> Json:
    return _once(call, lambda: verbs.delete(call, collection))


def _once(call: Call, carry_out: Callable[[], Json]) -> Json:
    """The operation of the call that had the same requestId, else a new one."""
    if not (asked := call.query.get("requestId")):
        return carry_out()
    key = f"{call.method.id} {call.key} {asked}"
    if key not in call.world.requests:
        call.world.requests[key] = carry_out()
    return call.world.requests[key]


def create_request(call: Call, key: str, item: Json) -> None:
    world, zone = call.world, call.location
    located(zone)
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
    found = checked(world, zone, spec["node"])
    spec["node"]["acceleratorType"] = found.name
    spec["node"].pop("acceleratorConfig", None)
    within_quota(world, zone, found, found.chips * count(spec), is_spot)


def leaving(call: Call, key: str) -> None:
    """Refuses nodes that are there, without force: the parameter's description says in which states. The wording is
    the sandbox's."""
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
    located(call.location)
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
        state=("state", "CREATING", "READY", "DELETING"), made=tpu_nodes.create_node, settled=tpu_nodes.settled,
        failed=tpu_nodes.dropped, changed=tpu_nodes.changed, leaving=tpu_nodes.leaving, ending=tpu_nodes.off,
        gone=tpu_queue.node_gone,
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
preempt = tpu_queue.preempt

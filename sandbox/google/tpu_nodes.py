"""TPU nodes: what they are completed with, their hosts as machines that run, and how they stop and go."""

import math
from collections.abc import Callable
from typing import Any

from accel.catalog.tpu import Slice, tpu
from sandbox import loopback

from . import PROJECT, PROJECT_NUMBER
from .errors import ApiError
from .guests.machine import Machine
from .operations import begin
from .tpu_checks import bad_argument, bad_request, checked, located, out_of_stock, spot, within_quota
from .verbs import get
from .world import Call, Collection, Json, World, stamp

GRACE_S = 30.0
"""Between the notice of a preemption and the end, as of Compute Engine's Spot VMs, to which
https://docs.cloud.google.com/tpu/docs/spot refers. The sandbox does not wait for it where nothing runs any more."""
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_PATCHED = {"description", "tags", "labels", "metadata", "networkConfig"}


def complete(node: Json, key: str, found: Slice, number: int) -> Json:
    """A node's body with what the API adds. `number` is its id."""
    account = {"email": f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com", "scope": list(_SCOPES)}
    made: Json = {
        **node,
        "name": key,
        "id": str(number),
        "acceleratorType": found.name,
        "acceleratorConfig": {"type": found.version, "topology": found.topology},
        "apiVersion": "V2",
        "createTime": stamp(),
        "serviceAccount": {**account, **node.get("serviceAccount", {})},
        "state": "CREATING",
    }
    if "networkConfigs" not in made:
        region = key.split("/")[3].rpartition("-")[0]
        made["networkConfig"] = {"network": f"projects/{PROJECT}/global/networks/default"} | node.get(
            "networkConfig", {"subnetwork": f"projects/{PROJECT}/regions/{region}/subnetworks/default"}
        )
    return made


def _addresses(node: Json, found: Slice) -> list[str]:
    return [loopback.address(f"tpu/{node['name']}", worker) for worker in range(found.hosts)]


def hostname(node: Json, worker: int) -> str:
    """Of a worker; it is not the node's name. People's scripts for TPU VMs show the form, no page of Google's does."""
    return f"t1v-n-{int(node['id']) & 0xFFFFFFFF:08x}-w-{worker}"


def boot(world: World, node: Json) -> None:
    """READY, with all hosts running."""
    found = tpu(node["acceleratorType"])
    configs = node.get("networkConfigs") or [node["networkConfig"]]
    outside: Json = {"accessConfig": {"externalIp": "203.0.113.1"}} if configs[0].get("enableExternalIps") else {}
    endpoints = [{"ipAddress": ip, "port": 8470, **outside} for ip in _addresses(node, found)]
    node |= {"state": "READY", "health": "HEALTHY", "networkEndpoints": endpoints}
    for worker in range(found.hosts):
        world.guests.start(
            Machine(
                key=f"tpu/{node['name']}",
                name=hostname(node, worker),
                zone=node["name"].split("/")[3],
                number=worker,
                metadata=node.get("metadata", {}),
                account=node["serviceAccount"]["email"],
                id=str(int(node["id"]) + worker),
                more=_attributes(world, node, found, worker),
            )
        )


def _attributes(world: World, node: Json, found: Slice, worker: int) -> dict[str, str]:
    """What the platform adds to instance/attributes. Readers of it, which show its form:
    https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py (agent-worker-number,
    worker-network-endpoints, MEGASCALE_*), https://github.com/AI-Hypercomputer/maxtext, multihost_job.py (NODE_ID,
    WORKER_ID, ZONE, CONSUMER_PROJECT_ID)."""
    host, hosts = bounds(found)
    values = {
        "ACCELERATOR_TYPE": found.name,
        "CHIPS_PER_HOST_BOUNDS": ",".join(map(str, host)),
        "CONSUMER_PROJECT_ID": PROJECT,
        "CONSUMER_PROJECT_NUMBER": PROJECT_NUMBER,
        "HOST_BOUNDS": ",".join(map(str, hosts)),
        **_megascale(world, node),
        "NODE_ID": node["name"].rpartition("/")[2],
        "PREEMPTIBLE": str(spot(node)).lower(),
        "RUNTIME_VERSION": node["runtimeVersion"],
        "TOPOLOGY": found.topology,
        "WORKER_ID": str(worker),
        "ZONE": node["name"].split("/")[3],
    }
    return {
        "accelerator-type": found.name,
        "agent-worker-number": str(worker),
        "tpu-env": "".join(f"{name}: '{value}'\n" for name, value in values.items()),
        "worker-network-endpoints": ",".join(f"unknown:unknown:{ip}" for ip in _addresses(node, found)),
    }


def bounds(found: Slice) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The chips of a host and the hosts of the slice in x, y and z: v4-256 is 2,2,1 and 2,2,8."""
    host = {1: (1, 1, 1), 8: (2, 4, 1)}.get(found.chips_per_host, (2, 2, 1))
    sides = [*map(int, found.topology.split("x")), 1][:3]
    return host, tuple(math.ceil(side / own) for side, own in zip(sides, host, strict=True))


def _megascale(world: World, node: Json) -> dict[str, str]:
    """Of one slice of several: its number is the end of its name."""
    if not node.get("multisliceNode"):
        return {}
    place = node["name"].rpartition("/")[0]
    slices = [each for each in world.below("tpu", place) if each.get("queuedResource") == node["queuedResource"]]
    return {
        "MEGASCALE_COORDINATOR_ADDRESS": loopback.address(node["queuedResource"]),
        "MEGASCALE_NUM_SLICES": str(len(slices)),
        "MEGASCALE_SLICE_ID": node["name"].rpartition("-")[2],
    }


def create_node(call: Call, key: str, item: Json) -> None:
    located(call.location)
    found = checked(call.world, call.location, item)
    within_quota(call.world, call.location, found, found.chips, spot(item))
    item.update(complete(item, key, found, call.world.number()))


def settled(call: Call, key: str) -> str:
    """Boots the node, where there is room. Wording: https://github.com/hashicorp/terraform-provider-google/issues/21243.
    Such a node is gone again."""
    node = call.find(key)
    if node is None or node["state"] != "CREATING":
        return ""
    if out_of_stock(call.world, call.location, tpu(node["acceleratorType"])):
        del call.world.items[f"tpu/{key}"]
        said = f'There is no more capacity in the zone "{call.location}"; you can try in another zone where Cloud TPU'
        return f"RESOURCE_EXHAUSTED: {said} Nodes are offered (see https://cloud.google.com/tpu/docs/regions)"
    boot(call.world, node)
    return ""


def leaving(call: Call, key: str) -> None:
    call.world.guests.stop(f"tpu/{key}")


def off(call: Call, key: str) -> Callable[[], bool]:
    return lambda: not call.world.guests.running(f"tpu/{key}")


def changed(call: Call, item: Json, news: Json) -> None:
    """The fields that the discovery document says can be changed."""
    mask = call.query.get("updateMask", "")
    changed = {name for name in item.keys() | news.keys() if item.get(name) != news.get(name)}
    if not mask:
        raise ApiError(400, "Required field 'update_mask' not specified", "required")
    if wrong := sorted(changed - _PATCHED):
        raise bad_argument("update_mask", wrong[0])
    if "metadata" in changed:
        call.world.guests.change(f"tpu/{call.key}", news.get("metadata", {}))


def dropped(call: Call, key: str) -> None:
    """Of a node whose creation is planned to fail nothing is left."""
    call.world.items.pop(f"tpu/{key}", None)


def stop(call: Call, collection: Collection) -> Json:
    node = get(call, collection)
    if len(node.get("networkEndpoints", [])) > 1:
        raise bad_request("only a node of one host can be stopped")  # the method's description says it, not the API
    if node["state"] != "READY":
        raise ApiError(400, f"node {call.key} is {node['state']}, not READY", status="FAILED_PRECONDITION")
    node["state"] = "STOPPING"
    node.pop("health", None)
    call.world.guests.stop(f"tpu/{call.key}")

    def end() -> str:
        node["state"] = "STOPPED"
        return ""

    return begin(call, "longrunning", "STOP_NODE", call.key, end, off(call, call.key))


def start(call: Call, collection: Collection) -> Json:
    node = get(call, collection)
    if node["state"] != "STOPPED":
        raise ApiError(400, f"node {call.key} is {node['state']}, not STOPPED", status="FAILED_PRECONDITION")
    node["state"] = "STARTING"

    def end() -> str:
        boot(call.world, node)
        return ""

    return begin(call, "longrunning", "START_NODE", call.key, end)


def attributes(call: Call, collection: Collection) -> Json:
    """Guest attributes of the workers that are asked for, or of all. `hostname` is where gcloud takes the name of the
    instance from, for a tunnel: tpu_vm/ssh.py (GetFromGuestAttributes); in which namespace was not found."""
    node = get(call, collection)
    hosts = range(len(node.get("networkEndpoints", [])))
    asked = [int(each) for each in call.body.get("workerIds", []) if each.isdigit() and int(each) in hosts]
    if len(asked) != len(call.body.get("workerIds", [])):
        raise bad_argument("worker_ids", ",".join(call.body["workerIds"]))
    path = call.body.get("queryPath", "")
    return {"guestAttributes": [_worker(call, node, worker, path) for worker in asked or hosts]}


def _worker(call: Call, node: Json, worker: int, path: str) -> Json:
    found = {name: dict(values) for name, values in call.world.guests.attributes(f"tpu/{call.key}", worker).items()}
    found.setdefault("hostkeys", {})["hostname"] = hostname(node, worker)
    namespace, _, key = path.strip("/").partition("/")
    items: list[dict[str, Any]] = [
        {"namespace": name, "key": each, "value": value}
        for name, values in sorted(found.items())
        for each, value in sorted(values.items())
        if namespace in ("", name) and key in ("", each)
    ]
    return {"queryPath": path, "queryValue": {"items": items}}

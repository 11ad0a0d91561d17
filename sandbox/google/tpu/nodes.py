"""TPU nodes, created directly or by a queued resource: their checks, their completion, their hosts as machines that
run, and how they stop and end."""

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from accel.catalog import UnknownName
from accel.catalog.quotas import quotas
from accel.catalog.tpu import NoSuchSlice, Slice, slice_names, tpu
from accel.catalog.tpu_generations import GENERATIONS, Generation
from accel.rules.gcp import tpu_runtimes
from sandbox import loopback

from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError
from ..guests.machine import Machine
from ..operations import begin
from ..verbs import get
from ..world import Call, Collection, Json, World, stamp

NAME = re.compile(r"[A-Za-z0-9_.~+%-]+")
"""Pattern of names of nodes and queued resources, as in the discovery document."""
_SLICES = r"projects/[^/]+/locations/([^/]+)/(?:nodes|queuedResources)/[^/]+"
_DEFAULT = "v2-8"  # https://cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.nodes by way of the provider


@cache
def zones() -> dict[str, tuple[str, ...]]:
    """Return the names of the slices of each zone with TPUs. A size without places in the catalogue is wherever its
    generation is."""
    found: dict[str, list[str]] = {}
    for generation in (each for each in GENERATIONS if each.api == "tpu"):
        names = slice_names(generation)
        anywhere = {zone for name in names for zone in _of(tpu(name))}
        for name in names:
            for zone in _of(tpu(name)) or anywhere:
                found.setdefault(zone, []).append(name)
    return {zone: tuple(names) for zone, names in sorted(found.items())}


def _of(found: Slice) -> set[str]:
    return {zone for inside in found.places.values() for zone in inside}


@cache
def runtimes() -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.runtime.name for each in GENERATIONS if each.runtime))


def bad_argument(field: str, value: Any) -> ApiError:
    """Return the error for a field's value. Wording: https://github.com/tensorflow/tpu/issues/877, which has it for
    version 1 of the API."""
    return ApiError(400, f'Cloud TPU received an invalid argument. The field "{field}" cannot be "{value}".')


def bad_request(why: str) -> ApiError:
    """Return the error for a bad request. Form of the wording: https://github.com/skypilot-org/skypilot/issues/3840.
    What follows is the sandbox's."""
    return ApiError(400, f"Cloud TPU received a bad request. {why}")


def check_zone(zone: str) -> None:
    """Refuse an unknown zone, in the usual words of Google's newer APIs; those of this one were not found."""
    if zone not in zones():
        raise ApiError(403, f"Permission denied on 'locations/{zone}' (or it may not exist).")


def check_node(world: World, zone: str, node: Json) -> Slice:
    """Return the node's slice. Raise ApiError for a body that is refused."""
    found = _slice(node, zone)
    if found.name not in zones()[zone]:
        raise _elsewhere(found.name, zone)
    _runtime(node, found)
    scheduling = node.get("schedulingConfig", {})
    if scheduling.get("reserved") and (scheduling.get("spot") or scheduling.get("preemptible")):
        raise bad_request("a node is Spot or reserved, not both")
    if "networkConfig" in node and "networkConfigs" in node:
        raise bad_request("network_config and network_configs are mutually exclusive")
    for network in [*node.get("networkConfigs", []), node.get("networkConfig", {})]:
        _network(world, zone, network)
    for disk in node.get("dataDisks", []):
        _there(world, disk.get("sourceDisk", ""))
    _account(world, node.get("serviceAccount", {}).get("email", ""))
    return found


def _slice(node: Json, zone: str) -> Slice:
    name, config = node.get("acceleratorType"), node.get("acceleratorConfig")
    if name and config:
        raise bad_request("accelerator_type and accelerator_config are mutually exclusive")
    known = {each.version: each.prefix for each in GENERATIONS if each.version}
    asked, topology = name or _DEFAULT, None
    if config:
        asked, topology = known.get(config.get("type", ""), ""), config.get("topology", "")
    try:
        found = tpu(asked, topology)
    except (UnknownName, NoSuchSlice):
        raise _elsewhere(f"{config['type']} {topology}" if config else asked, zone) from None
    if name and found.name != name:  # v5e-16, which is v5litepod-16 there
        raise _elsewhere(name, zone)
    return found


def _elsewhere(name: str, zone: str) -> ApiError:
    """Return the error for a slice that the zone lacks. Wording as in
    https://github.com/skypilot-org/skypilot/issues/3840; the zones are the sandbox's addition."""
    said = f"the accelerator {name} was not found in zone {zone}"
    having = [each for each, names in zones().items() if name in names]
    return bad_request(f"{said} (sandbox: {', '.join(having)} have it)" if having else said)


def _runtime(node: Json, found: Slice) -> None:
    """Refuse a version that does not exist. One of another generation is accepted: the node comes up, and has no
    devices. Source: https://github.com/jax-ml/jax/issues/13260 (a v5litepod-4 with tpu-vm-base)."""
    name = node.get("runtimeVersion")
    if not name:
        raise ApiError(400, "Required field 'runtime_version' not specified", "required")
    said = tpu_runtimes.runtime(name, found.name)
    if any(finding.rule == tpu_runtimes.UNKNOWN.id for finding in said):
        raise bad_argument("RuntimeVersion", name)


def _network(world: World, zone: str, config: Json) -> None:
    """Replace short names by whole ones. Every named network has to exist, except "default"."""
    region = zone.rpartition("-")[0]
    for name, within in (("network", "global/networks"), ("subnetwork", f"regions/{region}/subnetworks")):
        if given := config.get(name):
            path = str(given).partition("/compute/v1/")[2] or given
            config[name] = path if "/" in path else f"projects/{PROJECT}/{within}/{path}"
            if given != "default":
                _there(world, config[name])


def _there(world: World, key: str) -> None:
    if f"compute/{key}" not in world.items:
        raise ApiError(404, f"The resource '{key}' was not found")


def _account(world: World, email: str) -> None:
    own = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if own and f"iam/projects/{PROJECT}/serviceAccounts/{email}" not in world.items:
        raise ApiError(400, f"Service account {email} does not exist.")


def spot(node: Json, queued: Json | None = None) -> bool:
    scheduling = node.get("schedulingConfig", {})
    return bool(scheduling.get("spot") or scheduling.get("preemptible") or "spot" in (queued or {}))


def within_quota(world: World, zone: str, found: Slice, chips: int, is_spot: bool) -> None:
    """Refuse what exceeds `world.quota` of the zone and generation, in chips. Everything counts until it is deleted,
    suspended and failed requests too: https://github.com/marin-community/marin/issues/87. Wording:
    https://github.com/marin-community/marin/pull/1612"""
    limit = world.quota.get(f"tpu/{zone}/{found.generation.prefix}")
    if limit is None or used_chips(world, zone, found.generation) + chips <= limit:
        return
    raise ApiError(
        429, f"Quota limit '{_metric(found.generation, is_spot)}' has been exceeded. Limit: {limit} in zone {zone}."
    )


def _metric(generation: Generation, is_spot: bool) -> str:
    purchase = "spot" if is_spot else "on-demand"
    named = [each.code for each in quotas() if each.service == "tpu" and generation.accelerator in each.applies_to
             and each.purchase == purchase]  # fmt: skip
    return named[0] if named else f"TPU{generation.version}PerProjectPerZoneForTPUAPI"


def used_chips(world: World, zone: str, generation: Generation) -> int:
    total = 0
    for key, item in world.items.items():
        where = re.fullmatch(rf"tpu/{_SLICES}", key)
        if where and where[1] == zone:
            total += sum(each.chips for each in _held(item) if each.generation == generation)
    return total


def _held(item: Json) -> list[Slice]:
    if "tpu" not in item:
        return [] if "queuedResource" in item else [tpu(item["acceleratorType"])]
    specs = item["tpu"]["nodeSpec"]
    return [tpu(spec["node"]["acceleratorType"]) for spec in specs for _ in range(count(spec))]


def count(spec: Json) -> int:
    return int(spec.get("multisliceParams", {}).get("nodeCount", 1))


def out_of_stock(world: World, zone: str, found: Slice) -> bool:
    return bool({found.name, f"{zone}/{found.name}"} & world.stockouts)


GRACE_S = 30.0
"""Seconds between the notice of a preemption and the end, as for Compute Engine's Spot VMs, to which
https://docs.cloud.google.com/tpu/docs/spot refers. The sandbox does not wait where nothing runs any more."""
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_PATCHED = {"description", "tags", "labels", "metadata", "networkConfig"}


def complete(node: Json, key: str, found: Slice, number: int) -> Json:
    """Return a node's body with what the API adds. `number` is its id."""
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
    """Return the hostname of a worker, which is not the node's name. Scripts for TPU VMs show the form, no page of
    Google's does."""
    return f"t1v-n-{int(node['id']) & 0xFFFFFFFF:08x}-w-{worker}"


def boot(world: World, node: Json) -> None:
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
    """Return what the platform adds to instance/attributes. Readers of it show its form:
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
    """Return the chips of a host and the hosts of the slice in x, y and z: v4-256 is 2,2,1 and 2,2,8."""
    host = {1: (1, 1, 1), 8: (2, 4, 1)}.get(found.chips_per_host, (2, 2, 1))
    sides = [*map(int, found.topology.split("x")), 1][:3]
    return host, tuple(math.ceil(side / own) for side, own in zip(sides, host, strict=True))


def _megascale(world: World, node: Json) -> dict[str, str]:
    """Return the variables of one slice of several, whose number is the end of its name."""
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
    check_zone(call.location)
    found = check_node(call.world, call.location, item)
    within_quota(call.world, call.location, found, found.chips, spot(item))
    item.update(complete(item, key, found, call.world.number()))


def settle_node(call: Call, key: str) -> str:
    """Boot the node, or delete it where there is no room. Wording:
    https://github.com/hashicorp/terraform-provider-google/issues/21243."""
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


def change_node(call: Call, item: Json, news: Json) -> None:
    """Check that only fields change that the discovery document allows."""
    mask = call.query.get("updateMask", "")
    changed = {name for name in item.keys() | news.keys() if item.get(name) != news.get(name)}
    if not mask:
        raise ApiError(400, "Required field 'update_mask' not specified", "required")
    if wrong := sorted(changed - _PATCHED):
        raise bad_argument("update_mask", wrong[0])
    if "metadata" in changed:
        call.world.guests.change(f"tpu/{call.key}", news.get("metadata", {}))


def drop_node(call: Call, key: str) -> None:
    """Remove a node whose creation is planned to fail."""
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
    """Return guest attributes of the requested workers, or of all. gcloud takes the name of the instance for a tunnel
    from `hostname`: tpu_vm/ssh.py (GetFromGuestAttributes); in which namespace was not found."""
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

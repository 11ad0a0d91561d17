"""GKE: clusters of container v1."""

import json
import re
import secrets
import threading
from collections.abc import Callable

from accel.catalog.places import regions

from . import node_pools
from .compute import zones
from .errors import Refused
from .node_pools import STATES, VERSIONS, WORDS, version
from .verbs import forget
from .world import Call, Collection, Json, World, stamp

UNREACHABLE = "192.0.2.1"  # TEST-NET-1: nobody answers there

_A_CLUSTER = re.compile(r"container/projects/[^/]+/locations/[^/]+/clusters/[^/]+")


def _control_plane(call: Call) -> Json:
    try:
        told = json.loads((call.world.home / "kubernetes.json").read_text())
    except FileNotFoundError:
        return {"endpoint": UNREACHABLE, "masterAuth": {"clusterCaCertificate": ""}}
    return {"endpoint": told["endpoint"], "masterAuth": {"clusterCaCertificate": told["ca"]}}


def _zones_of(call: Call) -> list[str]:
    place = call.location
    if place in zones():
        return [place]
    if place not in regions("gcp"):
        # Wording: https://github.com/estafette/estafette-gke-node-pool-shifter/issues/12.
        raise Refused(400, f'Location "{place}" does not exist.')
    return sorted(zone for zone, region in zones().items() if region == place)[:3]


def _cluster_made(call: Call, key: str, item: Json) -> None:
    held = [name for name in call.world.items if _A_CLUSTER.fullmatch(name)]
    if held and held[0] != f"container/{key}":
        other = held[0].rpartition("/")[2]
        raise Refused(
            400, f"sandbox: there is one control plane, and cluster {other} has it: delete that first",
            "failedPrecondition", "FAILED_PRECONDITION",
        )  # fmt: skip
    project, place = call.path["projectsId"], call.location
    inside = item.get("locations") or _zones_of(call)
    pools = item.pop("nodePools", [])
    if not pools and not item.get("autopilot", {}).get("enabled"):
        if not item.get("initialNodeCount"):
            raise Refused(400, "Cluster.initial_node_count must be greater than zero.")
        config = {"config": item["nodeConfig"]} if "nodeConfig" in item else {}
        pools = [{"name": "default-pool", "initialNodeCount": item["initialNodeCount"], **config}]
    chosen = version(item.get("initialClusterVersion", ""))
    item |= {
        "id": secrets.token_hex(32),
        "location": place,
        "zone": place,
        "locations": inside,
        "selfLink": f"{call.link}{key}",
        "createTime": stamp(),
        "initialClusterVersion": chosen,
        "currentMasterVersion": chosen,
        "currentNodeVersion": chosen,
        "labelFingerprint": secrets.token_hex(4),
        **_control_plane(call),
    }
    for name, value in _CLUSTER.items():
        item.setdefault(name, value)
    _network(call, project, item)
    for pool in pools:
        pool_key = f"{key}/nodePools/{pool['name']}"
        node_pools.complete(call, item, pool_key, pool)
        pool["status"] = "PROVISIONING"
        call.world.items[f"container/{pool_key}"] = pool


_CLUSTER: Json = {
    "releaseChannel": {"channel": "REGULAR"},
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
    "clusterIpv4Cidr": "10.64.0.0/14",
    "servicesIpv4Cidr": "34.118.224.0/20",
    "shieldedNodes": {"enabled": True},
    "databaseEncryption": {"state": "DECRYPTED", "currentState": "CURRENT_STATE_DECRYPTED"},
    "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
    "network": "default",
}


def _network(call: Call, project: str, item: Json) -> None:
    """Short names beside whole ones, as GKE answers. Both have to exist."""
    whole: Json = {}
    region = zones().get(call.location, call.location)
    for name, within in (("network", "global/networks"), ("subnetwork", f"regions/{region}/subnetworks")):
        if given := item.get(name):
            path = given.partition("/compute/v1/")[2] or given
            path = path if "/" in path else f"projects/{project}/{within}/{path}"
            if f"compute/{path}" not in call.world.items:
                raise Refused(404, f"Not found: {path}.")
            whole[name], item[name] = path, path.rpartition("/")[2]
    item["networkConfig"] = {**item.get("networkConfig", {}), **whole}


def _cluster_settled(call: Call, key: str) -> str:
    why, cluster = "", call.find(key)
    if cluster and (pool := cluster.get("workloadIdentityConfig", {}).get("workloadPool")):
        call.world.identity_pools.add(pool)
    for item in call.world.below("container", f"{key}/nodePools"):
        failed = node_pools.stockout(call, f"{key}/nodePools/{item['name']}", item)
        item["status"] = item["status"] if failed else "RUNNING"
        why = why or failed
    if why and cluster:
        cluster["status"] = "ERROR"
    return why


def _cluster_gone(call: Call, key: str) -> str:
    if failed := call.world.failures.get(key):
        return failed
    for item in call.world.below("container", f"{key}/nodePools"):
        node_pools.delete_groups(call, f"{key}/nodePools/{item['name']}")
        forget(call, f"{key}/nodePools/{item['name']}")
    return ""


def _wiping(call: Call, key: str) -> Callable[[], bool]:
    """Empties the control plane, beside the lock: what runs there asks this server while it is taken down. The
    cluster goes when that is done; a failure is what the deletion's operation ends with."""
    if not (call.world.home / "kubernetes.json").exists():
        return lambda: True
    call.world.failures.pop(key, None)
    thread = threading.Thread(target=_wipe, args=(call.world, key), daemon=True)
    thread.start()
    return lambda: not thread.is_alive()


def _wipe(world: World, key: str) -> None:
    import requests

    from ..kubernetes.client import Cluster, Refusal
    from ..kubernetes.wipe import wipe

    try:
        wipe(Cluster.of(world.home))
    except (OSError, Refusal, requests.RequestException) as error:
        world.failures[key] = f"sandbox: the control plane could not be emptied: {error}"


def with_node_pools(call: Call, item: Json) -> Json:
    """A cluster as it is read: with its node pools inside."""
    key = item["selfLink"].partition("/v1/")[2]
    pools = call.world.below("container", f"{key}/nodePools")
    groups = [url for pool in pools for url in pool["instanceGroupUrls"]]
    return {**item, "nodePools": pools, "instanceGroupUrls": groups}


def _desired(call: Call, item: Json) -> Json:
    """One change a request. Source: the discovery document's ClusterUpdate, `desired...` fields."""
    update = call.body.get("update", {})
    given = [name for name in update if name not in ("etag", "desiredNodePoolId")]
    if len(given) != 1:
        raise Refused(400, f"Must specify exactly one field to update, not {', '.join(given) or 'none'}.")
    (name,) = given
    value = update[name]
    if name in ("desiredMasterVersion", "desiredNodeVersion"):
        node = name == "desiredNodeVersion"
        return {"currentNodeVersion" if node else "currentMasterVersion": version(value)}
    path = _DESIRED.get(name) or (name.removeprefix("desired")[:1].lower() + name.removeprefix("desired")[1:])
    outer, _, inner = path.partition(".")
    if outer not in call.document.schema("Cluster")["properties"]:
        raise Refused(501, f"the sandbox does not serve {name} of ClusterUpdate")
    return {outer: {**item.get(outer, {}), inner: value} if inner else value}


_DESIRED = {
    "desiredClusterAutoscaling": "autoscaling",
    "desiredDatapathProvider": "networkConfig.datapathProvider",
    "desiredDefaultSnatStatus": "networkConfig.defaultSnatStatus",
    "desiredDnsConfig": "networkConfig.dnsConfig",
    "desiredEnableFqdnNetworkPolicy": "networkConfig.enableFqdnNetworkPolicy",
    "desiredEnableMultiNetworking": "networkConfig.enableMultiNetworking",
    "desiredGatewayApiConfig": "networkConfig.gatewayApiConfig",
    "desiredIntraNodeVisibilityConfig": "networkConfig.enableIntraNodeVisibility",
    "desiredNetworkPerformanceConfig": "networkConfig.networkPerformanceConfig",
    "desiredServiceExternalIpsConfig": "networkConfig.serviceExternalIpsConfig",
    "desiredGcfsConfig": "nodePoolDefaults.gcfsConfig",
}


def _labels(call: Call, item: Json) -> Json:
    if call.body.get("labelFingerprint") != item["labelFingerprint"]:
        raise Refused(400, "Labels could not be set due to fingerprint mismatch.", "failedPrecondition")
    return {"resourceLabels": call.body.get("resourceLabels", {}), "labelFingerprint": secrets.token_hex(4)}


_CLUSTERS = "container.projects.locations.clusters"
CHANGES = {
    f"{_CLUSTERS}.update": _desired,
    f"{_CLUSTERS}.setResourceLabels": _labels,
    f"{_CLUSTERS}.setAddons": lambda call, item: {
        "addonsConfig": {**item.get("addonsConfig", {}), **call.body["addonsConfig"]}
    },
    f"{_CLUSTERS}.setMaintenancePolicy": lambda call, item: {"maintenancePolicy": call.body["maintenancePolicy"]},
    f"{_CLUSTERS}.setNetworkPolicy": lambda call, item: {"networkPolicy": call.body["networkPolicy"]},
    f"{_CLUSTERS}.setLegacyAbac": lambda call, item: {"legacyAbac": {"enabled": call.body["enabled"]}},
}


def server_config(call: Call) -> Json:
    _zones_of(call)
    channels = zip(("RAPID", "REGULAR", "STABLE"), VERSIONS, strict=True)
    return {
        "defaultClusterVersion": VERSIONS[1],
        "validMasterVersions": list(VERSIONS),
        "validNodeVersions": list(VERSIONS),
        "defaultImageType": "COS_CONTAINERD",
        "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
        "channels": [{"channel": name, "validVersions": list(VERSIONS), "defaultVersion": v} for name, v in channels],
    }


COLLECTIONS = (
    Collection(
        id=_CLUSTERS, schema="Cluster", wrap="cluster", style="container", kind="CLUSTER", state=STATES,
        made=_cluster_made, settled=_cluster_settled, gone=_cluster_gone, ending=_wiping, **WORDS,
    ),
    Collection(id="container.projects.locations.operations", schema="Operation", **WORDS),
)  # fmt: skip

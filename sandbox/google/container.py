"""GKE: clusters of container v1, and their node pools. A pool has a managed instance group in each of its zones, whose
size is the pool's."""

import json
import re
import secrets
import threading
from collections.abc import Callable

from accel.catalog.places import regions
from accel.rules.gcp import machines

from .compute.api import zones
from .compute.instance_body import accelerator_types
from .errors import ApiError
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
        raise ApiError(400, f'Location "{place}" does not exist.')
    return sorted(zone for zone, region in zones().items() if region == place)[:3]


def _cluster_made(call: Call, key: str, item: Json) -> None:
    held = [name for name in call.world.items if _A_CLUSTER.fullmatch(name)]
    if held and held[0] != f"container/{key}":
        other = held[0].rpartition("/")[2]
        raise ApiError(
            400, f"sandbox: there is one control plane, and cluster {other} has it: delete that first",
            "failedPrecondition", "FAILED_PRECONDITION",
        )  # fmt: skip
    project, place = call.path["projectsId"], call.location
    inside = item.get("locations") or _zones_of(call)
    pools = item.pop("nodePools", [])
    if not pools and not item.get("autopilot", {}).get("enabled"):
        if not item.get("initialNodeCount"):
            raise ApiError(400, "Cluster.initial_node_count must be greater than zero.")
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
        complete(call, item, pool_key, pool)
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
    """Complete short names of networks by full ones, as GKE answers. Both have to exist."""
    whole: Json = {}
    region = zones().get(call.location, call.location)
    for name, within in (("network", "global/networks"), ("subnetwork", f"regions/{region}/subnetworks")):
        if given := item.get(name):
            path = given.partition("/compute/v1/")[2] or given
            path = path if "/" in path else f"projects/{project}/{within}/{path}"
            if f"compute/{path}" not in call.world.items:
                raise ApiError(404, f"Not found: {path}.")
            whole[name], item[name] = path, path.rpartition("/")[2]
    item["networkConfig"] = {**item.get("networkConfig", {}), **whole}


def _cluster_settled(call: Call, key: str) -> str:
    why, cluster = "", call.find(key)
    if cluster and (pool := cluster.get("workloadIdentityConfig", {}).get("workloadPool")):
        call.world.identity_pools.add(pool)
    for item in call.world.below("container", f"{key}/nodePools"):
        failed = stockout(call, f"{key}/nodePools/{item['name']}", item)
        item["status"] = item["status"] if failed else "RUNNING"
        why = why or failed
    if why and cluster:
        cluster["status"] = "ERROR"
    return why


def _cluster_gone(call: Call, key: str) -> str:
    if failed := call.world.failures.get(key):
        return failed
    for item in call.world.below("container", f"{key}/nodePools"):
        delete_groups(call, f"{key}/nodePools/{item['name']}")
        forget(call, f"{key}/nodePools/{item['name']}")
    return ""


def _wiping(call: Call, key: str) -> Callable[[], bool]:
    """Start to empty the control plane, in a thread without the lock: what runs there calls this server while it stops.
    Return whether that is done; the cluster is deleted then. The deletion's operation ends with its failure, if any."""
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
    key = item["selfLink"].partition("/v1/")[2]
    pools = call.world.below("container", f"{key}/nodePools")
    groups = [url for pool in pools for url in pool["instanceGroupUrls"]]
    return {**item, "nodePools": pools, "instanceGroupUrls": groups}


def _desired(call: Call, item: Json) -> Json:
    """Return the one change of a request. Source: the discovery document's ClusterUpdate, `desired...` fields."""
    update = call.body.get("update", {})
    given = [name for name in update if name not in ("etag", "desiredNodePoolId")]
    if len(given) != 1:
        raise ApiError(400, f"Must specify exactly one field to update, not {', '.join(given) or 'none'}.")
    (name,) = given
    value = update[name]
    if name in ("desiredMasterVersion", "desiredNodeVersion"):
        node = name == "desiredNodeVersion"
        return {"currentNodeVersion" if node else "currentMasterVersion": version(value)}
    path = _DESIRED.get(name) or (name.removeprefix("desired")[:1].lower() + name.removeprefix("desired")[1:])
    outer, _, inner = path.partition(".")
    if outer not in call.document.schema("Cluster")["properties"]:
        raise ApiError(501, f"the sandbox does not serve {name} of ClusterUpdate")
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
        raise ApiError(400, "Labels could not be set due to fingerprint mismatch.", "failedPrecondition")
    return {"resourceLabels": call.body.get("resourceLabels", {}), "labelFingerprint": secrets.token_hex(4)}


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


VERSIONS = ("1.36.4-gke.1082000", "1.35.7-gke.1222000", "1.34.9-gke.1655001")
"""Defaults of the channels rapid, regular and stable, from
https://docs.cloud.google.com/kubernetes-engine/docs/release-notes."""

_SCOPES = [
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
    "https://www.googleapis.com/auth/service.management.readonly",
    "https://www.googleapis.com/auth/servicecontrol",
    "https://www.googleapis.com/auth/trace.append",
]
"""Default scopes of a node, gke-default. Source:
https://cloud.google.com/sdk/gcloud/reference/container/node-pools/create (--scopes)."""


def version(asked: str) -> str:
    """Return the version for a full version, the beginning of one, or none."""
    if asked in ("", "-", "latest"):
        return VERSIONS[0] if asked == "latest" else VERSIONS[1]
    found = [version for version in VERSIONS if version == asked or version.startswith(f"{asked}.")]
    if not found:
        raise ApiError(400, f'Master version "{asked}" is unsupported.')
    return found[0]


def _made(call: Call, key: str, item: Json) -> None:
    cluster = call.find(key.rpartition("/nodePools/")[0])
    if cluster is None:
        raise ApiError(404, f"Not found: {key.rpartition('/nodePools/')[0]}.")
    if cluster.get("autopilot", {}).get("enabled"):
        raise ApiError(400, "Node pools cannot be created in Autopilot clusters.")
    complete(call, cluster, key, item)


def complete(call: Call, cluster: Json, key: str, item: Json) -> None:
    """Complete a pool's body with what GKE adds, and the groups of its nodes."""
    config: Json = item.setdefault("config", {})
    inside = item.setdefault("locations", cluster["locations"])
    _accelerators(config, inside)
    defaults: Json = {
        "machineType": "e2-medium",
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "imageType": "COS_CONTAINERD",
        "oauthScopes": _SCOPES,
        "serviceAccount": "default",
        "metadata": {"disable-legacy-endpoints": "true"},
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
    }
    for name, value in defaults.items():
        config.setdefault(name, value)
    project, short = call.path["projectsId"], f"gke-{cluster['name']}-{item['name']}"[:37]
    groups = {zone: f"{short}-{secrets.token_hex(4)}-grp" for zone in inside}
    link = f"https://www.googleapis.com/compute/v1/projects/{project}/zones"
    count = int(item.get("initialNodeCount", 0))
    item |= {
        "initialNodeCount": count,
        "instanceGroupUrls": [f"{link}/{zone}/instanceGroupManagers/{name}" for zone, name in groups.items()],
        "selfLink": f"{call.link}{key}",
        "version": item.get("version") or cluster["currentNodeVersion"],
        "podIpv4CidrSize": 24,
        "etag": secrets.token_hex(8),
    }
    item.setdefault("management", {"autoUpgrade": True, "autoRepair": True})
    item.setdefault("upgradeSettings", {"maxSurge": 1, "strategy": "SURGE"})
    item.setdefault("maxPodsConstraint", {"maxPodsPerNode": "110"})
    for zone, name in groups.items():
        call.world.items[f"compute/projects/{project}/zones/{zone}/instanceGroupManagers/{name}"] = {
            "kind": "compute#instanceGroupManager",
            "id": str(call.world.number()),
            "name": name,
            "zone": f"{link}/{zone}",
            "baseInstanceName": name.removesuffix("-grp"),
            "instanceGroup": f"{link}/{zone}/instanceGroups/{name}",
            "selfLink": f"{link}/{zone}/instanceGroupManagers/{name}",
            "targetSize": count,
        }


def _accelerators(config: Json, inside: list[str]) -> None:
    """Check GPUs: machines of each zone have them built in, or they are attached to N1 there. Sources of the wordings:
    https://github.com/hashicorp/terraform-provider-google/issues/8387,
    https://github.com/GoogleCloudPlatform/k8s-config-connector/pull/1902. GKE's own words for a machine that does not
    take them are not known: those of Compute Engine, which creates the nodes, stand for them."""
    asked = config.get("accelerators", [])
    if asked and not config.get("machineType"):
        raise ApiError(400, "Cannot use default machine type (e2-medium) with GPUs; choose a different machine type.")
    for accelerator in asked:
        kind, count = accelerator.get("acceleratorType", "").rpartition("/")[2], int(accelerator["acceleratorCount"])
        for zone in inside:
            if kind not in accelerator_types(zone):
                raise ApiError(400, f'Accelerator type "{kind}" does not exist in zone {zone}.')
            if machines.machine(config["machineType"], kind, count, zone):
                said = f"[{kind}, {config['machineType']}] features are not compatible for creating instance."
                raise ApiError(400, said)


def stockout_zone(call: Call, item: Json) -> str:
    kind = item["config"]["machineType"]
    return next((zone for zone in item["locations"] if {kind, f"{zone}/{kind}"} & call.world.stockouts), "")


def stockout(call: Call, key: str, item: Json) -> str:
    """Return why a pool that starts with nodes does not get them. It stays, in the state that GKE gives it. Wording:
    https://github.com/kubeflow/pipelines/issues/673"""
    zone = stockout_zone(call, item) if item.get("initialNodeCount") else ""
    if not zone:
        return ""
    said = (
        "Try a different location, or try again later: Google Compute Engine does not have enough resources available"
    )
    said = f"{said} to fulfill request: {zone}."
    item |= {"status": "ERROR", "statusMessage": said, "conditions": [{"code": "GCE_STOCKOUT", "message": said}]}
    return f"GCE_STOCKOUT: {said}"


def _settled(call: Call, key: str) -> str:
    item = call.find(key)
    return stockout(call, key, item) if item else ""


def delete_groups(call: Call, key: str) -> str:
    for url in (call.find(key) or {}).get("instanceGroupUrls", []):
        call.world.items.pop(f"compute/{url.partition('/compute/v1/')[2]}", None)
    return ""


def _updated(call: Call, item: Json) -> Json:
    config, body = dict(item["config"]), call.body
    for name in _POOL_CONFIG & body.keys():
        inner = {"labels": "labels", "resourceLabels": "labels", "taints": "taints", "tags": "tags"}.get(name)
        config[name] = body[name].get(inner, {} if "abels" in name else []) if inner else body[name]
    if "accelerators" in body or "locations" in body:
        _accelerators(config, body.get("locations", item["locations"]))
    made: Json = {"config": config}
    for name in ("locations", "upgradeSettings", "queuedProvisioning", "nodeDrainConfig", "maintenancePolicy"):
        if name in body:
            made[name] = body[name]
    if "nodeVersion" in body:
        made["version"] = version(body["nodeVersion"])
    if "nodeNetworkConfig" in body:
        made["networkConfig"] = {**item.get("networkConfig", {}), **body["nodeNetworkConfig"]}
    return made


def _autoscaled(call: Call, item: Json) -> Json:
    """Check and return the autoscaling. Source of the wording:
    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/pull/1554"""
    asked = call.body["autoscaling"]
    if asked.get("enabled") and not (asked.get("maxNodeCount") or asked.get("totalMaxNodeCount")):
        said = (
            "Node_pool_autoscaling.max_node_count and node_pool_autoscaling.total_max_node_count cannot be both set to"
        )
        raise ApiError(400, f"{said} zero.")
    return {"autoscaling": asked}


def _sized(call: Call, item: Json) -> Json:
    """Set the size of each zone's group. A pool's own `initialNodeCount` stays."""
    for url in item["instanceGroupUrls"]:
        call.world.items[f"compute/{url.partition('/compute/v1/')[2]}"]["targetSize"] = int(call.body["nodeCount"])
    return {}


def resize(world: World, sizes: dict[str, int]) -> Json:
    with world.lock:
        for path, size in sizes.items():
            if group := world.items.get(f"compute/{path}"):
                group["targetSize"] = size
    return {}


_POOL_CONFIG = {
    *("accelerators", "confidentialNodes", "containerdConfig", "diskSizeGb", "diskType", "fastSocket", "flexStart"),
    *("gcfsConfig", "gvnic", "imageType", "kubeletConfig", "labels", "linuxNodeConfig", "loggingConfig", "machineType"),
    *("maxRunDuration", "resourceLabels", "resourceManagerTags", "storagePools", "tags", "taints", "taintConfig"),
    *("windowsNodeConfig", "workloadMetadataConfig", "bootDisk", "consolidationDelay"),
}

# Wording: https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/367, and
# https://github.com/hashicorp/terraform-provider-google/issues/12472.
WORDS = {"exists": "Already exists: {key}.", "missing": "Not found: {key}."}
STATES = ("status", "PROVISIONING", "RUNNING", "STOPPING")
_POOLS = "container.projects.locations.clusters.nodePools"
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
    f"{_POOLS}.update": _updated,
    f"{_POOLS}.setAutoscaling": _autoscaled,
    f"{_POOLS}.setManagement": lambda call, item: {"management": call.body["management"]},
    f"{_POOLS}.setSize": _sized,
}
COLLECTIONS = (
    Collection(
        id=_CLUSTERS, schema="Cluster", wrap="cluster", style="container", kind="CLUSTER", state=STATES,
        made=_cluster_made, settled=_cluster_settled, gone=_cluster_gone, ending=_wiping, **WORDS,
    ),
    Collection(
        id=_POOLS, schema="NodePool", wrap="nodePool", style="container", kind="NODE_POOL", state=STATES, made=_made,
        settled=_settled, gone=delete_groups, **WORDS,
    ),
    Collection(id="container.projects.locations.operations", schema="Operation", **WORDS),
)  # fmt: skip

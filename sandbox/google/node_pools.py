"""GKE's node pools: each has a managed instance group in each of its zones, whose size is the pool's."""

import secrets

from accel.rules.gcp import machines

from .errors import Refused
from .instance_body import accelerator_types
from .world import Call, Collection, Json, World

VERSIONS = ("1.36.4-gke.1082000", "1.35.7-gke.1222000", "1.34.9-gke.1655001")
"""The defaults of the channels rapid, regular and stable, as
https://docs.cloud.google.com/kubernetes-engine/docs/release-notes has them."""

_SCOPES = [
    "https://www.googleapis.com/auth/devstorage.read_only",
    "https://www.googleapis.com/auth/logging.write",
    "https://www.googleapis.com/auth/monitoring",
    "https://www.googleapis.com/auth/service.management.readonly",
    "https://www.googleapis.com/auth/servicecontrol",
    "https://www.googleapis.com/auth/trace.append",
]
"""What a node gets where none are asked for: gke-default. Source:
https://cloud.google.com/sdk/gcloud/reference/container/node-pools/create (--scopes)."""


def version(asked: str) -> str:
    """The version that is meant by one, by the beginning of one, or by none."""
    if asked in ("", "-", "latest"):
        return VERSIONS[0] if asked == "latest" else VERSIONS[1]
    found = [version for version in VERSIONS if version == asked or version.startswith(f"{asked}.")]
    if not found:
        raise Refused(400, f'Master version "{asked}" is unsupported.')
    return found[0]


def _made(call: Call, key: str, item: Json) -> None:
    cluster = call.find(key.rpartition("/nodePools/")[0])
    if cluster is None:
        raise Refused(404, f"Not found: {key.rpartition('/nodePools/')[0]}.")
    if cluster.get("autopilot", {}).get("enabled"):
        raise Refused(400, "Node pools cannot be created in Autopilot clusters.")
    complete(call, cluster, key, item)


def complete(call: Call, cluster: Json, key: str, item: Json) -> None:
    """A pool's body with what GKE adds, and the groups that its nodes are of."""
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
    """GPUs that a machine of each zone brings, or that are attached to N1 there. Sources of the wordings:
    https://github.com/hashicorp/terraform-provider-google/issues/8387,
    https://github.com/GoogleCloudPlatform/k8s-config-connector/pull/1902. GKE's own words for a machine that does not
    take them are not known: those of Compute Engine, which makes the nodes, stand for them."""
    asked = config.get("accelerators", [])
    if asked and not config.get("machineType"):
        raise Refused(400, "Cannot use default machine type (e2-medium) with GPUs; choose a different machine type.")
    for accelerator in asked:
        kind, count = accelerator.get("acceleratorType", "").rpartition("/")[2], int(accelerator["acceleratorCount"])
        for zone in inside:
            if kind not in accelerator_types(zone):
                raise Refused(400, f'Accelerator type "{kind}" does not exist in zone {zone}.')
            if machines.machine(config["machineType"], kind, count, zone):
                said = f"[{kind}, {config['machineType']}] features are not compatible for creating instance."
                raise Refused(400, said)


def stocked_out(call: Call, item: Json) -> str:
    """The zone where the pool's machines cannot be had, or ""."""
    kind = item["config"]["machineType"]
    return next((zone for zone in item["locations"] if {kind, f"{zone}/{kind}"} & call.world.stockouts), "")


def stockout(call: Call, key: str, item: Json) -> str:
    """Why a pool that starts with nodes does not get them, in the words of
    https://github.com/kubeflow/pipelines/issues/673. The pool stays, in the state that GKE gives it."""
    zone = stocked_out(call, item) if item.get("initialNodeCount") else ""
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
    """Source of the wording: https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/pull/1554"""
    asked = call.body["autoscaling"]
    if asked.get("enabled") and not (asked.get("maxNodeCount") or asked.get("totalMaxNodeCount")):
        said = (
            "Node_pool_autoscaling.max_node_count and node_pool_autoscaling.total_max_node_count cannot be both set to"
        )
        raise Refused(400, f"{said} zero.")
    return {"autoscaling": asked}


def _sized(call: Call, item: Json) -> Json:
    """The size of each zone's group: a pool's own `initialNodeCount` stays."""
    for url in item["instanceGroupUrls"]:
        call.world.items[f"compute/{url.partition('/compute/v1/')[2]}"]["targetSize"] = int(call.body["nodeCount"])
    return {}


def resized(world: World, sizes: dict[str, int]) -> Json:
    """What /sandbox-api/sizes answers; groups that are gone meanwhile are passed over."""
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
COLLECTIONS = (
    Collection(
        id=_POOLS, schema="NodePool", wrap="nodePool", style="container", kind="NODE_POOL", state=STATES, made=_made,
        settled=_settled, gone=delete_groups, **WORDS,
    ),
)  # fmt: skip
CHANGES = {
    f"{_POOLS}.update": _updated,
    f"{_POOLS}.setAutoscaling": _autoscaled,
    f"{_POOLS}.setManagement": lambda call, item: {"management": call.body["management"]},
    f"{_POOLS}.setSize": _sized,
}

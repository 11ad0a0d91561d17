"""Machines that come in numbers, as the provider creates and changes them.

These are templates and groups of virtual machines, attached disks, commitments, clusters and node pools. Sources: the
provider's resource_compute_instance_template.go, resource_compute_instance_group_manager.go,
resource_compute_attached_disk.go, resource_container_cluster.go and resource_container_node_pool.go.
"""

import time
from typing import Any

from ..mapping import UnmappedName
from ..resource import State
from .body import to_body
from .life import InitFailure, Kind, address, body, finish, format_template, observed_state, outputs
from .machines import disk_params, machine_body
from .rest import Google, GoogleError, Json, OperationError

_WAIT_S = 120


def create_template(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    inner = {n: v for n, v in inputs.items() if n not in ("name", "namePrefix", "description", "instanceDescription")}
    properties = machine_body(kind, inner)
    if "instanceDescription" in inputs:
        properties["description"] = inputs["instanceDescription"]
    properties["disks"] = [_template_disk(google, index, disk) for index, disk in enumerate(inputs["disks"])]
    sent = {"name": inputs["name"], "properties": properties}
    sent |= {"description": inputs["description"]} if "description" in inputs else {}
    google.done("compute", "POST", format_template(kind.path, inputs), sent, doing="Creating Instance Template")
    return finish_template(google, kind, inputs)


_OF_DISK = ("source", "deviceName", "mode", "interface", "type")


def _template_disk(google: Google, index: int, disk: Json) -> Json:
    made = {name: disk[name] for name in _OF_DISK if name in disk}
    made |= {"boot": disk.get("boot", index == 0), "autoDelete": disk.get("autoDelete", True)}
    if "source" not in disk:
        asked = {n: v for n, v in disk.items() if n not in (*_OF_DISK, "boot", "autoDelete", "guestOsFeatures")}
        made["initializeParams"] = disk_params(google, asked, {})
    return made


def finish_template(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    found = google.get("compute", address(kind, state)) or {}
    id, labels = format_template(kind.id, state), found.get("properties", {}).get("labels", {})
    return id, outputs(kind, {**state, "id": id}, {**found, "labels": labels})


def read_template(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    """Read a template, which never changes."""
    return (inputs, {**outs, **inputs}) if google.get("compute", id) is not None else None


def _group_body(kind: Kind, state: State) -> Json:
    plain = {n: v for n, v in state.items() if n not in ("distributionPolicyZones", "updatePolicy")}
    sent = body(kind, plain)
    if given := state.get("updatePolicy"):
        policy = dict(given)
        for name in ("maxSurge", "maxUnavailable"):
            for unit in ("Fixed", "Percent"):
                if (value := policy.pop(f"{name}{unit}", None)) is not None:
                    policy[name] = {unit.lower(): value}
        sent["updatePolicy"] = policy
    if given := state.get("distributionPolicyZones"):
        sent.setdefault("distributionPolicy", {})["zones"] = [{"zone": f"zones/{zone}"} for zone in given]
    return sent


def create_group(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    sent = {"targetSize": 0, **_group_body(kind, inputs)}
    google.done("compute", "POST", format_template(kind.path, inputs), sent, doing="Creating InstanceGroupManager")
    return _stable(google, kind, inputs)


def _is_stable(google: Google, kind: Kind, inputs: State) -> bool:
    return google.call("GET", "compute", address(kind, inputs))["status"]["isStable"]


def _stable(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    until = time.monotonic() + _WAIT_S
    while inputs.get("waitForInstances") and not _is_stable(google, kind, inputs):
        if time.monotonic() > until:
            raise OperationError("timeout while waiting for state to become 'created'")
        time.sleep(0.05)
    return finish(google, kind, inputs)


def update_group(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    at = address(kind, state)
    new, old = _group_body(kind, state), _group_body(kind, olds)
    sent = {name: new.get(name) for name in new.keys() | old.keys() if new.get(name) != old.get(name)}
    size = sent.pop("targetSize", None)
    if sent:
        google.done("compute", "PATCH", at, sent, doing="Updating managed group instances")
    if size is not None:
        google.done("compute", "POST", f"{at}/resize", doing="Updating InstanceGroupManager", size=str(size))
    if state.get("waitForInstances"):
        _stable(google, kind, state)


def keep_commitment(google: Google, kind: Kind, id: str, outs: State) -> None:
    """Do nothing: a commitment is paid to its end, and the provider only forgets it."""


def _disk_on(google: Google, state: State) -> tuple[str, Json | None]:
    name = str(state["instance"]).rpartition("/")[2]
    at = f"projects/{state['project']}/zones/{state['zone']}/instances/{name}"
    found = google.get("compute", at)
    disk = str(state["disk"]).rpartition("/")[2]
    here = (each for each in (found or {}).get("disks", []) if each.get("source", "").rpartition("/")[2] == disk)
    return at, next(here, None)


def create_attached_disk(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    at, _ = _disk_on(google, inputs)
    sent = {n: inputs[n] for n in ("deviceName", "mode", "interface") if n in inputs} | {"source": inputs["disk"]}
    google.done("compute", "POST", f"{at}/attachDisk", sent, doing="disk to attach")
    return finish_attached_disk(google, kind, inputs)


def finish_attached_disk(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    at, disk = _disk_on(google, state)
    id = f"{at}/{str(state['disk']).rpartition('/')[2]}"
    return id, outputs(kind, {**state, "id": id}, disk or {})


def read_attached_disk(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    return (inputs, {**outs, **inputs}) if _disk_on(google, {**outs, **inputs})[1] else None


def delete_attached_disk(google: Google, kind: Kind, id: str, outs: State) -> None:
    at, disk = _disk_on(google, outs)
    if disk is not None:
        google.done("compute", "POST", f"{at}/detachDisk", doing="disk to detach", deviceName=disk["deviceName"])


def _cluster_body(kind: Kind, inputs: State) -> Json:
    sent = body(kind, inputs)
    if inputs.get("networkingMode") != "ROUTES":
        sent.setdefault("ipAllocationPolicy", {})["useIpAliases"] = True
    return sent


def create_cluster(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    path, sent = format_template(kind.path, inputs), {"cluster": _cluster_body(kind, inputs)}
    try:
        google.done("container", "POST", path, sent, doing="creating GKE cluster")
        if inputs.get("removeDefaultNodePool"):
            pool = f"{address(kind, inputs)}/nodePools/default-pool"
            google.done("container", "DELETE", pool, doing="removing default node pool")
    except (GoogleError, OperationError) as error:
        if isinstance(error, GoogleError) and google.get("container", address(kind, inputs)) is None:
            raise
        # The cluster exists, so it is in the state (resource_container_cluster.go sets the id before it waits).
        id, outs = finish(google, kind, inputs)
        raise InitFailure(id, outs, str(error)) from error
    return finish(google, kind, inputs)


_SETTERS = {"maintenancePolicy": "setMaintenancePolicy", "networkPolicy": "setNetworkPolicy"}
_DESIRED = {
    "nodeLocations": "desiredLocations",
    "minMasterVersion": "desiredMasterVersion",
    "enableShieldedNodes": "desiredShieldedNodes",
    "enableIntranodeVisibility": "desiredIntraNodeVisibilityConfig",
    "enableMultiNetworking": "desiredEnableMultiNetworking",
    "enableFqdnNetworkPolicy": "desiredEnableFqdnNetworkPolicy",
}
"""Names of changes that are not named after their property. Source: ClusterUpdate of the discovery document."""


def update_cluster(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    """Send a request for each property, as the API requires."""
    at, document = address(kind, state), kind.document
    fields = document.schema("ClusterUpdate")["properties"]
    for name in sorted(changed):
        doing = "updating GKE cluster"
        if name == kind.labels:
            found = google.call("GET", "container", at)
            sent = {"resourceLabels": state["pulumiLabels"], "labelFingerprint": found["labelFingerprint"]}
            google.done("container", "POST", f"{at}:setResourceLabels", sent, doing=doing)
            continue
        value = to_body(document, kind.schema, {name: state[name]} if name in state else {name: {}}, kind.names)
        if name in _SETTERS:
            google.done("container", "POST", f"{at}:{_SETTERS[name]}", value or {name: {}}, doing=doing)
            continue
        wanted = _DESIRED.get(name) or f"desired{name[:1].upper()}{name[1:]}"
        if wanted not in fields:
            raise UnmappedName(f"a change of {name} is not mapped to ClusterUpdate")
        (inner,) = value.values()
        if "$ref" not in fields[wanted] or wanted in ("desiredDnsConfig", "desiredGatewayApiConfig"):
            while isinstance(inner, dict) and list(value) == ["networkConfig"]:
                (inner,) = inner.values()
                break
        elif wanted == "desiredIntraNodeVisibilityConfig":
            inner = {"enabled": state[name]}
        google.done("container", "PUT", at, {"update": {wanted: inner}}, doing=doing)


def delete_cluster(google: Google, kind: Kind, id: str, outs: State) -> None:
    if outs.get("deletionProtection", True):
        # As the provider's resource_container_cluster.go refuses it; https://github.com/pulumi/pulumi-gcp/issues/1394.
        text = "Cannot destroy cluster because deletion_protection is set to true."
        raise UnmappedName(f"{text} Set it to false to proceed with cluster deletion.")
    if google.get("container", address(kind, outs)) is not None:
        google.done("container", "DELETE", address(kind, outs), doing="deleting GKE cluster")


def create_pool(google: Google, kind: Kind, inputs: State) -> tuple[str, State]:
    if "initialNodeCount" in inputs and "nodeCount" in inputs:
        text = "Cannot set both initial_node_count and node_count on node pool"
        raise UnmappedName(f"{text} {inputs['name']}")
    sent = body(kind, inputs)
    sent["initialNodeCount"] = inputs.get("initialNodeCount", inputs.get("nodeCount", 0))
    path = format_template(kind.path, inputs)
    try:
        google.done("container", "POST", path, {"nodePool": sent}, doing="creating GKE NodePool")
    except OperationError as error:
        # The pool stays, in an error; so it is in the state, tainted (resource_container_node_pool.go).
        id, outs = finish_pool(google, kind, inputs)
        raise InitFailure(id, outs, str(error)) from error
    return finish_pool(google, kind, inputs)


def finish_pool(google: Google, kind: Kind, state: State) -> tuple[str, State]:
    id = format_template(kind.id, state)
    found = google.get("container", id) or {}
    return id, {**outputs(kind, {**state, "id": id}, found), **_size(google, found)}


def _size(google: Google, found: Json) -> State:
    """Return the number of nodes in a zone, and their groups."""
    groups = [google.get("compute", url.partition("/compute/v1/")[2]) for url in found.get("instanceGroupUrls", [])]
    known = [group for group in groups if group]
    if not known:
        return {}
    return {
        "nodeCount": sum(group["targetSize"] for group in known) // len(known),
        "instanceGroupUrls": [group["instanceGroup"] for group in known],
        "managedInstanceGroupUrls": [group["selfLink"] for group in known],
    }


def read_pool(google: Google, kind: Kind, id: str, inputs: State, outs: State) -> Any:
    found = google.get("container", id)
    if found is None:
        return None
    parts = id.split("/")
    named = {"project": parts[1], "location": parts[3], "cluster": parts[5], "name": parts[7]}
    known = inputs or {**named, "initialNodeCount": found.get("initialNodeCount", 0)}
    now, made = observed_state(kind, {**outs, **known, "id": id}, known, found)
    size = _size(google, found)
    if "nodeCount" in now and "nodeCount" in size:
        now["nodeCount"] = size["nodeCount"]
    if "autoscaling" in now and not found.get("autoscaling", {}).get("enabled"):
        del now["autoscaling"]
    return now, {**made, **size}


def update_pool(google: Google, kind: Kind, state: State, olds: State, changed: set[str]) -> None:
    at, doing = state["id"], "updating GKE node pool"
    if "autoscaling" in changed:
        given = state.get("autoscaling")
        sent = {"enabled": True, **given} if given else {"enabled": False}
        google.done("container", "POST", f"{at}:setAutoscaling", {"autoscaling": sent}, doing=doing)
    if "management" in changed:
        google.done("container", "POST", f"{at}:setManagement", {"management": state["management"]}, doing=doing)
    if "nodeCount" in changed and "nodeCount" in state:
        google.done("container", "POST", f"{at}:setSize", {"nodeCount": state["nodeCount"]}, doing=doing)
    whole, before = body(kind, state), body(kind, olds)
    for place in sorted(_fields(whole, before)):
        google.done("container", "PUT", at, _pool_change(kind, place, whole), doing=doing)


def _fields(whole: Json, before: Json) -> set[str]:
    top = {n for n in whole.keys() | before.keys() if whole.get(n) != before.get(n)}
    top -= {"autoscaling", "management", "initialNodeCount", "config"}
    new, old = whole.get("config", {}), before.get("config", {})
    return top | {f"config.{n}" for n in new.keys() | old.keys() if new.get(n) != old.get(n)}


def _pool_change(kind: Kind, place: str, whole: Json) -> Json:
    name = place.removeprefix("config.")
    value = whole.get("config", {}).get(name) if place != name else whole.get(name)
    inner = {"labels": "labels", "resourceLabels": "labels", "taints": "taints", "tags": "tags"}.get(name)
    field = {"version": "nodeVersion", "networkConfig": "nodeNetworkConfig"}.get(name, name)
    if field not in kind.document.schema("UpdateNodePoolRequest")["properties"]:
        raise UnmappedName(f"a change of {place} is not mapped to UpdateNodePoolRequest")
    return {field: {inner: value or ({} if "abels" in name else [])} if inner else value}

"""ProvisioningRequests of the class queued-provisioning.gke.io: nodes for all pods of a job at once, or none yet.

https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest; conditions, reasons and details are those of
pkg/provisioningrequests of https://github.com/GoogleCloudPlatform/cluster-autoscaler. The pods fit one zone of one pool
with queued provisioning, or the request fails; while there is no stock it waits.

Departures: nodes are not given back after a booking time but when they are idle; maxRunDurationSeconds is not heeded.
"""

import hashlib
from typing import Any, NamedTuple

from .client import Cluster, Object, Refusal
from .events import stamp
from .fit import obstacles, requests, take
from .machines import Machines, NodeRoom
from .nodes import REQUEST_LABEL, Group
from .settings import Settings
from .store import Store

CLASS = "queued-provisioning.gke.io"
COLLECTION = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_ACCEPTED = ("Accepted", True, "SuccessfullyQueued", "Provisioning Request was successfully queued.")
_PROVISIONED = ("Provisioned", True, "Provisioned", "Provisioning Request was successfully provisioned.")
_WAITING = (
    "Provisioned",
    False,
    "ResourcePoolExhausted",
    "Waiting for resources. Currently there are not enough resources available to fulfill the request.",
)
_NO_POOL = ("NoQueuedNodepoolAvailable", "No nodepool with QueuedProvisioning enabled is available for scale up")
_NO_FIT = "ProvisioningRequestNotSchedulableInNodepool"
_NO_ROOM = "NodepoolSizeReached"
_SPREAD = "ProvisioningRequestSingleZoneInfeasible"
_TEXTS = {
    _NO_FIT: "Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking errors: {}",
    _NO_ROOM: "Max nodepool size reached, affected nodepools: {}",
    _SPREAD: "Provisioning Request cannot be scheduled in a single zone of a single nodepool, affected nodepools: {}",
}


class Choice(NamedTuple):
    """Where a request is provided, and by how many nodes."""

    group: Group
    nodes: int


class RequestRefusal(NamedTuple):
    """Why a request fails."""

    reason: str
    message: str


class Provisioning:
    """Answers ProvisioningRequests. `tick` is called again and again by the autoscaler's thread."""

    def __init__(self, cluster: Cluster, machines: Machines, asked: Store, nodes: Store) -> None:
        self._cluster, self._machines, self._asked, self._nodes = cluster, machines, asked, nodes

    def tick(self, settings: Settings) -> None:
        """Look at every request once. Raises Refusal."""
        for request in self._asked.all():
            if request["spec"]["provisioningClassName"] != CLASS:
                continue
            true = {each["type"] for each in _conditions(request) if each["status"] == "True"}
            try:
                if true & {"Failed", "Provisioned", "CapacityRevoked"}:
                    continue
                if "Accepted" in true:
                    self._provide(request, settings)
                else:
                    self._accept(request)
            except Refusal as error:
                if error.status not in (404, 409):
                    raise

    def _accept(self, request: Object) -> None:
        found = self._choose(request)
        if isinstance(found, RequestRefusal):
            self._set(request, ("Failed", True, *found))
            return
        group = found.group
        details = {
            "NodeGroupName": f"{group.name}-grp",
            "NodePoolName": group.pool.name,
            "NodePoolAutoProvisioned": "false",
            "ProvisioningMode": "resize_request",
            "ResizeRequestName": resize_request(request),
            "SelectedZone": group.zone,
            **({"AcceleratorType": group.pool.accelerator["acceleratorType"]} if group.pool.accelerator else {}),
        }
        self._set(request, _ACCEPTED, details)

    def _provide(self, request: Object, settings: Settings) -> None:
        name, details = resize_request(request), request["status"]["provisioningClassDetails"]
        groups = [group for pool in self._machines.pools for group in pool.groups]
        group = next((each for each in groups if f"{each.name}-grp" == details["NodeGroupName"]), None)
        found = self._choose(request, group)
        if group is None or isinstance(found, RequestRefusal):
            self._set(request, ("Failed", True, *(found if isinstance(found, RequestRefusal) else _NO_POOL)))
            return
        here = [node for node in self._nodes.all() if node["metadata"]["labels"].get(REQUEST_LABEL) == name]
        if len(here) >= found.nodes:
            self._set(request, _PROVISIONED)
        elif self._machines.out_of_stock(group, settings):
            self._set(request, _WAITING)
        elif not self._machines.ordered(name):
            self._machines.grow(group, found.nodes - len(here), settings, name)

    def _choose(self, request: Object, only: Group | None = None) -> Choice | RequestRefusal:
        """The group that holds all the pods and how many nodes they take; else reason and message."""
        why: dict[str, dict[str, str]] = {}
        specs = self._pods(request)
        name = resize_request(request)
        for pool in self._machines.pools:
            for group in pool.groups if pool.queued else ():
                if only is not None and group != only:
                    continue
                count = self._nodes_for(specs, group)
                if isinstance(count, str):
                    why.setdefault(_NO_FIT, {})[pool.name] = f"{pool.name} ({count})"
                    continue
                room = self._machines.room(group) + self._machines.of_request(group, name)
                if count <= room:
                    return Choice(group, count)
                reason = _SPREAD if count <= sum(self._machines.room(each) for each in pool.groups) else _NO_ROOM
                why.setdefault(reason, {})[pool.name] = pool.name
        for reason in (_SPREAD, _NO_ROOM, _NO_FIT):
            if reason in why:
                return RequestRefusal(reason, _TEXTS[reason].format(", ".join(why[reason].values())))
        return RequestRefusal(*_NO_POOL)

    def _nodes_for(self, specs: list[Any], group: Group) -> int | str:
        """New nodes that hold all the pods, whole slices; else why the first pod fits none."""
        places: list[NodeRoom] = []
        for spec in specs:
            selector = {key: value for key, value in (spec.get("nodeSelector") or {}).items() if key != REQUEST_LABEL}
            wanted = {**spec, "nodeSelector": selector}
            place = next((each for each in places if not obstacles(wanted, each.node, each.free)), None)
            if place is None:
                place = self._machines.template(group)
                if why := obstacles(wanted, place.node, place.free):
                    return ", ".join(why)
                places.append(place)
            take(place.free, requests(spec))
        return -(-len(places) // group.pool.hosts) * group.pool.hosts

    def _pods(self, request: Object) -> list[Any]:
        namespace = request["metadata"]["namespace"]
        found: list[Any] = []
        for each in request["spec"]["podSets"]:
            path = f"/api/v1/namespaces/{namespace}/podtemplates/{each['podTemplateRef']['name']}"
            found += [self._cluster.get(path)["template"]["spec"]] * each["count"]
        return found

    def _set(self, request: Object, condition: tuple[str, bool, str, str], details: Any = None) -> None:
        kind, holds, reason, message = condition
        before = [each for each in _conditions(request) if each["type"] != kind]
        known = next((each for each in _conditions(request) if each["type"] == kind), {})
        if (known.get("status"), known.get("reason")) == (str(holds), reason):
            return
        body = {
            "type": kind,
            "status": str(holds),
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp(),
            "observedGeneration": request["metadata"]["generation"],
        }
        metadata = request["metadata"]
        path = COLLECTION.replace("/v1/", f"/v1/namespaces/{metadata['namespace']}/") + f"/{metadata['name']}/status"
        status = {"conditions": [*before, body], **({"provisioningClassDetails": details} if details else {})}
        self._asked.put(self._cluster.patch(path, {"status": status}))


def resize_request(request: Object) -> str:
    """The name of the resize request, which its nodes carry as a label."""
    metadata = request["metadata"]
    digest = hashlib.sha256(metadata["uid"].encode()).hexdigest()[:16]
    return f"gke-{metadata['namespace']}-{metadata['name']}"[:46].rstrip("-.") + f"-{digest}"


def _conditions(request: Object) -> list[Any]:
    return (request.get("status") or {}).get("conditions") or []

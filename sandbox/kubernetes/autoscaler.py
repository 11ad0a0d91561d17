"""GKE's cluster autoscaler for the node pools.

Pods that fit nowhere bring nodes, nodes without pods go, and ProvisioningRequests of the class
queued-provisioning.gke.io bring nodes for all pods of a job at once, or none yet.

Rules: https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler. Texts of events: processors/status
and core/scaleup/orchestrator of https://github.com/kubernetes/autoscaler; for a stockout, what GKE writes in addition.
Requests: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest; conditions, reasons and details
are those of pkg/provisioningrequests of https://github.com/GoogleCloudPlatform/cluster-autoscaler. A request's pods fit
one zone of one pool with queued provisioning, or it fails; while there is no stock it waits.

Departures: of several suitable pools, the one that wastes least accelerators, cores and memory is taken (prices are
ignored); a node is removed when it is empty, not already at half load; maximum pods of a cluster are ignored. A slice
of several TPU hosts comes and goes whole, as on GKE. Nodes of a request are not returned after a booking time but when
they are idle; maxRunDurationSeconds is ignored.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .client import Cluster, Object, Refusal, conditions
from .events import stamp
from .fit import obstacles, requests, take
from .machines import Growth, Machines, NodeRoom, age
from .nodes import REQUEST_LABEL, Group, groups_of
from .pool import GPU, TPU
from .settings import Settings
from .store import Store

_CONSUMES = tuple(
    f"{group}/consume-provisioning-request" for group in ("autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io")
)
_NO_ROOM, _BACKOFF = "max node group size reached", "in backoff after failed scale-up"
COLLECTION = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_CLASS = "queued-provisioning.gke.io"
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
_POOL_FULL = "NodepoolSizeReached"
_SPREAD = "ProvisioningRequestSingleZoneInfeasible"
_TEXTS = {
    _NO_FIT: "Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking errors: {}",
    _POOL_FULL: "Max nodepool size reached, affected nodepools: {}",
    _SPREAD: "Provisioning Request cannot be scheduled in a single zone of a single nodepool, affected nodepools: {}",
}


class Autoscaler:
    """Autoscaler of the node pools. One thread calls `tick` repeatedly."""

    def __init__(self, machines: Machines, pods: Store) -> None:
        self._machines, self._pods = machines, pods
        self._idle_since: dict[str, float] = {}

    def tick(self, settings: Settings) -> None:
        """Look at everything once. Raises Refusal where the API server refuses or does not answer."""
        self._scale_up(settings)
        self._scale_down(settings)

    def _scale_up(self, settings: Settings) -> None:
        pending = [pod for pod in self._pods.all() if _unschedulable(pod)]
        if not pending:
            return
        places, planned, stuck = self._machines.places(), list[Growth](), list[tuple[Object, str]]()
        scaled = [group for pool in self._machines.pools if pool.autoscaling for group in groups_of(pool)]
        templates = {group: self._machines.template(group) for group in scaled}
        for pod in sorted(pending, key=age):
            place = next((each for each in places if not obstacles(pod["spec"], each.node, each.free)), None)
            if place is None:
                options, why = self._options(pod["spec"], templates, settings)
                if not options:
                    stuck.append((pod, ", ".join(f"{count} {text}" for text, count in why.items())))
                    continue
                group = min(options, key=lambda each: self._waste(each, pod, templates[each]))
                growth = self._machines.grow(group, self._unit(group), settings)
                planned.append(growth)
                added = [
                    NodeRoom(templates[group].node, dict(templates[group].free), growth) for _ in range(growth.count)
                ]
                places += added
                place = added[0]
            take(place.free, requests(pod["spec"]))
            if place.growth and all(each["metadata"]["uid"] != pod["metadata"]["uid"] for each in place.growth.pods):
                place.growth.pods.append(pod)
        self._tell(planned, stuck)

    def _options(
        self, spec: Mapping[str, Any], templates: Mapping[Group, NodeRoom], settings: Settings
    ) -> tuple[list[Group], Counter[str]]:
        """Return the groups that a pod fits, and the number of groups by the reason why it does not."""
        options, why = list[Group](), Counter[str]()
        for group, template in templates.items():
            if group.pool.queued:
                # Its nodes come for ProvisioningRequests only; its taint keeps other pods off.
                found = obstacles(spec, template.node, template.free)
            elif self._machines.backs_off(group, settings):
                found = [_BACKOFF]
            elif self._machines.room(group) < self._unit(group):
                found = [_NO_ROOM]
            else:
                found = obstacles(spec, template.node, template.free)
                if not found:
                    options.append(group)
            why.update(found)
        return options, why

    def _unit(self, group: Group) -> int:
        """Return the number of nodes that come together: the missing nodes of a slice, else one."""
        here = len(self._machines.members(group)) + self._machines.coming(group)
        return max(group.pool.hosts - here, 1) if group.pool.hosts > 1 else 1

    def _waste(self, group: Group, pod: Object, template: NodeRoom) -> tuple[float, ...]:
        wanted, free = requests(pod["spec"]), template.free
        balanced = group.pool.autoscaling.get("locationPolicy", "BALANCED") != "ANY"
        spread = len(self._machines.members(group)) + self._machines.coming(group) if balanced else 0
        left = [free.get(name, 0) - wanted.get(name, 0) for name in (GPU, TPU, "cpu", "memory")]
        return (left[0] + left[1], left[2], left[3], spread)

    def _tell(self, planned: Iterable[Growth], stuck: Iterable[tuple[Object, str]]) -> None:
        ordered: dict[Group, int] = {}
        for growth in planned:
            ordered[growth.group] = ordered.get(growth.group, 0) + growth.count
        infos: list[str] = []
        for group, count in ordered.items():
            before = len(self._machines.members(group)) + self._machines.coming(group) - count
            most = group.pool.autoscaling.get("maxNodeCount") or group.pool.most
            infos.append(f"{{{group.url} {before}->{before + count} (max: {most})}}")
        for growth in planned:
            for pod in growth.pods:
                self._machines.events.record(pod, "TriggeredScaleUp", f"pod triggered scale-up: [{' '.join(infos)}]")
        for pod, why in stuck if not ordered else ():
            self._machines.events.record(pod, "NotTriggerScaleUp", f"pod didn't trigger scale-up: {why}")

    def _scale_down(self, settings: Settings) -> None:
        busy = {pod["spec"].get("nodeName") for pod in self._pods.all() if _keeps_node(pod)}
        for pool in self._machines.pools:
            if not pool.autoscaling:
                continue
            members = [self._machines.members(group) for group in groups_of(pool)]
            spare = sum(len(nodes) for nodes in members) - pool.least
            for nodes in members:
                floor = pool.autoscaling.get("minNodeCount", 0)
                ripe = [node for node in nodes if self._ripe(node, busy, settings)]
                if pool.hosts > 1 and len(ripe) < len(nodes):
                    continue
                for node in ripe[: max(min(len(nodes) - floor, spare), 0)]:
                    self._machines.remove(node)
                    spare -= 1

    def _ripe(self, node: Object, busy: set[Any], settings: Settings) -> bool:
        name = node["metadata"]["name"]
        if name in busy:
            self._idle_since.pop(name, None)
            return False
        return settings.now() >= self._idle_since.setdefault(name, settings.now()) + settings.idle_s


class _Choice(NamedTuple):
    group: Group
    nodes: int


class _RequestRefusal(NamedTuple):
    reason: str
    message: str


class Provisioning:
    """Controller of ProvisioningRequests. The autoscaler's thread calls `tick` repeatedly."""

    def __init__(self, cluster: Cluster, machines: Machines, asked: Store, nodes: Store) -> None:
        self._cluster, self._machines, self._asked, self._nodes = cluster, machines, asked, nodes

    def tick(self, settings: Settings) -> None:
        """Look at every request once. Raises Refusal."""
        for request in self._asked.all():
            if request["spec"]["provisioningClassName"] != _CLASS:
                continue
            true = {kind for kind, each in conditions(request).items() if each["status"] == "True"}
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
        if isinstance(found, _RequestRefusal):
            self._set(request, ("Failed", True, *found))
            return
        group = found.group
        details = {
            "NodeGroupName": f"{group.name}-grp",
            "NodePoolName": group.pool.name,
            "NodePoolAutoProvisioned": "false",
            "ProvisioningMode": "resize_request",
            "ResizeRequestName": _resize_request(request),
            "SelectedZone": group.zone,
            **({"AcceleratorType": group.pool.accelerator["acceleratorType"]} if group.pool.accelerator else {}),
        }
        self._set(request, _ACCEPTED, details)

    def _provide(self, request: Object, settings: Settings) -> None:
        name, details = _resize_request(request), request["status"]["provisioningClassDetails"]
        groups = [group for pool in self._machines.pools for group in groups_of(pool)]
        group = next((each for each in groups if f"{each.name}-grp" == details["NodeGroupName"]), None)
        found = self._choose(request, group)
        if group is None or isinstance(found, _RequestRefusal):
            self._set(request, ("Failed", True, *(found if isinstance(found, _RequestRefusal) else _NO_POOL)))
            return
        here = [node for node in self._nodes.all() if node["metadata"]["labels"].get(REQUEST_LABEL) == name]
        if len(here) >= found.nodes:
            self._set(request, _PROVISIONED)
        elif self._machines.out_of_stock(group, settings):
            self._set(request, _WAITING)
        elif not self._machines.ordered(name):
            self._machines.grow(group, found.nodes - len(here), settings, name)

    def _choose(self, request: Object, only: Group | None = None) -> _Choice | _RequestRefusal:
        """Return the group that holds all the pods and the number of nodes; else reason and message."""
        why: dict[str, dict[str, str]] = {}
        specs = self._pods(request)
        name = _resize_request(request)
        for pool in self._machines.pools:
            for group in groups_of(pool) if pool.queued else ():
                if only is not None and group != only:
                    continue
                count = self._nodes_for(specs, group)
                if isinstance(count, str):
                    why.setdefault(_NO_FIT, {})[pool.name] = f"{pool.name} ({count})"
                    continue
                room = self._machines.room(group) + self._machines.of_request(group, name)
                if count <= room:
                    return _Choice(group, count)
                reason = _SPREAD if count <= sum(self._machines.room(each) for each in groups_of(pool)) else _POOL_FULL
                why.setdefault(reason, {})[pool.name] = pool.name
        for reason in (_SPREAD, _POOL_FULL, _NO_FIT):
            if reason in why:
                return _RequestRefusal(reason, _TEXTS[reason].format(", ".join(why[reason].values())))
        return _RequestRefusal(*_NO_POOL)

    def _nodes_for(self, specs: list[Any], group: Group) -> int | str:
        """Return the number of new nodes, in whole slices, that hold all the pods; else why the first pod fits none."""
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
        others = conditions(request)
        known = others.pop(kind, {})
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
        status = {"conditions": [*others.values(), body], **({"provisioningClassDetails": details} if details else {})}
        self._asked.put(self._cluster.patch(path, {"status": status}))


def _unschedulable(pod: Object) -> bool:
    """Return whether the scheduler gave up on a pod that belongs to no ProvisioningRequest."""
    metadata, status = pod["metadata"], pod["status"]
    if pod["spec"].get("nodeName") or metadata.get("deletionTimestamp") or status.get("nominatedNodeName"):
        return False
    if status.get("phase") != "Pending" or any(metadata.get("annotations", {}).get(each) for each in _CONSUMES):
        return False
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason") == "Unschedulable"
        for each in status.get("conditions") or []
    )


def _keeps_node(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    over = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not over and not any(owner["kind"] == "DaemonSet" for owner in owners)


def _resize_request(request: Object) -> str:
    """Return the name of the resize request, which its nodes carry as a label."""
    metadata = request["metadata"]
    digest = hashlib.sha256(metadata["uid"].encode()).hexdigest()[:16]
    return f"gke-{metadata['namespace']}-{metadata['name']}"[:46].rstrip("-.") + f"-{digest}"

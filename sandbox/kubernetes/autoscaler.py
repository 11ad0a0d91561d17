"""GKE's cluster autoscaler over the node pools: pods that fit nowhere bring nodes, nodes without pods go.

Rules: https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler. Texts of events: processors/status
and core/scaleup/orchestrator of https://github.com/kubernetes/autoscaler; for a stockout, what GKE writes besides.

Departures: of several pools that would do, the one that wastes least accelerators, cores and memory is taken (prices
are not looked at); a node is removed when it is empty, not already at half load; maximum pods of a cluster are not
looked at. A slice of several TPU hosts comes and goes whole, as on GKE.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .client import Object
from .fit import obstacles, requests, take
from .machines import Growth, Machines, NodeRoom, age
from .nodes import GPU, TPU, Group
from .settings import Settings
from .store import Store

CONSUMES = tuple(
    f"{group}/consume-provisioning-request" for group in ("autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io")
)
_NO_ROOM, _BACKOFF = "max node group size reached", "in backoff after failed scale-up"


class Autoscaler:
    """Decides how many nodes pools have. `tick` is called again and again by one thread."""

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
        scaled = [group for pool in self._machines.pools if pool.autoscaling for group in pool.groups]
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
        """The groups that a pod fits, and of the others why not, counted."""
        options, why = list[Group](), Counter[str]()
        for group, template in templates.items():
            if group.pool.queued:
                # Its nodes come for ProvisioningRequests only; what keeps other pods off is its taint.
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
        """Nodes that come together: what is missing of a slice, else one."""
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
            members = [self._machines.members(group) for group in pool.groups]
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


def _unschedulable(pod: Object) -> bool:
    """Whether the scheduler gave up on a pod, and no ProvisioningRequest speaks for it."""
    metadata, status = pod["metadata"], pod["status"]
    if pod["spec"].get("nodeName") or metadata.get("deletionTimestamp") or status.get("nominatedNodeName"):
        return False
    if status.get("phase") != "Pending" or any(metadata.get("annotations", {}).get(each) for each in CONSUMES):
        return False
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False" and each.get("reason") == "Unschedulable"
        for each in status.get("conditions") or []
    )


def _keeps_node(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or []
    over = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not over and not any(owner["kind"] == "DaemonSet" for owner in owners)

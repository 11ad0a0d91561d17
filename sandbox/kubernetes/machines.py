"""Machines of the node pools: those that a pool starts with and keeps, those on their way, and what is free of each.

A pool without autoscaling gets preempted machines back, as its instance group would replace them. Machines come after a
while, unless there are none:
https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability.
"""

from dataclasses import dataclass, field

from .client import Cluster, Object, Refusal
from .events import Events
from .fit import Amounts, amounts, obstacles, requests, take
from .nodes import POOL_ANNOTATION, REQUEST_LABEL, Group, groups_of
from .pool import Pool
from .settings import Settings
from .store import Store

_CONDITION = "node.kubernetes.io/"
_STOCKOUT = (
    "Node scale up in zones {} associated with this pod failed: GCE out of resources. "
    "Pod is at risk of not being scheduled."
)


@dataclass
class Growth:
    """Nodes on their way, which are there once `due` has come."""

    group: Group
    count: int
    due: float
    pods: list[Object] = field(default_factory=list[Object])
    request: str = ""


@dataclass
class NodeRoom:
    """Node that is there or on its way, and what is free of it."""

    node: Object
    free: Amounts
    growth: Growth | None = None


class Machines:
    """Nodes of pools, which it creates and removes. One thread calls `tick` repeatedly."""

    def __init__(self, cluster: Cluster, nodes: Store, pods: Store, daemons: Store, kubelet_port: int) -> None:
        self._cluster, self._nodes, self._pods, self._daemons = cluster, nodes, pods, daemons
        self._kubelet_port = kubelet_port
        self.events = Events(cluster, "cluster-autoscaler")
        self._started: set[Group] = set()
        self._growths: list[Growth] = []
        self._backoff: dict[str, float] = {}
        self.pools: list[Pool] = []

    def tick(self, pools: list[Pool], settings: Settings) -> None:
        """Remove nodes without a pool, and create those that are due. Raises Refusal."""
        self.pools = pools
        groups = [group for pool in pools for group in groups_of(pool)]
        links = {pool.link for pool in pools}
        for node in self._nodes.all():
            link = node["metadata"].get("annotations", {}).get(POOL_ANNOTATION)
            if link and link not in links:
                self.remove(node)
        self._growths = [growth for growth in self._growths if growth.group.pool.link in links]
        self._started &= set(groups)
        for group in groups:
            self._hold(group, settings)
        self._arrive(settings)

    def members(self, group: Group) -> list[Object]:
        return [node for node in self._nodes.all() if group.holds(node)]

    def coming(self, group: Group) -> int:
        return sum(growth.count for growth in self._growths if growth.group == group)

    def sizes(self) -> dict[str, int]:
        """Return the number of nodes, there or on their way, of the groups of autoscaled pools, by the group's path."""
        groups = [group for pool in self.pools if pool.autoscaling for group in groups_of(pool)]
        return {group.manager: len(self.members(group)) + self.coming(group) for group in groups}

    def grow(self, group: Group, count: int, settings: Settings, request: str = "") -> Growth:
        """Order nodes. They come after a while, unless the pool is out of stock then."""
        growth = Growth(group, count, settings.now() + settings.scale_up_s, request=request)
        self._growths.append(growth)
        return growth

    def ordered(self, request: str) -> int:
        return sum(growth.count for growth in self._growths if growth.request == request)

    def of_request(self, group: Group, request: str) -> int:
        """Return the number of a group's nodes, there or on their way, for a resize request."""
        here = [node for node in self.members(group) if node["metadata"]["labels"].get(REQUEST_LABEL) == request]
        return len(here) + self.ordered(request)

    def remove(self, node: Object) -> None:
        """Delete a node. The kubelet ends its pods' processes, as when the machine goes."""
        try:
            self._cluster.delete(f"/api/v1/nodes/{node['metadata']['name']}")
        except Refusal as error:
            if error.status != 404:
                raise
        self._nodes.drop(node)

    def room(self, group: Group) -> int:
        """Return how many more nodes the pool's bounds allow for a group. Nodes on their way count."""
        pool, bounds = group.pool, group.pool.autoscaling
        here = len(self.members(group)) + self.coming(group)
        everywhere = sum(len(self.members(each)) + self.coming(each) for each in groups_of(pool))
        room = pool.most - everywhere
        return min(room, bounds["maxNodeCount"] - here) if bounds.get("maxNodeCount") else room

    def out_of_stock(self, group: Group, settings: Settings) -> bool:
        own, machine = group.pool.name, group.pool.machine.name
        pools = {own, f"{group.zone}/{own}"} & {*settings.stockout}
        return bool(pools or {machine, f"{group.zone}/{machine}"} & settings.exhausted)

    def backs_off(self, group: Group, settings: Settings) -> bool:
        return self._backoff.get(group.name, 0) > settings.now()

    def template(self, group: Group) -> NodeRoom:
        """Return a node of a group as it would come, with what its DaemonSets leave free."""
        node = group.node(self._kubelet_port)
        free = amounts(group.pool.allocatable())
        for daemon in self._daemons.all():
            spec = daemon["spec"]["template"]["spec"]
            if not obstacles(spec, node, free):
                take(free, requests(spec))
        return NodeRoom(node, free)

    def places(self) -> list[NodeRoom]:
        """Return every node that accepts pods, there or on its way, with what is free of it."""
        groups = {(group.pool.name, group.zone): group for pool in self.pools for group in groups_of(pool)}
        found: dict[str, NodeRoom] = {}
        for node in self._nodes.all():
            if node["spec"].get("unschedulable") or node["metadata"].get("deletionTimestamp"):
                continue
            free = amounts(node["status"].get("allocatable") or {})
            group = next((group for group in groups.values() if group.holds(node)), None)
            if group:  # its driver may still be on its way
                free = amounts(group.pool.extended) | free
            # Taints of conditions are ignored: a node has such a taint from its creation until it is ready.
            taints = [each for each in node["spec"].get("taints") or [] if not each["key"].startswith(_CONDITION)]
            found[node["metadata"]["name"]] = NodeRoom({**node, "spec": {**node["spec"], "taints": taints}}, free)
        for pod in self._pods.all():
            place = found.get(pod["spec"].get("nodeName", ""))
            if place and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                take(place.free, requests(pod["spec"]))
        for growth in self._growths:
            for index in range(growth.count):
                place = self.template(growth.group)
                place.growth = growth
                found[f"{growth.group.name} {id(growth)} {index}"] = place
        return list(found.values())

    def _hold(self, group: Group, settings: Settings) -> None:
        """Create the initial nodes of a pool, and keep a pool without autoscaling at its size."""
        here = len(self.members(group)) + self.coming(group)
        wanted = int(group.pool.body.get("initialNodeCount") or 0)
        if group.pool.queued:
            wanted = 0
        if group not in self._started:
            self._started.add(group)
            for _ in range(0 if self.out_of_stock(group, settings) else wanted - here):
                self._make(group)
        elif not group.pool.autoscaling and not group.pool.queued:
            if here < wanted and not self.backs_off(group, settings):
                self.grow(group, wanted - here, settings)
            for node in sorted(self.members(group), key=age)[wanted:]:
                self.remove(node)

    def _make(self, group: Group, request: str = "") -> None:
        self._nodes.put(self._cluster.create("/api/v1/nodes", group.node(self._kubelet_port, request)))

    def _arrive(self, settings: Settings) -> None:
        due = [growth for growth in self._growths if growth.due <= settings.now()]
        self._growths = [growth for growth in self._growths if growth not in due]
        for growth in due:
            if self.out_of_stock(growth.group, settings):
                self._backoff[growth.group.name] = settings.now() + settings.backoff_s
                for pod in growth.pods:
                    self.events.record(pod, "FailedScaleUp", _STOCKOUT.format(growth.group.zone), warning=True)
            else:
                for _ in range(growth.count):
                    self._make(growth.group, growth.request)


def age(body: Object) -> tuple[str, str]:
    """Return a key that sorts objects, the oldest first."""
    return body["metadata"]["creationTimestamp"], body["metadata"]["name"]

"""Levers of clusters: node pools that grow no more, and Kueue's queues that admit nothing."""

from __future__ import annotations

from typing import Any

from accel.budget.levers import FOREIGN, Change, LeverFailed

from .cloud import MERGE_PATCH, Cloud, NotThere, part
from .plan import PlannedCluster

OFF: dict[str, Any] = {"enabled": False}
_EACH, _TOTAL = ("minNodeCount", "maxNodeCount"), ("totalMinNodeCount", "totalMaxNodeCount")
_QUEUES = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
NONE, HOLD, DRAIN = "None", "Hold", "HoldAndDrain"
"""Stop policies. Hold: nothing new is admitted; HoldAndDrain: what runs is evicted too, by SIGTERM. Source:
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/#stoppolicy"""


class Pools:
    """Pools of accelerators come to 0 nodes and stay there.

    GKE takes no maximum of 0: "max_node_count and total_max_node_count cannot be both set to zero"
    (https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/pull/1554). So a pool without nodes
    has its autoscaling switched off. One that has nodes may shrink only (minimum 0, maximum 1), nothing running is
    ended, and a later look switches it off, once the last of them is gone.
    """

    stage, kind = "maximums", "gke-pools"

    def __init__(self, cloud: Cloud, clusters: list[PlannedCluster]) -> None:
        self._cloud = cloud
        self._names = [f"{each.path}/nodePools/{pool}" for each in clusters for pool in each.pools.values()]

    def plan(self) -> list[Change]:
        found = ((name, self._pool(name)) for name in self._names)
        return [self._change(name, pool) for name, pool in found if pool.get("autoscaling", {}).get("enabled")]

    def _change(self, name: str, pool: dict[str, Any]) -> Change:
        now, nodes = pool["autoscaling"], self._nodes(pool)
        ends = f" once its nodes ({nodes} now) are gone, no new ones until then" if nodes else ""
        text = f"node pool {_short(name)}: autoscaling to {_most(now)} nodes, to 0 nodes and off{ends}"
        return Change(self.stage, self.kind, name, now, _narrow(now) if nodes else OFF, text, later=nodes > 0)

    def pull(self, change: Change) -> None:
        pool = self._pool(change.name)
        if change.after == OFF and (nodes := self._nodes(pool)):
            raise LeverFailed(f"node pool {_short(change.name)}: nodes have come meanwhile ({nodes})")
        if not _same(pool.get("autoscaling", OFF), change.after):
            self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        if change.name not in self._names:
            return f"node pool {_short(change.name)} {FOREIGN}"
        now = self._pool(change.name).get("autoscaling", OFF)
        if _same(now, change.before):
            return None
        ours = (OFF, _narrow(change.before))
        if not any(_same(now, each) for each in ours):
            return f"node pool {_short(change.name)}: autoscaling to {_most(now)} nodes"
        try:
            self._set(change.name, change.before)
        except NotThere:
            return f"node pool {_short(change.name)}: is not there"
        return None

    def _pool(self, name: str) -> dict[str, Any]:
        try:
            return self._cloud.call("GET", "container", f"v1/{name}")
        except NotThere:
            return {}

    def _nodes(self, pool: dict[str, Any]) -> int:
        """Of all its groups, as they are wanted: what is on its way counts."""
        paths = (url.partition("/compute/v1/")[2] for url in pool.get("instanceGroupUrls", []))
        return sum(int(self._cloud.call("GET", "compute", path).get("targetSize", 0)) for path in paths)

    def _set(self, name: str, autoscaling: dict[str, Any]) -> None:
        """A cluster takes one change at a time, so its end is waited for."""
        begun = self._cloud.call("POST", "container", f"v1/{name}:setAutoscaling", {"autoscaling": autoscaling})
        self._cloud.done("container", f"v1/{name.partition('/clusters/')[0]}/operations", begun)


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _narrow(before: dict[str, Any]) -> dict[str, Any]:
    """Autoscaling that only shrinks a pool: down to none, and never above one node, or one of each zone."""
    least, most = _TOTAL if before.get("totalMaxNodeCount") else _EACH
    return {**{name: value for name, value in before.items() if name not in (least, most)}, least: 0, most: 1}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Google leaves zeros out."""
    return {k: v for k, v in one.items() if v} == {k: v for k, v in other.items() if v}


def _most(autoscaling: dict[str, Any]) -> int:
    return int(autoscaling.get("totalMaxNodeCount") or autoscaling.get("maxNodeCount") or 0)


class Queues:
    """Kueue's ClusterQueues get a stop policy: Hold with the stop, HoldAndDrain when running work is stopped."""

    def __init__(self, cloud: Cloud, clusters: list[PlannedCluster], *, drain: bool = False) -> None:
        self._cloud, self._after = cloud, DRAIN if drain else HOLD
        self._clusters = {each.path: each for each in clusters}
        self._queues = [(each.path, queue) for each in clusters for queue in each.queues]
        self.stage, self.kind = ("running", "kueue-drain") if drain else ("kueue", "kueue-hold")

    def plan(self) -> list[Change]:
        found = ((path, queue, self._policy(path, queue)) for path, queue in self._queues)
        weaker = {HOLD: (NONE,), DRAIN: (NONE, HOLD)}[self._after]
        return [self._change(path, queue, now) for path, queue, now in found if now in weaker]

    def _change(self, path: str, queue: str, now: str) -> Change:
        text = f"cluster queue {queue} of {_short(path)}: stop policy {self._after}"
        return Change(self.stage, self.kind, f"{path}{_QUEUES}/{queue}", now, self._after, text)

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        path, _, queue = change.name.partition(f"{_QUEUES}/")
        if (path, queue) not in self._queues:
            return f"cluster queue {queue} {FOREIGN}"
        now = self._policy(path, queue)
        if now == change.before:
            return None
        if now != change.after:
            return f"cluster queue {queue}: stop policy {now or 'is not there'}"
        self._set(change.name, change.before)
        return None

    def _policy(self, path: str, queue: str) -> str:
        """ "" where there is no such queue, or no cluster any more."""
        if path not in self._clusters:
            return ""
        try:
            found = self._ask(path, "GET", queue)
        except NotThere:
            return ""
        return str(found.get("spec", {}).get("stopPolicy") or NONE)

    def _set(self, name: str, policy: str) -> None:
        path, queue = name.split(f"{_QUEUES}/")
        self._ask(path, "PATCH", queue, {"spec": {"stopPolicy": policy}})

    def _ask(self, path: str, method: str, queue: str, body: Any = None) -> dict[str, Any]:
        cluster = self._clusters[path]
        where = {"endpoint": cluster.endpoint, "ca_certificate": cluster.ca_certificate}
        return self._cloud.kubernetes(where, method, f"{_QUEUES}/{part(queue)}", body, MERGE_PATCH)

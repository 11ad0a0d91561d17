"""Drift inside a GKE cluster: nodes that have lost their GPUs or the labels by which they are found, and queues that
are inactive."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from accel.clouds.google.rest import entries, mapping
from accel.contract.gke import POOL_LABEL, GkeCluster, GkePool
from accel.diagnostics.errors import CloudRefused, CloudSilent, NotFound
from jobs.backends.gke.clusters import Clusters
from jobs.backends.gke.labels import Scope

from .differences import Drift, attempt_check
from .google import moment
from .state import State

NODE_POOL = "cloud.google.com/gke-nodepool"
GKES = ("cloud.google.com/", "kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/")
"""How labels begin that are not the author's own."""
SELECTED = (
    *(f"cloud.google.com/gke-{of}" for of in ("accelerator", "tpu-accelerator", "tpu-topology")),
    *(f"cloud.google.com/gke-gpu-{of}" for of in ("driver-version", "partition-size", "sharing-strategy")),
)
"""Labels of GKE's by which device plugins, drivers and jobs find a node. Source:
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus"""
GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
SETTLING = timedelta(minutes=30)
"""A new node has no GPUs yet, for up to 15 minutes (utils/gpu/gpu.go of the cluster autoscaler), and a driver may be
built meanwhile."""
CLUSTER_QUEUE = "kueue.x-k8s.io"
BORNE = (CloudRefused, CloudSilent, NotFound)
NEW_NODE = "kubectl drain and delete the node: GKE makes it anew"


def drift_of_clusters(state: State, now: datetime) -> list[Drift]:
    """Every cluster that the stack exports. What may not be read, or cannot be reached from here, is `unknown`; raises
    NoCredentials."""
    found: list[Drift] = []
    for key, told in (mapping(state.outputs.get("clusters")) or {}).items():
        cluster = GkeCluster.model_validate(told, extra="ignore")
        clusters = Clusters(Scope(cluster.project, cluster.location, cluster.name, "default"))
        pools = {pool.name: pool for pool in cluster.pools.values()}

        def nodes(clusters: Clusters = clusters, pools: Mapping[str, GkePool] = pools) -> Iterator[Drift]:
            for node in clusters.api.items("/api/v1/nodes"):
                labels = mapping((mapping(node.get("metadata")) or {}).get("labels")) or {}
                if pool := pools.get(str(labels.get(NODE_POOL))):
                    yield from judge_node(node, pool, now)

        found += attempt_check(f"nodes of cluster {key}", nodes, BORNE)
        found += attempt_check(f"queues of cluster {key}", lambda clusters=clusters: _queues(clusters, state), BORNE)
    return found


def judge_node(node: Mapping[str, Any], pool: GkePool, now: datetime) -> Iterator[Drift]:
    """What a node of a pool lacks. One that is not ready, that goes, or that is new, may lack what it likes."""
    metadata, status = (mapping(node.get(part)) or {} for part in ("metadata", "status"))
    if metadata.get("deletionTimestamp") or not _ready(status):
        return
    name, labels = str(metadata.get("name")), mapping(metadata.get("labels")) or {}
    own = {POOL_LABEL: pool.key} | {key: value for key, value in pool.labels.items() if _matters(key)}
    lost = [f"{key}={value}" for key, value in sorted(own.items()) if labels.get(key) != value]
    if lost:
        text = f"has lost {', '.join(lost)}: jobs, the device plugin or the driver do not find it"
        yield Drift("node label", name, "broken", text, f"kubectl label node {name} {' '.join(lost)} --overwrite")
    wanted = {GPU: pool.gpus, TPU: pool.tpu_chips}
    there, whole = (mapping(status.get(part)) or {} for part in ("allocatable", "capacity"))
    created = moment(metadata.get("creationTimestamp"))
    settled = created is not None and now - created > SETTLING
    for resource, count in wanted.items():
        has = _count(there.get(resource))
        # A device plugin that dies leaves the capacity, and takes what can be allocated of it.
        if has < count and (settled or has < _count(whole.get(resource))):
            text = f"offers {has} of {count} {resource}: its device plugin or its driver does not run"
            yield Drift("device plugin", name, "broken", text, NEW_NODE)


def _queues(clusters: Clusters, state: State) -> Iterator[Drift]:
    """ClusterQueues of the stack that admit nothing. Source: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/"""
    own = {
        (str(each.type).split("/")[1].partition(":")[0], str((mapping(each.inputs.get("metadata")) or {}).get("name")))
        for each in state.resources
        if each.type.startswith(f"kubernetes:{CLUSTER_QUEUE}/") and each.type.endswith(":ClusterQueue")
    }
    for version, name in sorted(own):
        try:
            found = clusters.api.get(f"/apis/{CLUSTER_QUEUE}/{version}/clusterqueues/{name}")
        except NotFound:  # a property's business
            continue
        for each in entries((mapping(found.get("status")) or {}).get("conditions")):
            condition = mapping(each) or {}
            if condition.get("type") == "Active" and condition.get("status") == "False":
                text = f"admits no job: {condition.get('reason')}: {condition.get('message')}"
                yield Drift("queue", name, "broken", text, "pulumi up --refresh; stopPolicy: stacks budget resume")


def _matters(label: str) -> bool:
    """Whether something selects nodes by it: the author's labels, and some of GKE's."""
    return label in SELECTED or not label.startswith(GKES)


def _ready(status: Mapping[str, Any]) -> bool:
    conditions = [mapping(each) or {} for each in entries(status.get("conditions"))]
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _count(value: object) -> int:
    return int(str(value)) if str(value).isdigit() else 0

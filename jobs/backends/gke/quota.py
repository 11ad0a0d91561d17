"""Free GPUs and TPU chips of a namespace's pools, and what its queue's quota leaves of them.

Free in a pool is what its nodes can allocate less what the pods on them request, plus what further nodes would have.
Kueue's quota is the ClusterQueue's: nominal, less everybody's reservations; what could be borrowed from a cohort is not
counted. Sources: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/,
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from accel.clouds.kubernetes.client import Api
from accel.contract.gke import POOL_LABEL, GkeTarget
from accel.diagnostics.errors import CloudRefused, NotFound
from accel.json_values import object_at, objects_at

from ..free_gpus import Free
from .machines import CHIPS, GPUS

KUEUE = "/apis/kueue.x-k8s.io/v1beta1"


def free(api: Api, target: GkeTarget) -> Sequence[Free]:
    """Return a row for each pool with GPUs or chips, and one for the queue if its quota may be read."""
    pools = {key: pool for key, pool in target.pools.items() if pool.gpus or pool.tpu_chips}
    if not pools:
        return []
    names = {pool.name: key for key, pool in pools.items()}
    nodes = list(api.items("/api/v1/nodes"))
    used = _used(api)
    found: list[Free] = []
    for key, pool in pools.items():
        resource, each = (GPUS, pool.gpus) if pool.gpus else (CHIPS, pool.tpu_chips)
        ours = [node for node in nodes if _pool(node, names) == key]
        idle = sum(
            max(
                0,
                _amount(object_at(node, "status", "allocatable"), resource)
                - used[str(object_at(node, "metadata").get("name")), resource],
            )
            for node in ours
            if not object_at(node, "spec").get("unschedulable")
        )
        more = max(0, pool.max_nodes - len(ours)) * each
        found.append(Free(key, idle + more, max(pool.max_nodes, len(ours)) * each, idle))
    return [*found, *_quota(api, target)]


def _pool(node: Mapping[str, Any], names: Mapping[str, str]) -> str | None:
    """Find the target's key by our label, else by the pool's name."""
    labels = object_at(node, "metadata", "labels")
    return labels.get(POOL_LABEL) or names.get(str(labels.get("cloud.google.com/gke-nodepool")))


def _used(api: Api) -> Counter[tuple[str, str]]:
    """Sum what pods request, by node and resource. Ended pods hold nothing."""
    used: Counter[tuple[str, str]] = Counter()
    for pod in api.items("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed"):
        node = str(object_at(pod, "spec").get("nodeName") or "")
        for container in objects_at(object_at(pod, "spec"), "containers"):
            for resource in (GPUS, CHIPS):
                used[node, resource] += _amount(object_at(container, "resources", "limits"), resource)
    return used


def _quota(api: Api, target: GkeTarget) -> list[Free]:
    """Return nothing without a queue, or if it may not be read."""
    if target.queue is None:
        return []
    try:
        local = api.get(f"{KUEUE}/namespaces/{target.namespace}/localqueues/{target.queue}")
        queue = api.get(f"{KUEUE}/clusterqueues/{object_at(local, 'spec').get('clusterQueue')}")
    except (CloudRefused, NotFound):
        return []
    nominal = taken = 0
    for group in objects_at(object_at(queue, "spec"), "resourceGroups"):
        for flavor in objects_at(group, "flavors"):
            rows = [row for row in objects_at(flavor, "resources") if row.get("name") in (GPUS, CHIPS)]
            nominal += sum(_number(row.get("nominalQuota")) for row in rows)
    for flavor in objects_at(object_at(queue, "status"), "flavorsReservation"):
        rows = [row for row in objects_at(flavor, "resources") if row.get("name") in (GPUS, CHIPS)]
        taken += sum(_number(row.get("total")) for row in rows)
    return [Free(f"quota of {target.queue}", max(0, nominal - taken), nominal)] if nominal else []


def _amount(resources: Mapping[str, Any], name: str) -> int:
    return _number(resources.get(name))


def _number(value: object) -> int:
    """Parse a whole quantity of Kubernetes. GPUs and chips use no suffix other than thousands (`1k`)."""
    text = str(value or 0)
    return int(text[:-1]) * 1000 if text.endswith("k") else int(text)

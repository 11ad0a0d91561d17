"""The bodies of Kueue's objects, as v1beta1 of release 0.14 has them.

https://github.com/kubernetes-sigs/kueue/tree/v0.14.0/apis/kueue/v1beta1
"""

from collections.abc import Mapping, Sequence
from typing import Any

from accel.contract.gke import POOL_LABEL, GkePool
from accel.rules.gke.kueue import PoolFacts, Share, covered, nominal

from .pools import ACCELERATOR, EFFECTS, NODE_POOL, Pool

API = "kueue.x-k8s.io/v1beta1"

RESOURCES = {
    "cpu_m": ("cpu", "m"),
    "memory_mib": ("memory", "Mi"),
    "disk_gib": ("ephemeral-storage", "Gi"),
    "gpus": ("nvidia.com/gpu", ""),
    "tpu_chips": ("google.com/tpu", ""),
}
"""Kubernetes' name and unit of each resource of a pool."""

_TOLD_APART_BY = (
    ACCELERATOR,
    "cloud.google.com/gke-tpu-accelerator",
    "cloud.google.com/gke-tpu-topology",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-gpu-partition-size",
    "cloud.google.com/gke-gpu-sharing-strategy",
    "node.kubernetes.io/instance-type",
)
"""Labels that jobs select by, with the pool's own the eight that a flavor may have: a flavor whose labels lack one that
a job selects by would be taken for a match."""

_QUEUED_CLASS = "queued-provisioning.gke.io"
_REQUEST = "autoscaling.gke.io/provisioning-request"


def facts(pool: GkePool) -> PoolFacts:
    """A pool as the rules see it."""
    node = {
        "cpu_m": pool.cpu_m,
        "memory_mib": pool.memory_mib,
        "disk_gib": pool.disk_gib,
        "gpus": pool.gpus,
        "tpu_chips": pool.tpu_chips,
    }
    return PoolFacts(
        capacity=pool.capacity,
        queued=pool.queued,
        nodes=pool.max_nodes,
        node={name: amount for name, amount in node.items() if amount},
        taints=len(pool.taints),
        accelerator=pool.accelerator or pool.tpu_accelerator,
    )


def flavor(pool: Pool) -> dict[str, Any]:
    """A ResourceFlavor: the nodes of one pool, and what its pods get to be let onto them."""
    labels = {key: pool.facts.labels[key] for key in _TOLD_APART_BY if key in pool.facts.labels}
    tolerations = [
        {
            "key": taint.key,
            "effect": EFFECTS[taint.effect],
            **({"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}),
        }
        for taint in pool.facts.taints
    ]
    # A queue picks a flavor by these labels alone: they have to be those by which jobs name a pool.
    own = {POOL_LABEL: key} if (key := pool.facts.labels.get(POOL_LABEL)) else {NODE_POOL: pool.name}
    return {"nodeLabels": {**labels, **own}, **({"tolerations": tolerations} if tolerations else {})}


def resource_group(shares: Sequence[Share], pools: Mapping[str, PoolFacts]) -> dict[str, Any]:
    """Every resource of a queue for each of its flavors, in one order, as Kueue demands; 0 of what a pool lacks."""
    resources = covered(shares, pools)
    return {
        "coveredResources": [RESOURCES[name][0] for name in resources],
        "flavors": [
            {"name": share.pool, "resources": [_quota(name, share, pools[share.pool], resources) for name in resources]}
            for share in shares
        ],
    }


def _quota(name: str, share: Share, pool: PoolFacts, resources: Sequence[str]) -> dict[str, Any]:
    quota: dict[str, Any] = {
        "name": RESOURCES[name][0],
        "nominalQuota": quantity(name, nominal(share, pool, resources)[name]),
    }
    for key, limit in (("borrowingLimit", share.borrowing), ("lendingLimit", share.lending)):
        if name in limit:
            quota[key] = quantity(name, limit[name])
    return quota


def quantity(name: str, amount: int) -> str:
    """An amount in Kubernetes' words: 95890m, 1280Gi, 8."""
    unit = RESOURCES[name][1]
    if unit == "m" and amount % 1000 == 0:
        return str(amount // 1000)
    if unit == "Mi" and amount and amount % 1024 == 0:
        return f"{amount // 1024}Gi"
    return f"{amount}{unit}" if amount else "0"


def namespaces(names: Sequence[str]) -> dict[str, Any]:
    """Those whose jobs a queue takes; without names, all."""
    if not names:
        return {}
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(names)}]}


def provisioning(pools: Sequence[PoolFacts], retries: int, first_wait_s: int, most_wait_s: int) -> dict[str, Any]:
    """A ProvisioningRequestConfig for GKE: the pods of a job are sent to the nodes that came for it.

    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
    """
    queued = [pool for pool in pools if pool.queued]
    having = [RESOURCES[name][0] for name in ("gpus", "tpu_chips") if any(pool.node.get(name) for pool in queued)]
    return {
        "provisioningClassName": _QUEUED_CLASS,
        "managedResources": having,
        "retryStrategy": {
            "backoffLimitCount": retries,
            "backoffBaseSeconds": first_wait_s,
            "backoffMaxSeconds": most_wait_s,
        },
        "podSetUpdates": {"nodeSelector": [{"key": _REQUEST, "valueFromProvisioningClassDetail": "ResizeRequestName"}]},
    }


def admission_check(config: str) -> dict[str, Any]:
    """An AdmissionCheck that asks for nodes as a ProvisioningRequestConfig says."""
    return {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": config},
    }

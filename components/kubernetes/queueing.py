"""Kueue's objects: the pools that a queue has quota of, their order, and the queues that may borrow. Their bodies
follow v1beta1 of release 0.14: https://github.com/kubernetes-sigs/kueue/tree/v0.14.0/apis/kueue/v1beta1"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.contract.gke import POOL_LABEL, GkePool
from accel.diagnostics.findings import Finding, under
from accel.rules.gke import kueue as rules
from accel.rules.gke import names
from accel.rules.gke.kueue import PoolFacts, Share, covered_resources, nominal

from ..base import Component, Spec
from ..sdk import apiextensions, meta
from .findings import enforce
from .objects import register
from .pools import ACCELERATOR, EFFECTS, NODE_POOL, Pool
from .provisioning_watchdog import ProvisioningWatchdogSpec


class Amounts(Spec):
    """An amount that a pool lends: whole nodes of it, or single resources, which override those of the nodes."""

    nodes: int | None = Field(default=None, ge=0)
    cpu_m: int | None = Field(default=None, ge=0)
    memory_mib: int | None = Field(default=None, ge=0)
    disk_gib: int | None = Field(default=None, ge=0)
    gpus: int | None = Field(default=None, ge=0)
    tpu_chips: int | None = Field(default=None, ge=0)

    def of(self, node: rules.Amounts) -> dict[str, int]:
        """Return the amounts by resource, for a pool with such nodes; omit what is not given."""
        whole = {} if self.nodes is None else {name: amount * self.nodes for name, amount in node.items()}
        return {**whole, **self.model_dump(exclude_none=True, exclude={"nodes"})}


class QueuePool(Spec):
    """A queue's quota of one pool."""

    pool: str = Field(description="Config key of the pool")
    nominal: Amounts | None = Field(
        default=None, description="Quota that the queue owns. Default: all that the pool can grow to"
    )
    borrowing: Amounts | None = Field(
        default=None, description="Maximum quota to borrow from the cohort. Default: no limit"
    )
    lending: Amounts | None = Field(default=None, description="Maximum quota to lend to the cohort. Default: all")

    def share(self, node: rules.Amounts) -> rules.Share:
        return rules.Share(
            self.pool,
            self.nominal.of(node) if self.nominal else None,
            self.borrowing.of(node) if self.borrowing else {},
            self.lending.of(node) if self.lending else {},
        )


class Preemption(Spec):
    """The running jobs that a waiting one may stop. https://kueue.sigs.k8s.io/docs/concepts/preemption/"""

    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_in_cohort: Literal["Never", "LowerPriority", "Any"] = Field(
        default="Never", description="Jobs to preempt in other queues that borrowed this queue's own quota"
    )
    borrow_in_cohort: Literal["Never", "LowerPriority"] = Field(
        default="Never", description="Jobs to preempt in other queues in order to borrow; not with fair sharing"
    )


class Queue(Spec):
    """A ClusterQueue."""

    pools: list[QueuePool] = Field(
        min_length=1, description="Pools in the order to try; the first that fits is taken: Spot before on demand"
    )
    strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    cohort: str | None = Field(
        default=None, description="Name of the cohort; its queues lend each other the quota that they do not use"
    )
    preemption: Preemption = Preemption()
    weight: float | None = Field(
        default=None, ge=0, description="Weight of the queue in its cohort, if Kueue uses fair sharing"
    )
    next_before_borrowing: bool = Field(
        default=False, description="Try the next pool before borrowing quota from other queues"
    )


class LocalQueue(Spec):
    """The entry of a namespace's jobs to a queue."""

    namespace: str
    queue: str


class Provisioning(Spec):
    """Requests for nodes of pools with queued provisioning: all nodes of a job at once, or none."""

    retries: int = Field(default=3, ge=0, description="Number of retries after a failed request")
    first_wait_s: int = Field(
        default=60, ge=1, description="Seconds before the first retry; each further wait is twice as long"
    )
    most_wait_s: int = Field(default=1800, ge=1)
    watchdog: ProvisioningWatchdogSpec = Field(
        default=ProvisioningWatchdogSpec(),
        description="Watchdog that ends waits for nodes that neither arrive nor are refused",
    )


class QueueingSpec(Spec):
    """All queues of a cluster. A queue never admits resources that none of its pools has."""

    queues: dict[str, Queue] = Field(min_length=1)
    local_queues: dict[str, LocalQueue] = Field(default_factory=dict[str, LocalQueue])
    priorities: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="WorkloadPriorityClasses by name, each with its value; higher ones go first",
    )
    provisioning: Provisioning | None = None

    def check(self) -> list[Finding]:
        found: list[Finding] = []
        for section in ("queues", "local_queues", "priorities"):
            for key in getattr(self, section):
                found += names.subdomain(key, f"{section}.{key}")
        for key, local in self.local_queues.items():
            found += names.label(local.namespace, f"local_queues.{key}.namespace")
        return found

    def against(self, pools: Mapping[str, GkePool]) -> list[Finding]:
        """Return the findings about these queues over the pools of a cluster, by the author's key."""
        facts = {key: pool_facts(pool) for key, pool in pools.items()}
        shares = {key: shares_of(queue, facts) for key, queue in self.queues.items()}
        local = {key: each.queue for key, each in self.local_queues.items()}
        asks = self.provisioning is not None
        found = rules.queues(shares, facts, local_queues=local, provisioning=asks)
        for key, queue in self.queues.items():
            found += under(
                f"queues.{key}",
                rules.queue(
                    shares[key],
                    facts,
                    cohort=queue.cohort,
                    reclaims=queue.preemption.reclaim_in_cohort,
                    borrows=queue.preemption.borrow_in_cohort,
                    provisioning=asks,
                ),
            )
        return found


def shares_of(queue: Queue, facts: Mapping[str, rules.PoolFacts]) -> list[rules.Share]:
    """Return a queue's quota of each of its pools; for an unknown pool, only what is written in resources."""
    return [each.share(facts[each.pool].node if each.pool in facts else {}) for each in queue.pools]


def check_name(name: str) -> str:
    """Return the name of the AdmissionCheck of a queueing with provisioning."""
    return f"accel-{name}"


@dataclass(frozen=True, kw_only=True)
class QueueingArgs:
    """The spec, and the pools of the cluster by the author's key."""

    spec: QueueingSpec
    pools: Mapping[str, Pool]


class Queueing(Component):
    """The queues of a cluster, for Kueue 0.14 (v1beta1), which must be installed before. A queue, and a flavor that it
    names, is deleted only when no job holds quota of it: Kueue keeps it until then. The namespaces whose jobs use it,
    which hold the LocalQueues, therefore have to be created after it, and deleted before it."""

    TYPE = "accel:kubernetes:Queueing"

    queues: pulumi.Output[list[str]]
    priorities: pulumi.Output[list[str]]

    def __init__(self, name: str, args: QueueingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        enforce(spec.against({key: pool.facts for key, pool in args.pools.items()}))
        super().__init__(name, spec, opts)
        facts = {key: pool_facts(pool.facts) for key, pool in args.pools.items()}
        used = list(dict.fromkeys(each.pool for queue in spec.queues.values() for each in queue.pools))
        flavors = [self._object(f"{name}-{key}", "ResourceFlavor", key, flavor(args.pools[key])) for key in used]
        check = self._check(name, spec.provisioning, [facts[key] for key in used]) if spec.provisioning else None
        needed = [*flavors, *([check] if check else [])]
        for key, queue in spec.queues.items():
            body = _cluster_queue(spec, key, queue, facts, check_name(name) if check else None)
            # Kueue releases a flavor or a check only after the queues that name it are gone.
            self._object(f"{name}-queue-{key}", "ClusterQueue", key, body, needed)
        for key, value in spec.priorities.items():
            # A typed custom resource has only a spec, and this kind's value stands beside it.
            body = {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": key}, "value": value}
            register(f"{name}-priority-{key}", body, self.child())
        self.queues = pulumi.Output.from_input(list(spec.queues))
        self.priorities = pulumi.Output.from_input(list(spec.priorities))
        self.finish()

    def _object(
        self,
        name: str,
        kind: str,
        own: str,
        spec: Mapping[str, Any],
        before: Sequence[pulumi.Resource] = (),
    ) -> apiextensions.CustomResource:
        return apiextensions.CustomResource(
            name,
            api_version=API,
            kind=kind,
            metadata=meta.ObjectMetaArgs(name=own),
            spec=spec,
            opts=self.child(depends_on=list(before)),
        )

    def _check(self, name: str, asks: Provisioning, pools: list[rules.PoolFacts]) -> apiextensions.CustomResource:
        own = check_name(name)
        body = provisioning_config(pools, asks.retries, asks.first_wait_s, asks.most_wait_s)
        config = self._object(f"{name}-provisioning", "ProvisioningRequestConfig", own, body)
        return self._object(f"{name}-check", "AdmissionCheck", own, admission_check(own), [config])


class LocalQueuesSpec(Spec):
    """The queues of namespaces, by name: those of a QueueingSpec."""

    local_queues: dict[str, LocalQueue]


class LocalQueues(Component):
    """Entries for jobs in their namespaces, which have to exist, as the queues that they lead to."""

    TYPE = "accel:kubernetes:LocalQueues"

    local_queues: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, spec: LocalQueuesSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        for key, local in spec.local_queues.items():
            apiextensions.CustomResource(
                f"{name}-{key}",
                api_version=API,
                kind="LocalQueue",
                metadata=meta.ObjectMetaArgs(name=key, namespace=local.namespace),
                spec={"clusterQueue": local.queue},
                opts=self.child(),
            )
        self.local_queues = pulumi.Output.from_input({key: each.namespace for key, each in spec.local_queues.items()})
        self.finish()


def _cluster_queue(
    spec: QueueingSpec, key: str, queue: Queue, facts: Mapping[str, rules.PoolFacts], check: str | None
) -> dict[str, Any]:
    shares = shares_of(queue, facts)
    namespaces = sorted({local.namespace for local in spec.local_queues.values() if local.queue == key})
    queued = [share.pool for share in shares if facts[share.pool].queued]
    body: dict[str, Any] = {
        "queueingStrategy": queue.strategy,
        "namespaceSelector": namespace_selector(namespaces),
        "resourceGroups": [resource_group(shares, facts)],
        "flavorFungibility": {"whenCanBorrow": "TryNextFlavor" if queue.next_before_borrowing else "Borrow"},
        "preemption": {
            "withinClusterQueue": queue.preemption.within_queue,
            "reclaimWithinCohort": queue.preemption.reclaim_in_cohort,
            "borrowWithinCohort": {"policy": queue.preemption.borrow_in_cohort},
        },
    }
    if queue.cohort:
        body["cohort"] = queue.cohort
    if queue.weight is not None:
        body["fairSharing"] = {"weight": f"{queue.weight:g}"}
    if check and queued:
        body["admissionChecksStrategy"] = {"admissionChecks": [{"name": check, "onFlavors": queued}]}
    return body


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
"""Labels that jobs select by; with the pool's own they are the eight that a flavor may have. A flavor without a label
that a job selects by would count as a match."""

_QUEUED_CLASS = "queued-provisioning.gke.io"
_REQUEST = "autoscaling.gke.io/provisioning-request"


def pool_facts(pool: GkePool) -> PoolFacts:
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
    """Return a ResourceFlavor: the nodes of one pool, and the tolerations that its pods get."""
    labels = {key: pool.facts.labels[key] for key in _TOLD_APART_BY if key in pool.facts.labels}
    tolerations = [
        {
            "key": taint.key,
            "effect": EFFECTS[taint.effect],
            **({"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}),
        }
        for taint in pool.facts.taints
    ]
    # A queue picks a flavor by these labels only, so they have to be the ones by which jobs name a pool.
    own = {POOL_LABEL: key} if (key := pool.facts.labels.get(POOL_LABEL)) else {NODE_POOL: pool.name}
    return {"nodeLabels": {**labels, **own}, **({"tolerations": tolerations} if tolerations else {})}


def resource_group(shares: Sequence[Share], pools: Mapping[str, PoolFacts]) -> dict[str, Any]:
    """Return every resource of a queue for each flavor, in one order, as Kueue requires; 0 where a pool lacks it."""
    resources = covered_resources(shares, pools)
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
    """Return an amount in Kubernetes' notation: 95890m, 1280Gi, 8."""
    unit = RESOURCES[name][1]
    if unit == "m" and amount % 1000 == 0:
        return str(amount // 1000)
    if unit == "Mi" and amount and amount % 1024 == 0:
        return f"{amount // 1024}Gi"
    return f"{amount}{unit}" if amount else "0"


def namespace_selector(names: Sequence[str]) -> dict[str, Any]:
    """Select the namespaces whose jobs a queue takes; without names, all."""
    if not names:
        return {}
    return {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(names)}]}


def provisioning_config(
    pools: Sequence[PoolFacts], retries: int, first_wait_s: int, most_wait_s: int
) -> dict[str, Any]:
    """Return a ProvisioningRequestConfig for GKE: the pods of a job are sent to the nodes that came for it.
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"""
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
    return {
        "controllerName": "kueue.x-k8s.io/provisioning-request",
        "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": config},
    }

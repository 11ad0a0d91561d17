"""Kueue's objects: which pools a queue has quota of, in which order they are tried, and who may borrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pulumi
from pydantic import Field

from accel.contract.gke import GkePool
from accel.diagnostics.findings import Finding, under
from accel.rules.gke import kueue as rules
from accel.rules.gke import names

from ..base import Component, Spec
from ..sdk import apiextensions, meta
from . import kueue
from .judged import judged
from .objects import registered
from .pools import Pool
from .provisioning_watchdog import ProvisioningWatchdogSpec


class Amounts(Spec):
    """An amount of what a pool lends: whole nodes of it, or single resources, which replace those of the nodes."""

    nodes: int | None = Field(default=None, ge=0)
    cpu_m: int | None = Field(default=None, ge=0)
    memory_mib: int | None = Field(default=None, ge=0)
    disk_gib: int | None = Field(default=None, ge=0)
    gpus: int | None = Field(default=None, ge=0)
    tpu_chips: int | None = Field(default=None, ge=0)

    def of(self, node: rules.Amounts) -> dict[str, int]:
        """Resource by resource, for a pool with such nodes; what is not said is not in it."""
        whole = {} if self.nodes is None else {name: amount * self.nodes for name, amount in node.items()}
        return {**whole, **self.model_dump(exclude_none=True, exclude={"nodes"})}


class QueuePool(Spec):
    """What a queue has of one pool."""

    pool: str = Field(description="the author's key for it")
    nominal: Amounts | None = Field(default=None, description="its own; without it, all that the pool can grow to")
    borrowing: Amounts | None = Field(
        default=None, description="most that it takes of its cohort; without it, no limit"
    )
    lending: Amounts | None = Field(default=None, description="most that it lends its cohort; without it, all")

    def share(self, node: rules.Amounts) -> rules.Share:
        """In resources of a pool with such nodes."""
        return rules.Share(
            self.pool,
            self.nominal.of(node) if self.nominal else None,
            self.borrowing.of(node) if self.borrowing else {},
            self.lending.of(node) if self.lending else {},
        )


class Preemption(Spec):
    """Which running jobs a waiting one may stop. https://kueue.sigs.k8s.io/docs/concepts/preemption/"""

    within_queue: Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"] = "Never"
    reclaim_in_cohort: Literal["Never", "LowerPriority", "Any"] = Field(
        default="Never", description="of other queues that borrowed what is this queue's own"
    )
    borrow_in_cohort: Literal["Never", "LowerPriority"] = Field(
        default="Never", description="of other queues, to borrow; not with fair sharing"
    )


class Queue(Spec):
    """A ClusterQueue."""

    pools: list[QueuePool] = Field(min_length=1, description="the first that fits is taken: Spot before on demand")
    strategy: Literal["BestEffortFIFO", "StrictFIFO"] = "BestEffortFIFO"
    cohort: str | None = Field(default=None, description="queues of one cohort lend each other what they do not use")
    preemption: Preemption = Preemption()
    weight: float | None = Field(default=None, ge=0, description="its part of the cohort, where Kueue shares fairly")
    next_before_borrowing: bool = Field(
        default=False, description="try the next pool before quota of others is borrowed"
    )


class LocalQueue(Spec):
    """Where jobs of a namespace line up for a queue."""

    namespace: str
    queue: str


class Provisioning(Spec):
    """How nodes of pools with queued provisioning are asked for: all nodes of a job at once, or none."""

    retries: int = Field(default=3, ge=0, description="after a request that failed")
    first_wait_s: int = Field(default=60, ge=1, description="before the first retry; each is twice as late")
    most_wait_s: int = Field(default=1800, ge=1)
    watchdog: ProvisioningWatchdogSpec = Field(
        default=ProvisioningWatchdogSpec(), description="ends waits for nodes that neither come nor are refused"
    )


class QueueingSpec(Spec):
    """All queues of a cluster. Resources that no pool of a queue has are never admitted there."""

    queues: dict[str, Queue] = Field(min_length=1)
    local_queues: dict[str, LocalQueue] = Field(default_factory=dict[str, LocalQueue])
    priorities: dict[str, int] = Field(
        default_factory=dict[str, int], description="WorkloadPriorityClasses: higher first"
    )
    provisioning: Provisioning | None = None

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        for section in ("queues", "local_queues", "priorities"):
            for key in getattr(self, section):
                found += names.subdomain(key, f"{section}.{key}")
        for key, local in self.local_queues.items():
            found += names.label(local.namespace, f"local_queues.{key}.namespace")
        return found

    def against(self, pools: Mapping[str, GkePool]) -> list[Finding]:
        """What the rules say of these queues over the pools of a cluster, by the author's key."""
        facts = {key: kueue.facts(pool) for key, pool in pools.items()}
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
    """What a queue has of each of its pools; of a pool that is not known, only what is written in resources."""
    return [each.share(facts[each.pool].node if each.pool in facts else {}) for each in queue.pools]


def check_name(name: str) -> str:
    """The AdmissionCheck of the queues of that name, where they have provisioning."""
    return f"accel-{name}"


@dataclass(frozen=True, kw_only=True)
class QueueingArgs:
    """The spec, and the pools of the cluster by the author's key."""

    spec: QueueingSpec
    pools: Mapping[str, Pool]


class Queueing(Component):
    """The queues of a cluster, for Kueue 0.14 (v1beta1), which must be there before.

    A queue, and a flavor that a queue names, is deleted only when no job holds quota of it: Kueue keeps it until then.
    So the namespaces whose jobs use it have to be made after it, and go before it; LocalQueues are in them.
    """

    TYPE = "accel:kubernetes:Queueing"

    queues: pulumi.Output[list[str]]
    priorities: pulumi.Output[list[str]]

    def __init__(self, name: str, args: QueueingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        spec = args.spec
        judged(spec.against({key: pool.facts for key, pool in args.pools.items()}))
        super().__init__(name, spec, opts)
        facts = {key: kueue.facts(pool.facts) for key, pool in args.pools.items()}
        used = list(dict.fromkeys(each.pool for queue in spec.queues.values() for each in queue.pools))
        flavors = [self._object(f"{name}-{key}", "ResourceFlavor", key, kueue.flavor(args.pools[key])) for key in used]
        check = self._check(name, spec.provisioning, [facts[key] for key in used]) if spec.provisioning else None
        needed = [*flavors, *([check] if check else [])]
        for key, queue in spec.queues.items():
            body = _cluster_queue(spec, key, queue, facts, check_name(name) if check else None)
            # Kueue lets go of a flavor or a check only after the queues that name it are gone.
            self._object(f"{name}-queue-{key}", "ClusterQueue", key, body, needed)
        for key, value in spec.priorities.items():
            # A typed custom resource has a spec and nothing beside it, and this kind's value stands beside.
            body = {"apiVersion": kueue.API, "kind": "WorkloadPriorityClass", "metadata": {"name": key}, "value": value}
            registered(f"{name}-priority-{key}", body, self.child())
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
            api_version=kueue.API,
            kind=kind,
            metadata=meta.ObjectMetaArgs(name=own),
            spec=spec,
            opts=self.child(depends_on=list(before)),
        )

    def _check(self, name: str, asks: Provisioning, pools: list[rules.PoolFacts]) -> apiextensions.CustomResource:
        own = check_name(name)
        body = kueue.provisioning(pools, asks.retries, asks.first_wait_s, asks.most_wait_s)
        config = self._object(f"{name}-provisioning", "ProvisioningRequestConfig", own, body)
        return self._object(f"{name}-check", "AdmissionCheck", own, kueue.admission_check(own), [config])


class LocalQueuesSpec(Spec):
    """The queues of namespaces, by name: those of a QueueingSpec."""

    local_queues: dict[str, LocalQueue]


class LocalQueues(Component):
    """Where jobs line up in their namespaces, which have to be there, as the queues that they lead to."""

    TYPE = "accel:kubernetes:LocalQueues"

    local_queues: pulumi.Output[dict[str, str]]

    def __init__(self, name: str, spec: LocalQueuesSpec, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, spec, opts)
        for key, local in spec.local_queues.items():
            apiextensions.CustomResource(
                f"{name}-{key}",
                api_version=kueue.API,
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
        "namespaceSelector": kueue.namespaces(namespaces),
        "resourceGroups": [kueue.resource_group(shares, facts)],
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

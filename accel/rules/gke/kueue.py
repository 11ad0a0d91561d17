"""Queues of Kueue 0.14 over node pools: quota of each pool, borrowing, and provisioned nodes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from accel.catalog import nearest
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.table import rule

POOL = rule("kueue.queue.pool")
POOL_TWICE = rule("kueue.queue.duplicate-pool")
ORDER = rule("kueue.queue.order")
PREEMPTION = rule("kueue.queue.preemption")
QUOTA = rule("kueue.quota.missing")
NO_ACCELERATOR = rule("kueue.quota.no-accelerator")
OVER = rule("kueue.quota.over-capacity")
COHORT = rule("kueue.quota.limit-without-cohort")
LENDING = rule("kueue.quota.lending")
CHECK_MISSING = rule("kueue.provisioning.missing")
CHECK_IDLE = rule("kueue.provisioning.no-pool")
LOCAL_QUEUE = rule("kueue.local-queue.queue")
FLAVOR_TAINTS = rule("kueue.flavor.taints")

MOST_TOLERATIONS = 8
ACCELERATORS = ("gpus", "tpu_chips")
_ALWAYS = ("cpu_m", "memory_mib")

Amounts = Mapping[str, int]
"""Amounts by resource: cpu_m, memory_mib, disk_gib, gpus, tpu_chips."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A pool from a queue's point of view: `node` is what one node offers to pods, `nodes` the maximum number."""

    capacity: str
    queued: bool
    nodes: int
    node: Amounts
    taints: int = 0
    accelerator: str | None = None

    @property
    def all(self) -> dict[str, int]:
        return {name: amount * self.nodes for name, amount in self.node.items()}


@dataclass(frozen=True, slots=True)
class Share:
    """A queue's share of a pool. No `nominal`: everything that the pool can grow to."""

    pool: str
    nominal: Amounts | None = None
    borrowing: Amounts = field(default_factory=dict[str, int])
    lending: Amounts = field(default_factory=dict[str, int])


def covered_resources(shares: Sequence[Share], pools: Mapping[str, PoolFacts]) -> list[str]:
    """Return what a queue covers: cores and memory; ephemeral storage if it is known for every pool; GPUs and TPUs if a
    pool has them. A workload that requests any other resource is never admitted."""
    known = [pools[share.pool].node for share in shares if share.pool in pools]
    disk = ["disk_gib"] if known and all(node.get("disk_gib") for node in known) else []
    return [*_ALWAYS, *disk, *(name for name in ACCELERATORS if any(node.get(name) for node in known))]


def nominal(share: Share, pool: PoolFacts, resources: Sequence[str]) -> dict[str, int]:
    given = pool.all if share.nominal is None else share.nominal
    return {name: given.get(name, 0) for name in resources}


def queue(
    shares: Sequence[Share],
    pools: Mapping[str, PoolFacts],
    *,
    cohort: str | None = None,
    reclaims: str = "Never",
    borrows: str = "Never",
    provisioning: bool = False,
) -> list[Finding]:
    """Check one ClusterQueue. `reclaims` and `borrows` are its preemption policies in Kueue's terms."""
    found: list[Finding] = []
    seen: set[str] = set()
    resources = covered_resources(shares, pools)
    for index, share in enumerate(shares):
        path = f"pools[{index}]"
        if share.pool not in pools:
            fix = did_you_mean(nearest(share.pool, pools, 1), pools)
            found.append(POOL.finding(f"{path}.pool", f'is "{share.pool}", which is no pool of the cluster', fix))
            continue
        if share.pool in seen:
            found.append(POOL_TWICE.finding(f"{path}.pool", f'is "{share.pool}" a second time', "name each pool once"))
        seen.add(share.pool)
        found += _share(share, pools[share.pool], resources, cohort, path)
        if pools[share.pool].queued and not provisioning:
            message = f"is {share.pool}, whose nodes come by ProvisioningRequest only"
            found.append(CHECK_MISSING.finding(f"{path}.pool", message, "add provisioning to the queues"))
    found += _order(shares, pools) + _accelerators(shares, pools)
    if borrows != "Never" and reclaims == "Never":
        message = f"is {borrows}, and reclaim_in_cohort is Never"
        found.append(PREEMPTION.finding("preemption.borrow_in_cohort", message, "set reclaim_in_cohort too"))
    return found


def _share(share: Share, pool: PoolFacts, resources: Sequence[str], cohort: str | None, path: str) -> list[Finding]:
    found: list[Finding] = []
    own = [name for name in resources if pool.node.get(name)]
    if share.nominal is not None:
        for name in own:
            if name not in share.nominal:
                message = f"is missing; {share.pool} has it, and pods request it"
                found.append(QUOTA.finding(f"{path}.nominal.{name}", message, "write it, or write nodes"))
    for limit, amounts in (("borrowing", share.borrowing), ("lending", share.lending)):
        if amounts and not cohort:
            message = "is set, and the queue has no cohort"
            found.append(COHORT.finding(f"{path}.{limit}", message, "name a cohort, or leave it out"))
    has = nominal(share, pool, own)
    for name, amount in share.lending.items():
        if amount > has.get(name, 0):
            message = f"is {amount}, more than the nominal {has.get(name, 0)}"
            found.append(LENDING.finding(f"{path}.lending.{name}", message, f"write at most {has.get(name, 0)}"))
    return found


def _order(shares: Sequence[Share], pools: Mapping[str, PoolFacts]) -> list[Finding]:
    on_demand: dict[str | None, str] = {}
    found: list[Finding] = []
    for index, share in enumerate(shares):
        pool = pools.get(share.pool)
        if pool and pool.accelerator and pool.capacity == "on-demand":
            on_demand.setdefault(pool.accelerator, share.pool)
        elif pool and pool.capacity == "spot" and pool.accelerator in on_demand:
            message = f"is {share.pool} (Spot), behind {on_demand[pool.accelerator]} (on demand) of the same GPU"
            found.append(ORDER.finding(f"pools[{index}].pool", message, "put it first: the first that fits is taken"))
    return found


def _accelerators(shares: Sequence[Share], pools: Mapping[str, PoolFacts]) -> list[Finding]:
    found: list[Finding] = []
    for name in ACCELERATORS:
        having = [share for share in shares if share.pool in pools and pools[share.pool].node.get(name)]
        amounts = [nominal(share, pools[share.pool], [name])[name] for share in having]
        if having and not any(amounts) and not any(share.borrowing.get(name) for share in having):
            message = f"give no {name}, though {having[0].pool} has them"
            found.append(NO_ACCELERATOR.finding("pools", message, f"give {name} to a pool, or drop the pool"))
    return found


def queues(
    queues: Mapping[str, Sequence[Share]],
    pools: Mapping[str, PoolFacts],
    *,
    local_queues: Mapping[str, str],
    provisioning: bool = False,
) -> list[Finding]:
    """Check all queues of a cluster. `local_queues` is the queue of each local queue."""
    found: list[Finding] = []
    for name, target in local_queues.items():
        if target not in queues:
            fix = did_you_mean(nearest(target, queues, 1), queues)
            message = f'is "{target}", which is no queue here'
            found.append(LOCAL_QUEUE.finding(f"local_queues.{name}.queue", message, fix))
    used = {share.pool for shares in queues.values() for share in shares if share.pool in pools}
    if provisioning and not any(pools[pool].queued for pool in used):
        message = "is set, and no pool of a queue has queued provisioning"
        found.append(CHECK_IDLE.finding("provisioning", message, "leave it out, or make a pool queued"))
    for pool in sorted(used):
        if pools[pool].taints > MOST_TOLERATIONS:
            message = f"name {pool}, which has {pools[pool].taints} taints; a flavor tolerates {MOST_TOLERATIONS}"
            found.append(FLAVOR_TAINTS.finding("queues", message, "drop taints of the pool"))
        found += _over(pool, pools[pool], queues)
    return found


def _over(name: str, pool: PoolFacts, queues: Mapping[str, Sequence[Share]]) -> list[Finding]:
    total: Counter[str] = Counter()
    for shares in queues.values():
        for share in shares:
            if share.pool == name:
                total.update(nominal(share, pool, list(pool.node)))
    over = [resource for resource, most in pool.all.items() if total[resource] > most]
    if not over:
        return []
    worst = "gpus" if "gpus" in over else over[0]
    message = (
        f"give {total[worst]} {worst} of {name}, which grows to {pool.all[worst]}; jobs are admitted and then wait"
    )
    return [OVER.finding("queues", message, "divide the pool among the queues by nominal")]

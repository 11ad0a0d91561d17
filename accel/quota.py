"""Comparison of an environment's maximum with the account's quotas. Pure arithmetic without calls.

The sum for one quota is

    total = in use + max(0, need - own)

where `need` is the maximum that the environment can start, `in use` what the cloud reports for the whole account, and
`own` the part of that which the environment already runs. Other users keep what they run, and what the environment runs
counts once: as a part of its maximum.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, TypeGuard

from accel.catalog.machines import resolve_machines
from accel.catalog.quotas import Quota, quota_for, standard_of
from accel.catalog.tpu_generations import GENERATIONS
from accel.json_values import mappings

Word = Literal["ok", "over", "unknown"]


@dataclass(frozen=True)
class Pool:
    """An AWS Batch environment as plain values. `exceeds`: it may go one instance above max_vcpus, as Batch does with
    every strategy but BEST_FIT on demand:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeResource.html"""

    name: str
    region: str
    spot: bool
    instance_types: tuple[str, ...]
    max_vcpus: int
    exceeds: bool = True


@dataclass(frozen=True)
class GooglePool:
    """Google machines as plain values: at most `machines` at once, each with `count` accelerators (GPUs, or chips of a
    TPU) and `ssd_gb` of SSD or balanced disks. `service`: compute, aiplatform or tpu."""

    name: str
    region: str
    accelerator: str
    count: int
    machines: int
    spot: bool = False
    ssd_gb: int = 0
    service: str = "compute"


@dataclass(frozen=True)
class Need:
    """The maximum use of one quota by an environment, in the quota's unit. `quota` is None if unknown; `label` names it
    in any case. `extra` is the part of `amount` for the one instance beyond max_vcpus; `unsized` names the types that
    the catalogue lacks, which `amount` therefore excludes."""

    quota: Quota | None
    label: str
    region: str
    amount: float
    by: Mapping[str, float]
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    unsized: tuple[str, ...] = ()


@dataclass(frozen=True)
class Use:
    """Current use of a quota: the account's total, and the environment's own part of it."""

    total: float
    own: float = 0


@dataclass(frozen=True)
class Verdict:
    """Whether a need can be met, with the numbers. `total` is the account's use at the environment's maximum."""

    word: Word
    need: Need
    use: Use | None
    limit: float | None
    total: float | None
    reason: str


def needs(pools: Iterable[Pool]) -> list[Need]:
    """Return one entry per quota and region. An environment whose types fall under two quotas counts fully towards
    each, since it may fill itself from either."""
    rows: dict[tuple[str, str], _Sum] = {}
    for pool in pools:
        for key, (quota, types) in _by_quota(pool).items():
            rows.setdefault((key, pool.region), _Sum(quota, key, pool.region)).add(pool, types)
    return [row.need() for row in rows.values()]


def _by_quota(pool: Pool) -> dict[str, tuple[Quota | None, list[str]]]:
    found: dict[str, tuple[Quota | None, list[str]]] = {}
    for name in pool.instance_types:
        quota = quota_for("aws", name, pool.spot)
        bought = "Spot" if pool.spot else "on-demand"
        key = quota.key if quota else f"{name.partition('.')[0]} {bought}"
        found.setdefault(key, (quota, []))[1].append(name)
    return found


@dataclass
class _Sum:
    quota: Quota | None
    key: str
    region: str
    by: dict[str, float] = field(default_factory=dict[str, float])
    extra: dict[str, str] = field(default_factory=dict[str, str])
    unsized: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, pool: Pool, types: list[str]) -> None:
        machines, unknown = resolve_machines(tuple(types))
        self.unsized.update(dict.fromkeys(unknown))
        amount = pool.max_vcpus
        if pool.exceeds and machines:
            largest = max(machines, key=lambda machine: machine.vcpus)
            amount += largest.vcpus
            self.extra[pool.name] = f"{largest.vcpus} vCPUs of one {largest.name}"
        self.by[pool.name] = self.by.get(pool.name, 0) + amount

    def need(self) -> Need:
        amount = sum(self.by.values())
        return Need(self.quota, self.key, self.region, amount, self.by, self.extra, tuple(self.unsized))


_CORES = {generation.accelerator: generation.cores_per_chip for generation in GENERATIONS}
"""Cores per TPU chip: the Cloud TPU API counts cores, Compute Engine chips."""


def google_needs(pools: Iterable[GooglePool]) -> list[Need]:
    """Return the maximum use by Google machines: the accelerators of their kind, all GPUs of the project, SSD."""
    rows: dict[tuple[str, str], dict[str, float]] = {}
    quotas: dict[str, Quota | None] = {}

    def count(quota: Quota | None, label: str, region: str, pool: str, amount: float) -> None:
        quotas[label] = quota
        by = rows.setdefault((label, region), {})
        by[pool] = by.get(pool, 0) + amount

    for pool in pools:
        amount = pool.count * pool.machines
        quota = quota_for("gcp", pool.accelerator, pool.spot, service=pool.service)
        bought = "Spot" if pool.spot else "on-demand"
        label = quota.key if quota else f"{pool.accelerator} {bought}"
        each = _CORES[pool.accelerator] if quota and quota.unit == "core" else 1
        count(quota, label, pool.region, pool.name, amount * each)
        # Vertex AI and the TPU API have quotas of their own, and TPUs are not GPUs.
        if pool.service != "compute":
            continue
        if not pool.accelerator.startswith("tpu"):
            every = quota_for("gcp", "gpus-all-regions")
            count(every, "GPUS_ALL_REGIONS", "global", pool.name, amount)
        if pool.ssd_gb:
            disks = quota_for("gcp", "ssd")
            count(disks, "SSD_TOTAL_GB", pool.region, pool.name, pool.ssd_gb * pool.machines)
    return [Need(quotas[label], label, region, sum(by.values()), by) for (label, region), by in rows.items()]


def verdict(need: Need, use: Use | None, limit: float | None, why: str = "") -> Verdict:
    """Return `over` if the limit is certain to be too small, `ok` if it is certain to suffice, otherwise `unknown`. A
    quota that could not be read is never ok; `why` gives the reason. Google writes "no limit" as -1."""

    def verdict(word: Word, reason: str, total: float | None = None) -> Verdict:
        return Verdict(word, need, use, limit, total, reason)

    if need.quota is None:
        return verdict("unknown", f"no quota is known that holds {need.label}")
    if limit is None:
        return verdict("unknown", why or "the limit could not be read")
    if limit < 0:
        return verdict("ok", "there is no limit")
    if use is None:
        # Other users can only add to it: a need above the limit exceeds it in any case.
        if need.amount > limit:
            return verdict("over", f"{need.amount:g} is above the limit of {limit:g}, whatever else is in use")
        return verdict("unknown", why or "what is in use could not be read")
    total = use.total + max(0.0, need.amount - use.own)
    if total > limit:
        return verdict("over", f"{total:g} of {limit:g} {need.quota.unit}s: {total - limit:g} too few", total)
    if need.unsized:
        return verdict("unknown", f"{', '.join(need.unsized)}: not in the catalogue, so their size is not known", total)
    return verdict("ok", f"{total:g} of {limit:g} {need.quota.unit}s", total)


@dataclass(frozen=True)
class Reading:
    """The limit and the use that a cloud reports for one quota, with a remark if it belongs to another quota."""

    limit: float
    use: float
    remark: str = ""


def google_readings(answer: Mapping[str, Any]) -> dict[str, Reading]:
    """Return the metrics of compute.regions.get or compute.projects.get (only the second has GPUS_ALL_REGIONS) by name,
    without incomplete and invalid entries: https://cloud.google.com/compute/docs/reference/rest/v1/regions/get"""
    found: dict[str, Reading] = {}
    for given in mappings(answer.get("quotas")):
        metric, limit, use = (given.get(name) for name in ("metric", "limit", "usage"))
        if isinstance(metric, str) and _is_number(limit) and _is_number(use) and use >= 0:
            found[metric] = Reading(float(limit), float(use))
    return found


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def google_reading(quota: Quota, readings: Mapping[str, Reading]) -> Reading | None:
    """Return None if the response lacks it, which says nothing about the quota. In a project without a preemptible
    metric, Spot machines count against the standard one."""
    if quota.dimension or quota.service != "compute":
        return None
    if quota.code in readings:
        return readings[quota.code]
    standard = standard_of(quota) if quota.purchase == "spot" else None
    if standard is None or standard.dimension or standard.code not in readings:
        return None
    other = readings[standard.code]
    return Reading(other.limit, other.use, f"{quota.code} is not reported: {standard.code} holds Spot machines too")

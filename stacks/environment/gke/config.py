"""The `workloads` section of a Google Cloud environment: the objects in the cluster, and the targets of jobs."""

from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import Field, model_validator

from accel.catalog.nearest import nearest
from accel.diagnostics.faults import several
from components.base import Name, Spec
from components.gcp.job_bucket import JobBucketSpec
from components.kubernetes.bundle import ReleaseBundleSpec
from components.kubernetes.dcgm import DcgmExporterSpec
from components.kubernetes.health import GpuHealthSpec
from components.kubernetes.namespace import JobNamespaceSpec
from components.kubernetes.probe import DriverProbeSpec
from components.kubernetes.queueing import LocalQueue, QueueingSpec
from components.kubernetes.storage import JobVolumeSpec

Faults = list[tuple[str, str]]


class DriverVersions(Spec):
    """The driver that the stack's own DaemonSets install, on the pools that leave it to them (`driver: daemonset`)."""

    cos: str = Field(
        default="default", description="Driver version on Container-Optimized OS: default or latest of the node image"
    )
    ubuntu: str = Field(default="default", description="Driver version on Ubuntu: default, or a branch such as R580")


class Namespace(JobNamespaceSpec):
    """A namespace for jobs."""

    account: str | None = Field(
        default=None,
        description="Google service account of the namespace's pods: a key of accounts.workloads, or an email address",
    )


class Volume(Spec):
    """A claim in a namespace."""

    namespace: Name = Field(description="Namespace: a key of `namespaces`")
    volume: JobVolumeSpec


class TargetSpec(Spec):
    """A target of `accel-jobs submit --to`."""

    namespace: Name = Field(description="Namespace: a key of `namespaces`")
    queue: str | None = Field(
        default=None, description="Queue: a key of queueing.local_queues. Without it, pods are created at once"
    )
    pools: list[Name] = Field(
        default_factory=list[Name],
        description="Without a queue: pools that its jobs may use. Default: all of the cluster",
    )
    volumes: list[Name] = Field(default_factory=list[Name], description="Volumes: keys of `volumes`")


class Workloads(Spec):
    """Drivers, controllers, queues, storage and targets of one cluster."""

    drivers: DriverVersions = DriverVersions()
    verify: DriverProbeSpec | None = Field(
        default=None,
        description="Test of each GPU pool by a job with one GPU at every change of the pool. Without it, pools are "
        "not tested",
    )
    releases: list[ReleaseBundleSpec] = Field(
        default_factory=list[ReleaseBundleSpec],
        description="Controllers: Kueue for queueing, JobSet for jobs of several nodes",
    )
    namespaces: dict[Name, Namespace] = Field(default_factory=dict[str, Namespace])
    queueing: QueueingSpec | None = None
    volumes: dict[Name, Volume] = Field(default_factory=dict[str, Volume])
    health: GpuHealthSpec | None = Field(
        default=None, description="Health check that cordons nodes whose GPUs report serious errors"
    )
    code: JobBucketSpec | None = Field(
        default=None,
        description="Bucket for code that jobs are submitted with, readable by the accounts of their namespaces. "
        "Without it, jobs cannot be submitted with --code",
    )
    dcgm: DcgmExporterSpec | None = Field(
        default=None, description="DCGM exporter for GPU metrics beyond those that GKE collects itself"
    )
    targets: dict[Name, TargetSpec] = Field(default_factory=dict[str, TargetSpec])

    @property
    def has_jobset(self) -> bool:
        return any(each.release == "jobset" for each in self.releases)

    @model_validator(mode="after")
    def _references(self) -> Self:
        faults: Faults = []
        local = self.queueing.local_queues if self.queueing else {}
        queues = self.queueing.queues if self.queueing else {}
        if self.queueing and not any(each.release == "kueue" for each in self.releases):
            faults.append(
                ("releases", "have no kueue, which queueing needs; add it, with install: false if it is there")
            )
        if self.verify and not self.namespaces:
            faults.append(("namespaces", "have none for the jobs of verify; add one"))
        for key, each in local.items():
            faults += _unknown(f"queueing.local_queues.{key}.queue", each.queue, queues)
        for key, volume in self.volumes.items():
            faults += _unknown(f"volumes.{key}.namespace", volume.namespace, self.namespaces)
        for key, target in self.targets.items():
            faults += self._target(f"targets.{key}", target, local)
        for key in self.coded:
            if self.namespaces[key].account is None:
                text = "is missing, and code is read as a Google account; name one of accounts.workloads"
                faults.append((f"namespaces.{key}.account", text))
        if faults:
            raise several(faults)
        return self

    @property
    def coded(self) -> list[str]:
        """Return the keys of the namespaces whose jobs may be sent with code."""
        used = [
            target.namespace for target in self.targets.values() if self.code and target.namespace in self.namespaces
        ]
        return list(dict.fromkeys(used))

    def _target(self, at: str, target: TargetSpec, local: Mapping[str, LocalQueue]) -> Faults:
        faults = _unknown(f"{at}.namespace", target.namespace, self.namespaces)
        if target.queue is not None:
            faults += _unknown(f"{at}.queue", target.queue, local)
            if not faults and (there := local[target.queue].namespace) != self.namespaces[target.namespace].namespace:
                faults.append((f"{at}.queue", f"{target.queue!r} is in namespace {there}, and the target is not"))
        if target.queue is not None and target.pools:
            faults.append((f"{at}.pools", "are those of the queue; leave them out, or leave out queue"))
        for index, name in enumerate(target.volumes):
            faults += (missing := _unknown(f"{at}.volumes[{index}]", name, self.volumes))
            if not missing and self.volumes[name].namespace != target.namespace:
                place = self.volumes[name].namespace
                faults.append((f"{at}.volumes[{index}]", f"{name!r} is in namespace {place}, not {target.namespace}"))
        return faults

    def pools_of(self, target: TargetSpec, known: Iterable[str]) -> list[str]:
        if target.queue is None or self.queueing is None:
            return target.pools or sorted(known)
        queue = self.queueing.queues[self.queueing.local_queues[target.queue].queue]
        return [each.pool for each in queue.pools]

    def used_pools(self, known: Iterable[str]) -> set[str]:
        queues = self.queueing.queues.values() if self.queueing else ()
        used = {each.pool for queue in queues for each in queue.pools}
        return used.union(*(self.pools_of(target, known) for target in self.targets.values()))

    def unknown_pools(self, pools: Iterable[str]) -> Faults:
        known = list(pools)
        return [
            fault
            for key, target in self.targets.items()
            for index, name in enumerate(target.pools)
            for fault in _unknown(f"targets.{key}.pools[{index}]", name, known)
        ]

    def unknown_accounts(self, accounts: Iterable[str]) -> Faults:
        known = list(accounts)
        return [
            fault
            for key, spec in self.namespaces.items()
            if spec.account is not None and "@" not in spec.account
            for fault in _unknown(f"namespaces.{key}.account", spec.account, known)
        ]


def _unknown(at: str, key: str, known: Iterable[str]) -> Faults:
    names = sorted(known)
    if key in names:
        return []
    near = nearest(key, names, 1) or names
    return [(at, f"no {key!r}; nearest: {', '.join(near)}" if near else f"no {key!r}, and none is defined")]

"""Comparison of the account's and the project's quotas with an environment at its largest; the pools and machines of
its sections as quotas count them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accel.catalog import UnknownName, accelerator
from accel.catalog.gke_machines import node_machine
from accel.catalog.tpu import Slice
from accel.console.errors import say
from accel.diagnostics.errors import CloudSilent, NoCredentials, NotFound
from accel.json_values import mappings, object_at
from accel.quota import GooglePool, Pool, Verdict, google_needs, verdict
from accel.rules.gcp.labels import to_gcp
from accel.rules.gke.nodes import disk_type
from components.gcp.capacity_spec import ReservedSpec
from components.gcp.gpu_machine import GpuMachineSpec
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.tpu_pool import TpuPoolSpec

from ...environment.aws.config import Aws
from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms
from ..stack_files import ReadStack, project_of
from .aws import judge_aws
from .google import Own, judge_google

_DISK = "pd-balanced"
"""GKE's default. Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/custom-boot-disks"""

_SSD_DISKS = ("pd-balanced", "pd-ssd")
"""Disk types counted by SSD_TOTAL_GB; hyperdisks are not. Source: https://cloud.google.com/compute/resource-usage"""

_PREEMPTIBLE = ("spot", "flex-start")
"""Capacity types that use the preemptible quota; flex-start does too. Source:
https://docs.cloud.google.com/managed-spark/docs/guides/dws-serverless"""

_BORNE = (NoCredentials, CloudSilent, NotFound)

_COUNTED = ("PROVISIONING", "STAGING", "RUNNING", "REPAIRING", "PENDING_STOP", "STOPPING", "DEPROVISIONING")
"""States in which an instance holds its accelerators: all but those in which it waits, is stopped or is suspended.
Source: https://cloud.google.com/compute/docs/instances/instance-lifecycle"""


@dataclass(frozen=True)
class Judgement:
    """The verdicts on one environment, or on planned machines (`stack` None). `whose` names account or project."""

    stack: str | None
    whose: str | None
    verdicts: tuple[Verdict, ...]


def judge(stack: ReadStack) -> list[Judgement]:
    """Return one entry per cloud. Raise NoCredentials, CloudSilent, and BadInput for credentials of another account
    than the environment's. Google's quotas are unknown where its project cannot be read."""
    judgements: list[Judgement] = []
    aws, gcp, project = stack.environment.aws, stack.environment.gcp, project_of(stack.path)
    if aws is not None:
        account = aws.account_id
        verdicts = judge_aws(aws.region, aws_pools(aws), account_id=account, project=project, stack=stack.name)
        judgements.append(Judgement(stack.name, f"account {account}" if account else None, verdicts))
    if gcp is not None and (verdicts := _judge_section(gcp, stack.name, project)):
        judgements.append(Judgement(stack.name, f"project {gcp.project}", verdicts))
    return judgements


def aws_pools(section: Aws) -> list[Pool]:
    """Count a disabled environment, which starts nothing, with its min_vcpus."""
    return [
        Pool(
            name=name,
            region=section.region,
            spot=spec.capacity == "spot",
            instance_types=tuple(spec.instance_types),
            max_vcpus=spec.max_vcpus if spec.state == "ENABLED" else spec.min_vcpus,
            exceeds=spec.state == "ENABLED" and (spec.capacity, spec.allocation_strategy) != ("on-demand", "BEST_FIT"),
        )
        for name, spec in section.environments.items()
    ]


def google_pools(section: Gcp) -> list[GooglePool]:
    """Return the pools with accelerators at their largest, and the permanent machines, as plain values."""
    found = [*_permanent_machines(section)]
    for key, spec in section.pools.items():
        # From memory, no page was found: a reservation takes its quota when it is created, and its machines take none.
        if spec.capacity == "reservation":
            continue
        if isinstance(spec, GpuPoolSpec):
            name, count = accelerator(spec.accelerator_type).name, spec.whole_gpus
        elif isinstance(spec, TpuPoolSpec):
            name, count = spec.slice.generation.accelerator, spec.slice.chips_per_host
        else:
            continue
        most = spec.most_nodes(len(section.node_zones(spec)) or 1)
        found.append(GooglePool(key, section.region, name, count, most, spec.capacity in _PREEMPTIBLE, _ssd_gb(spec)))
    return found


def machine_of(section: Gcp, zone: str, item: Mapping[str, Any]) -> GooglePool | None:
    """Return a listed instance of the stack; None without accelerators, or in a reservation. Its disk counts as in the
    section's pools of that machine type. Source: https://cloud.google.com/compute/docs/reference/rest/v1/instances"""
    scheduling = object_at(item, "scheduling")
    model = str(scheduling.get("provisioningModel") or "STANDARD")
    if item.get("status") not in _COUNTED or model == "RESERVATION_BOUND":
        return None
    kind = str(item.get("machineType") or "").rpartition("/")[2]
    name, count = next(_accelerators(kind, item), ("", 0))
    if not count:
        return None
    # Disks are listed without their type.
    sizes = [pool.ssd_gb for pool in google_pools(section) if _machine_type(section, pool.name) == kind]
    region = zone.rpartition("-")[0]
    return GooglePool("own", region, name, count, 1, model in ("SPOT", "FLEX_START"), max(sizes, default=0))


def row_of(stack: str | None, verdict: Verdict) -> dict[str, Any]:
    """Return one line of the table and of -o json; numbers are in `unit`."""
    need, quota = verdict.need, verdict.need.quota
    return {
        "stack": stack,
        "quota": quota.code if quota else None,
        "service": quota.service if quota else None,
        "name": quota.name if quota else need.label,
        "region": need.region,
        "unit": quota.unit if quota else None,
        "need": _whole(need.amount),
        "by": {name: _whole(value) for name, value in need.by.items()},
        "extra": dict(need.extra),
        "use": _whole(verdict.use.total) if verdict.use else None,
        "own": _whole(verdict.use.own) if verdict.use else None,
        "limit": _whole(verdict.limit),
        "total": _whole(verdict.total),
        "verdict": verdict.word,
        "reason": verdict.reason,
        "source": quota.source if quota else None,
    }


def _judge_section(section: Gcp, stack: str, project: str | None) -> tuple[Verdict, ...]:
    """Count machines with the labels of the Pulumi project and the stack as a part of the pools' maximum. If Google
    cannot be reached at all, every quota is unknown, with the reason."""
    found = google_pools(section)
    for key, spec in section.pools.items():
        if spec.capacity == "reservation":
            say(f"note: {stack}: gcp.pools.{key}: its reservation holds the quota, which is not asked about")
    if not found:
        return ()
    labels = to_gcp({"accel-project": project, "accel-stack": stack}) if project else None
    own = Own(labels, lambda zone, item: machine_of(section, zone, item)) if labels else None
    try:
        return judge_google(section.project, found, own, _BORNE)
    except _BORNE as error:  # nothing was asked: there is nobody to ask as
        return tuple(verdict(need, None, None, error.message) for need in google_needs(found))


def _whole(value: float | None) -> float | int | None:
    return int(value) if value is not None and value == int(value) else value


def _ssd_gb(spec: GpuPoolSpec | TpuPoolSpec) -> int:
    """Return the SSD size of a node's boot disk; 0 for TPU hosts of unknown disk, since newer ones take hyperdisks."""
    disk = spec.disk.type or disk_type(spec.machine_type) or (_DISK if isinstance(spec, GpuPoolSpec) else None)
    return spec.disk.size_gib if disk in _SSD_DISKS else 0


def _machine_type(section: Gcp, key: str) -> str | None:
    spec = section.pools.get(key)
    return spec.machine_type if spec else None


def _accelerators(kind: str, item: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    try:
        built_in = node_machine(kind)
        if built_in.whole_accelerators:
            yield built_in.accelerator, built_in.whole_accelerators
        for each in mappings(item.get("guestAccelerators")):
            name = str(each.get("acceleratorType") or "").rpartition("/")[2]
            yield accelerator(name).name, int(str(each.get("acceleratorCount") or 0))
    except (UnknownName, ValueError):
        return


def _permanent_machines(section: Gcp) -> Iterator[GooglePool]:
    if section.vms is not None:
        yield from _vm_pools(section.vms)
    if section.vertex is None:
        return
    for key, spec in section.vertex.persistent_resources.items():
        for name, pool in spec.pools.items():
            if (found := pool.accelerators) is not None:
                at = f"vertex.persistent_resources.{key}.{name}"
                most = pool.max_replicas or pool.replicas
                kind, count = accelerator(found[0]).name, found[1]
                yield GooglePool(at, section.region, kind, count, most, service="aiplatform")


def _vm_pools(vms: Vms) -> Iterator[GooglePool]:
    for key, spec in vms.reservations.items():
        yield _reserved_pool(f"vms.reservations.{key}", spec)
    for key, spec in vms.future_reservations.items():
        if spec.planning_status == "SUBMITTED":
            yield _reserved_pool(f"vms.future_reservations.{key}", spec)
    for key, spec in vms.gpus.items():
        yield from _vm_pool(f"vms.gpus.{key}", spec, 1)
    for key, spec in vms.gpu_groups.items():
        yield from _vm_pool(f"vms.gpu_groups.{key}", spec, spec.size)
    for key, spec in vms.tpus.items():
        if not spec.reserved:
            yield _slice_pool(f"vms.tpus.{key}", spec.zone, spec.slice, 1, spot=spec.spot)
    for key, spec in vms.tpu_queues.items():
        yield _slice_pool(f"vms.tpu_queues.{key}", spec.zone, spec.slice, 1, spot=False)
    for key, spec in vms.queued_tpus.items():
        if spec.capacity != "reserved":
            spot = spec.capacity == "spot"
            yield _slice_pool(f"vms.queued_tpus.{key}", spec.zone, spec.slice, spec.slices, spot=spot)


def _reserved_pool(path: str, spec: ReservedSpec) -> GooglePool:
    """Return the pool of a reservation, which takes its quota when it is created."""
    return GooglePool(path, spec.region, _accelerator_name(spec), spec.gpus, spec.count)


def _vm_pool(path: str, spec: GpuVmSpec | GpuVmGroupSpec, count: int) -> Iterator[GooglePool]:
    """Return the pool of a VM or group. Machines of a reservation take no quota of their own (from memory, no page was
    found); empty groups none."""
    if spec.reservation is not None or not count:
        return
    disk = spec.disk.size_gib if spec.disk_type in _SSD_DISKS else 0
    yield GooglePool(path, spec.region, _accelerator_name(spec), spec.gpus, count, spec.capacity in _PREEMPTIBLE, disk)


def _accelerator_name(spec: GpuMachineSpec) -> str:
    return accelerator(spec.accelerator_type).name


def _slice_pool(path: str, zone: str, tpu: Slice, slices: int, *, spot: bool) -> GooglePool:
    """Return the pool of slices, by zone as the Cloud TPU API counts."""
    return GooglePool(path, zone, tpu.generation.accelerator, tpu.chips, slices, spot, service="tpu")

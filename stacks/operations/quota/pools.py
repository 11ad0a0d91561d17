"""The node pools and machines of a Google Cloud section, as the arithmetic of quotas takes them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accel.catalog import UnknownName, accelerator
from accel.catalog.gke_machines import node_machine
from accel.catalog.tpu import Slice
from accel.clouds.google.rest import entries, mapping
from accel.console.errors import say
from accel.diagnostics.errors import CloudSilent, NoCredentials, NotFound
from accel.quota import GooglePool, Verdict, google_needs, verdict
from accel.rules.gcp.labels import translated
from accel.rules.gke.nodes import disk_type
from components.gcp.capacity_spec import ReservedSpec
from components.gcp.gpu_machine import GpuMachineSpec
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.tpu_pool import TpuPoolSpec

from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms
from .google import Own, judge_google

DISK = "pd-balanced"
"""GKE's own choice. Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/custom-boot-disks"""

SSD_DISKS = ("pd-balanced", "pd-ssd")
"""Counted by SSD_TOTAL_GB; hyperdisks are not. Source: https://cloud.google.com/compute/resource-usage"""

PREEMPTIBLE = ("spot", "flex-start")
"""Flex-start spends the preemptible quota too.
Source: https://docs.cloud.google.com/managed-spark/docs/guides/dws-serverless"""

BORNE = (NoCredentials, CloudSilent, NotFound)

COUNTED = ("PROVISIONING", "STAGING", "RUNNING", "REPAIRING", "PENDING_STOP", "STOPPING", "DEPROVISIONING")
"""States in which an instance holds its accelerators: all but those in which it waits, is stopped or is suspended.
Source: https://cloud.google.com/compute/docs/instances/instance-lifecycle"""


def judge_pools(section: Gcp, stack: str, project: str | None) -> tuple[Verdict, ...]:
    """Compares what the GPU and TPU pools can come to with the quotas of the section's project. Machines that have the
    labels of the Pulumi project and the stack are a part of that. Where Google cannot be asked at all, every quota is
    unknown, with the reason."""
    found = pools(section)
    for key, spec in section.pools.items():
        if spec.capacity == "reservation":
            say(f"note: {stack}: gcp.pools.{key}: its reservation holds the quota, which is not asked about")
    if not found:
        return ()
    labels = translated({"accel-project": project, "accel-stack": stack}) if project else None
    own = Own(labels, lambda zone, item: machine_of(section, zone, item)) if labels else None
    try:
        return judge_google(section.project, found, own, BORNE)
    except BORNE as error:  # nothing was asked: there is nobody to ask as
        return tuple(verdict(need, None, None, error.message) for need in google_needs(found))


def pools(section: Gcp) -> list[GooglePool]:
    """The pools with accelerators as plain values, as large as they can become, and the machines that stay."""
    found = [*_permanent_machines(section)]
    for key, spec in section.pools.items():
        # From memory, no page was found: a reservation takes its quota when it is made, and its machines take none.
        if spec.capacity == "reservation":
            continue
        if isinstance(spec, GpuPoolSpec):
            name, count = accelerator(spec.accelerator_type).name, spec.whole_gpus
        elif isinstance(spec, TpuPoolSpec):
            name, count = spec.slice.generation.accelerator, spec.slice.chips_per_host
        else:
            continue
        most = spec.most_nodes(len(section.node_zones(spec)) or 1)
        found.append(GooglePool(key, section.region, name, count, most, spec.capacity in PREEMPTIBLE, _ssd_gb(spec)))
    return found


def _ssd_gb(spec: GpuPoolSpec | TpuPoolSpec) -> int:
    """Of a node's boot disk. TPU hosts whose disk nothing tells are left out: newer ones take hyperdisks."""
    disk = spec.disk.type or disk_type(spec.machine_type) or (DISK if isinstance(spec, GpuPoolSpec) else None)
    return spec.disk.size_gib if disk in SSD_DISKS else 0


def machine_of(section: Gcp, zone: str, item: Mapping[str, Any]) -> GooglePool | None:
    """An instance of the stack as Compute Engine lists it; None for one that holds no accelerators, or that a
    reservation holds. Its disk counts as those of the section's pools of that machine type do.

    Source: https://cloud.google.com/compute/docs/reference/rest/v1/instances
    """
    scheduling = mapping(item.get("scheduling")) or {}
    model = str(scheduling.get("provisioningModel") or "STANDARD")
    if item.get("status") not in COUNTED or model == "RESERVATION_BOUND":
        return None
    kind = str(item.get("machineType") or "").rpartition("/")[2]
    name, count = next(_accelerators(kind, item), ("", 0))
    if not count:
        return None
    # Disks are listed without their type.
    sizes = [pool.ssd_gb for pool in pools(section) if _machine_type(section, pool.name) == kind]
    region = zone.rpartition("-")[0]
    return GooglePool("own", region, name, count, 1, model in ("SPOT", "FLEX_START"), max(sizes, default=0))


def _machine_type(section: Gcp, key: str) -> str | None:
    spec = section.pools.get(key)
    return spec.machine_type if spec else None


def _accelerators(kind: str, item: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The kind and number of what a machine brings, or of what is attached to it."""
    try:
        built_in = node_machine(kind)
        if built_in.whole_accelerators:
            yield built_in.accelerator, built_in.whole_accelerators
        for each in _mappings(item.get("guestAccelerators")):
            name = str(each.get("acceleratorType") or "").rpartition("/")[2]
            yield accelerator(name).name, int(str(each.get("acceleratorCount") or 0))
    except (UnknownName, ValueError):
        return


def _mappings(value: Any) -> Iterable[dict[str, Any]]:
    return [found for each in entries(value) if (found := mapping(each)) is not None]


def _permanent_machines(section: Gcp) -> Iterator[GooglePool]:
    """VMs, groups, TPUs, reservations and machines that Vertex AI keeps, each under its path below `gcp`."""
    if section.vms is not None:
        yield from _vms(section.vms)
    if section.vertex is None:
        return
    for key, spec in section.vertex.persistent_resources.items():
        for name, pool in spec.pools.items():
            if (found := pool.accelerators) is not None:
                at = f"vertex.persistent_resources.{key}.{name}"
                most = pool.max_replicas or pool.replicas
                kind, count = accelerator(found[0]).name, found[1]
                yield GooglePool(at, section.region, kind, count, most, service="aiplatform")


def _vms(vms: Vms) -> Iterator[GooglePool]:
    for key, spec in vms.reservations.items():
        yield _reserved(f"vms.reservations.{key}", spec)
    for key, spec in vms.future_reservations.items():
        if spec.planning_status == "SUBMITTED":
            yield _reserved(f"vms.future_reservations.{key}", spec)
    for key, spec in vms.gpus.items():
        yield from _vm(f"vms.gpus.{key}", spec, 1)
    for key, spec in vms.gpu_groups.items():
        yield from _vm(f"vms.gpu_groups.{key}", spec, spec.size)
    for key, spec in vms.tpus.items():
        if not spec.reserved:
            yield _slices(f"vms.tpus.{key}", spec.zone, spec.slice, 1, spot=spec.spot)
    for key, spec in vms.tpu_queues.items():
        yield _slices(f"vms.tpu_queues.{key}", spec.zone, spec.slice, 1, spot=False)
    for key, spec in vms.queued_tpus.items():
        if spec.capacity != "reserved":
            spot = spec.capacity == "spot"
            yield _slices(f"vms.queued_tpus.{key}", spec.zone, spec.slice, spec.slices, spot=spot)


def _reserved(path: str, spec: ReservedSpec) -> GooglePool:
    """A reservation takes its quota when it is made."""
    return GooglePool(path, spec.region, _kind(spec), spec.gpus, spec.count)


def _vm(path: str, spec: GpuVmSpec | GpuVmGroupSpec, count: int) -> Iterator[GooglePool]:
    """Machines of a reservation take no quota of their own (from memory, no page was found); empty groups none."""
    if spec.reservation is not None or not count:
        return
    disk = spec.disk.size_gib if spec.disk_type in SSD_DISKS else 0
    yield GooglePool(path, spec.region, _kind(spec), spec.gpus, count, spec.capacity in PREEMPTIBLE, disk)


def _kind(spec: GpuMachineSpec) -> str:
    return accelerator(spec.accelerator_type).name


def _slices(path: str, zone: str, tpu: Slice, slices: int, *, spot: bool) -> GooglePool:
    """The Cloud TPU API counts by the zone."""
    return GooglePool(path, zone, tpu.generation.accelerator, tpu.chips, slices, spot, service="tpu")

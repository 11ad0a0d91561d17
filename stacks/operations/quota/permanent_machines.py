"""Machines of Google Cloud that stay, as the arithmetic of quotas takes them: each holds its accelerators as long as it
is there."""

from collections.abc import Iterator

from accel.catalog import accelerator
from accel.catalog.tpu import Slice
from accel.quota import GooglePool
from components.gcp.capacity_spec import ReservedSpec
from components.gcp.gpu_machine import GpuMachineSpec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec

from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms

SSD_DISKS = ("pd-balanced", "pd-ssd")
"""Counted by SSD_TOTAL_GB; hyperdisks are not. Source: https://cloud.google.com/compute/resource-usage"""

PREEMPTIBLE = ("spot", "flex-start")
"""Flex-start spends the preemptible quota too.
Source: https://docs.cloud.google.com/managed-spark/docs/guides/dws-serverless"""


def kept_machines(section: Gcp) -> Iterator[GooglePool]:
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

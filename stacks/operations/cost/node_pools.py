"""What the node pools of a Google Cloud section cost, from its model alone."""

from collections.abc import Iterator

from accel import cost
from accel.catalog import accelerator
from accel.catalog.gke_machines import node_machine
from accel.catalog.node_prices import find_price, slice_host, with_gpus
from accel.catalog.prices import Price
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.reconcile_function import SCHEDULE_USD, SCHEDULES_FREE, VCPU, VCPU_S_FREE, ReconcileSpec
from components.gcp.tpu_pool import TpuPoolSpec

from ...environment.gcp.config import AnyPool, Gcp
from .lines import Line

CLUSTER_USD_HOUR, CLUSTER_READ = 0.10, "2026-11-23"
"""Whatever its size; an extended release costs more. Source: https://cloud.google.com/kubernetes-engine/pricing, a copy
without a date, read on this day."""


def pools(section: Gcp, utilisation: float, unknown: list[str]) -> Iterator[Line]:
    """A line a node pool, from its least nodes to its most; what has no known price is added to `unknown`."""
    for key, spec in section.pools.items():
        path = f"gcp.pools.{key}"
        zones = len(section.node_zones(spec)) or 1
        least, most = spec.least_nodes(zones), spec.most_nodes(zones)
        found = _price(section.region, spec)
        if found.on_demand is None:
            unknown.append(f"{path}: {found.why_unknown}")
        on_spot = spec.capacity in ("spot", "flex-start")
        vcpus = node_machine(spec.machine_type).vcpus
        option = cost.Option(spec.machine_type, vcpus, found.on_demand, found.spot, found.spot_low)
        envelope = cost.pool(
            [option],
            utilisation=utilisation,
            on_spot=on_spot,
            min_vcpus=round(least * vcpus),
            max_vcpus=round(most * vcpus),
        )
        dates = tuple(date for date in (found.on_demand_date, found.spot_date if on_spot else None) if date)
        what = f"{spec.capacity} {spec.machine_type}, {least} to {most} nodes"
        yield Line(path, what, envelope, tuple(dict.fromkeys(dates)), found.confidence)


def control_plane(section: Gcp) -> Iterator[Line]:
    """The fee of a cluster that is made here."""
    if section.cluster is not None and section.cluster.kind == "create":
        what = "control plane; one zonal cluster of a billing account is free"
        yield Line("gcp.cluster", what, cost.fixed(CLUSTER_USD_HOUR), (CLUSTER_READ,), "medium")


def _price(region: str, spec: AnyPool) -> Price:
    """Of a node: TPUs are priced by the slice, GPUs on N1 beside their host."""
    if isinstance(spec, TpuPoolSpec):
        return slice_host(region, spec.slice)
    if isinstance(spec, GpuPoolSpec) and spec.attached:
        return with_gpus(region, spec.machine_type, accelerator(spec.accelerator_type).name, spec.whole_gpus)
    return find_price("gcp", region, spec.machine_type)


def _reconciled(spec: ReconcileSpec) -> str:
    schedule = f"USD {SCHEDULE_USD:.2f} a month for its schedule, {SCHEDULES_FREE} of a billing account being free"
    free = VCPU_S_FREE / VCPU / spec.looks
    return (
        f"gcp.vms.reconcile: {schedule}; {spec.looks:,} looks a month, free in Cloud Run up to {free:.0f} s each where "
        "nothing else of the billing account runs there"
    )


def not_included(section: Gcp) -> Iterator[str]:
    """What costs money besides."""
    if section.vms is not None and section.vms.reconcile is not None:
        yield _reconciled(section.vms.reconcile)
    if section.network is not None and section.network.kind == "create":
        yield "gcp.network: Cloud NAT (by the hour and the GB), flow logs and traffic between zones (by the GB)"
    if any(isinstance(spec, TpuPoolSpec) for spec in section.pools.values()):
        yield "gcp.pools: boot disks of TPU hosts (by the GB-month)"
    if section.vms is not None and (section.vms.own or section.vms.tpu_queues):
        yield "gcp.vms: boot disks of TPU hosts, and addresses on the internet (by the hour)"
    if any(part is not None for part in (section.vms and section.vms.jobs, section.batch, section.vertex)):
        yield "gcp: buckets of jobs (by the GB-month), and what jobs themselves run on: accel-jobs cost"
    if section.vertex is not None and section.vertex.tensorboard is not None:
        yield "gcp.vertex.tensorboard: what is stored (by the GB-month)"
    if section.images:
        yield "gcp.images: what is stored, and scanned where the project scans (by the GB-month and the image)"
    if section.workloads is not None and section.workloads.volumes:
        yield "gcp.workloads.volumes: what is stored (by the GB-month)"

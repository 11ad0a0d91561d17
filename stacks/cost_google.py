"""What the node pools of a Google Cloud section cost, from its model alone."""

from collections.abc import Iterator

from accel import cost
from accel.catalog import accelerator
from accel.catalog.gke_machines import node_machine
from accel.catalog.node_prices import known, slice_host, with_gpus
from accel.catalog.prices import Price
from components.gcp.gpu_pool import GpuPoolSpec
from components.gcp.tpu_pool import TpuPoolSpec

from .cost_lines import Line
from .gcp_config import AnyPool, Gcp


def pools(section: Gcp, utilisation: float, unknown: list[str]) -> Iterator[Line]:
    """A line a node pool, from its least nodes to its most; what has no known price is added to `unknown`."""
    for key, spec in section.pools.items():
        path = f"gcp.pools.{key}"
        most = spec.most_nodes(len(section.node_zones(spec)) or 1)
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
            min_vcpus=round(spec.min_nodes * vcpus),
            max_vcpus=round(most * vcpus),
        )
        dates = tuple(date for date in (found.on_demand_date, found.spot_date if on_spot else None) if date)
        what = f"{spec.capacity} {spec.machine_type}, {spec.min_nodes} to {most} nodes"
        yield Line(path, what, envelope, tuple(dict.fromkeys(dates)), found.confidence)


def _price(region: str, spec: AnyPool) -> Price:
    """Of a node: TPUs are priced by the slice, GPUs on N1 beside their host."""
    if isinstance(spec, TpuPoolSpec):
        return slice_host(region, spec.slice)
    if isinstance(spec, GpuPoolSpec) and spec.accelerator is not None:
        return with_gpus(region, spec.machine_type, accelerator(spec.accelerator_type).name, spec.whole_gpus)
    return known("gcp", region, spec.machine_type)


def not_included(section: Gcp) -> Iterator[str]:
    """What costs money besides."""
    if section.cluster is not None and section.cluster.kind == "create":
        yield "gcp.cluster: the fee of the control plane (by the hour; the first zonal one of an account is free)"
    if section.pools:
        yield "gcp.pools: disks of nodes (by the GB-month)"
    if section.network is not None and section.network.kind == "create":
        yield "gcp.network: Cloud NAT (by the hour and the GB), flow logs and traffic between zones (by the GB)"
    if section.vertex is not None and section.vertex.persistent_resources:
        yield "gcp.vertex.persistent_resources: machines that are kept (by the hour, also while no job runs there)"
    if section.vertex is not None and section.vertex.tensorboard is not None:
        yield "gcp.vertex.tensorboard: what is stored (by the GB-month)"
    if section.images:
        yield "gcp.images: what is stored, and scanned where the project scans (by the GB-month and the image)"
    if section.workloads is not None and section.workloads.volumes:
        yield "gcp.workloads.volumes: what is stored (by the GB-month)"

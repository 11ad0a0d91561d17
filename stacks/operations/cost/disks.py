"""What disks of Google machines cost: boot disks of nodes and VMs, data disks of TPUs, local SSDs of reservations."""

from collections.abc import Iterator
from dataclasses import dataclass

from accel import cost
from accel.catalog.disk_prices import disk_price
from accel.rules.gcp.tpu_vms import disk_types
from accel.rules.gke.nodes import disk_type
from components.gcp.capacity_spec import LOCAL_SSD_GIB
from components.gcp.tpu_pool import TpuPoolSpec

from ...environment.gcp.config import Gcp
from ...environment.gcp.vms_config import Vms
from .lines import Line

NODE_DISK = "pd-balanced"
"""GKE's own choice. Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/custom-boot-disks"""


@dataclass(frozen=True)
class Disks:
    """From `least` to `most` disks of `gib` each."""

    path: str
    region: str
    kind: str
    gib: int
    least: int
    most: int


def disks(section: Gcp, utilisation: float, unknown: list[str]) -> Iterator[Line]:
    """A line for each kind of disk; what has no known price is added to `unknown`."""
    for each in [*_of_pools(section), *(_of_vms(section.vms) if section.vms else ())]:
        if not each.most:
            continue
        path, what = f"{each.path}.disk", f"disks, {each.kind} {each.gib} GiB a machine"
        found = disk_price(each.region, each.kind)
        if found is None:
            unknown.append(f"{path}: no price of {each.kind} in {each.region} was in the lists that were read")
            yield Line(path, what, cost.Envelope(cost.UNKNOWN, cost.UNKNOWN, cost.UNKNOWN))
            continue
        option = cost.Option(each.kind, 1, None)
        envelope = cost.counted(
            [option],
            min_vcpus=each.least,
            max_vcpus=each.most,
            utilisation=utilisation,
            each=each.gib * found.usd / cost.HOURS_A_MONTH,
        )
        yield Line(path, what, envelope, (found.date,), found.confidence)


def _of_pools(section: Gcp) -> Iterator[Disks]:
    for key, spec in section.pools.items():
        zones = len(section.node_zones(spec)) or 1
        named = spec.disk.type or disk_type(spec.machine_type)
        # Newer TPU hosts take Hyperdisks, and no page says which have which.
        if named is None and isinstance(spec, TpuPoolSpec):
            continue
        nodes = spec.least_nodes(zones), spec.most_nodes(zones)
        yield Disks(f"gcp.pools.{key}", section.region, named or NODE_DISK, spec.disk.size_gib, *nodes)


def _of_vms(vms: Vms) -> Iterator[Disks]:
    for key, spec in vms.gpus.items():
        yield Disks(f"gcp.vms.gpus.{key}", spec.region, spec.disk_type, spec.disk.size_gib, 1, 1)
    for key, spec in vms.gpu_groups.items():
        count = spec.size
        yield Disks(f"gcp.vms.gpu_groups.{key}", spec.region, spec.disk_type, spec.disk.size_gib, count, count)
    for key, spec in vms.tpus.items():
        for name, disk in spec.data_disks.items():
            if disk.size_gib is not None:
                kind, path = disk.type or disk_types(spec.slice.name)[0], f"gcp.vms.tpus.{key}.{name}"
                hosts = spec.slice.hosts
                yield Disks(path, spec.region, kind, disk.size_gib, hosts, hosts)
    for key, spec in vms.reservations.items():
        if spec.local_ssds:
            gib = spec.local_ssds * LOCAL_SSD_GIB
            yield Disks(f"gcp.vms.reservations.{key}", spec.region, "local-ssd", gib, spec.count, spec.count)

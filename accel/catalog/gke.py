"""Resources of a GKE node: cores, memory and disk for pods, and the GPUs that partitions and sharing provide."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.machines import Machine
from accel.catalog.memory import gke_allocatable
from accel.catalog.nearest import UnknownName
from accel.catalog.tables import rows

DEFAULT_BOOT_DISK_GIB = 100
"""Of a node pool that sets none: https://cloud.google.com/kubernetes-engine/docs/how-to/custom-boot-disks"""

DEFAULT_MAX_PODS = 110
"""Source: https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr"""

_LOCAL_SSD_GIB = 375
_LOCAL_SSD_KEPT_GIB = {1: 50, 2: 75}
_LOCAL_SSDS_KEPT_GIB = 100
_MANY_PODS_CPU_M = 400


@dataclass(frozen=True, slots=True)
class NodeResources:
    """Thousandths of a core, MiB of memory, MiB of ephemeral storage and number of pods that a node has (capacity) or
    offers to pods (allocatable), DaemonSets included."""

    cpu_m: int
    memory_mib: int
    ephemeral_mib: int
    pods: int


def node_capacity(
    machine: Machine,
    disk_gib: int = DEFAULT_BOOT_DISK_GIB,
    local_ssds: int = 0,
    max_pods: int = DEFAULT_MAX_PODS,
) -> NodeResources:
    """Return what the kubelet of a GKE node reports. `local_ssds` counts those that hold the ephemeral storage, which
    then does not use the boot disk. The kernel keeps a 64th of the memory plus 16 MiB, and 64 MiB more above 3 GiB, as
    Google's autoscaler computes it:
    https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/gce/reserved.go"""
    kernel_mib = machine.memory_mib // 64 + 16 + (64 if machine.memory_mib > 3 * 1024 else 0)
    storage_gib = local_ssds * _LOCAL_SSD_GIB or disk_gib
    return NodeResources(machine.vcpus * 1000, machine.memory_mib - kernel_mib, storage_gib * 1024, max_pods)


def node_allocatable(
    machine: Machine,
    disk_gib: int = DEFAULT_BOOT_DISK_GIB,
    local_ssds: int = 0,
    max_pods: int = DEFAULT_MAX_PODS,
) -> NodeResources:
    """Return what the pods of a GKE node can request together. GKE keeps ephemeral storage: a tenth for eviction; of a
    boot disk, the least of half, 6 GiB plus 35 %, and 100 GiB; of local SSDs, 50 GiB of one, 75 of two, 100 of more. It
    also keeps 400 thousandths of a core on nodes that allow over 110 pods.
    https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes"""
    capacity = node_capacity(machine, disk_gib, local_ssds, max_pods)
    cpu_m, memory_mib = gke_allocatable(machine)
    if max_pods > DEFAULT_MAX_PODS:
        cpu_m -= _MANY_PODS_CPU_M
    if local_ssds:
        kept_mib = _LOCAL_SSD_KEPT_GIB.get(local_ssds, _LOCAL_SSDS_KEPT_GIB) * 1024
    else:
        kept_mib = min(disk_gib * 512, 6 * 1024 + disk_gib * 1024 * 35 // 100, 100 * 1024)
    memory_mib -= machine.memory_mib - capacity.memory_mib
    return NodeResources(cpu_m, max(memory_mib, 0), capacity.ephemeral_mib * 9 // 10 - kept_mib, max_pods)


@cache
def _partitions() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in rows("gke_gpu_partitions.csv"):
        found.setdefault(row["accelerator"], {})[row["profile"]] = row.integer("per_gpu")
    return found


def gpu_partitions(accelerator: str) -> dict[str, int]:
    """Return the number per GPU of each partition size (MIG profile) that GKE supports; empty if there is none.
    `accelerator` is a key of accelerators.csv."""
    return dict(_partitions().get(accelerator, {}))


def partitioner_since(accelerator: str, partition: str) -> str:
    """Return the day on which the source of GKE's partitioner first had the size, or an empty string."""
    days = {(row["accelerator"], row["profile"]): row["partitioner_since"] for row in rows("gke_gpu_partitions.csv")}
    return days.get((accelerator, partition), "")


def offered_gpus(accelerator: str, gpus: int, partition: str | None = None, clients_per_gpu: int = 1) -> int:
    """Return the `nvidia.com/gpu` of a node: each partition counts, and each client of a shared GPU or partition. Raise
    UnknownName for a size that the GPU lacks.
    https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus"""
    if partition:
        known = gpu_partitions(accelerator)
        if partition not in known:
            raise UnknownName(f"partition size of {accelerator}", partition, known)
        gpus *= known[partition]
    return gpus * clients_per_gpu

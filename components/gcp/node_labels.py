"""The labels and taints that GKE sets on the nodes of a pool, and the contract built from them. Names of labels:
pkg/cloudprovider/gke/labels/labels.go of https://github.com/GoogleCloudPlatform/cluster-autoscaler, by which GKE's own
autoscaler predicts nodes."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from accel.catalog.gke import DEFAULT_MAX_PODS, node_allocatable
from accel.catalog.gke_machines import node_machine, series
from accel.contract.gke import POOL_LABEL, GkePool, Taint
from accel.rules.gke.drivers import DISABLED, VERSION_LABEL, VERSIONS

from .cpu_pool import CpuPoolSpec
from .gpu_pool import GpuPoolSpec
from .pool_spec import PoolSpec
from .tpu_pool import TpuPoolSpec

NodePoolSpec = Annotated[CpuPoolSpec | GpuPoolSpec | TpuPoolSpec, Field(discriminator="kind")]

GKE = "cloud.google.com/"
_PROVISIONING = {"spot": "spot", "flex-start": "flex-start"}


def gke_pool(
    key: str,
    spec: CpuPoolSpec | GpuPoolSpec | TpuPoolSpec,
    physical_name: str,
    zones: Sequence[str],
    max_pods: int = DEFAULT_MAX_PODS,
) -> GkePool:
    """Return the facts of a pool that jobs need. `zones`: those of its nodes, from the spec or the cluster. `max_pods`:
    the cluster's, for a spec without its own. Raise UnknownName for a machine type that the catalogue does not have."""
    resources = node_allocatable(
        node_machine(spec.machine_type), spec.disk.size_gib, spec.ephemeral_ssds, spec.max_pods_per_node or max_pods
    )
    of_kind = _gpu(spec) if isinstance(spec, GpuPoolSpec) else _tpu(spec) if isinstance(spec, TpuPoolSpec) else {}
    return GkePool(
        name=physical_name,
        key=key,
        machine_type=spec.machine_type,
        zones=list(zones),
        capacity=spec.capacity,
        max_nodes=spec.most_nodes(len(zones)),
        labels={**node_labels(spec, physical_name, zones), POOL_LABEL: key},
        taints=node_taints(spec),
        cpu_m=resources.cpu_m,
        memory_mib=resources.memory_mib,
        disk_gib=resources.ephemeral_mib // 1024,
        **of_kind,  # pyright: ignore[reportArgumentType]
    )


def _gpu(spec: GpuPoolSpec) -> dict[str, object]:
    return {
        "accelerator": spec.accelerator_type,
        "gpus": spec.offered_gpus,
        "gpu_sharing": spec.sharing.strategy if spec.sharing else None,
        "gpu_partition": spec.mig_partition,
        "driver": spec.driver,
        "queued": spec.queued_provisioning,
    }


def _tpu(spec: TpuPoolSpec) -> dict[str, object]:
    return {
        "tpu_accelerator": spec.slice.gke_label,
        "tpu_topology": spec.slice.topology,
        "tpu_chips": spec.slice.chips_per_host,
        "hosts": spec.slice.hosts,
    }


def node_labels(spec: PoolSpec, physical_name: str, zones: Sequence[str]) -> dict[str, str]:
    """Return all labels of the nodes that can be known beforehand, the author's own included."""
    machine = node_machine(spec.machine_type)
    regions = {zone.rpartition("-")[0] for zone in zones}
    labels = {
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "arm64" if machine.cpu_arch == "arm64" else "amd64",
        "node.kubernetes.io/instance-type": spec.machine_type,
        f"{GKE}gke-nodepool": physical_name,
        f"{GKE}gke-os-distribution": "cos" if spec.image_type.startswith("COS") else "ubuntu",
        f"{GKE}machine-family": series(spec.machine_type),
        f"{GKE}gke-provisioning": _PROVISIONING.get(spec.capacity, "standard"),
    }
    if len(regions) == 1:
        labels["topology.kubernetes.io/region"] = regions.pop()
    if len(zones) == 1:
        labels["topology.kubernetes.io/zone"] = zones[0]
    if spec.capacity in _PROVISIONING:
        labels[f"{GKE}gke-{spec.capacity}"] = "true"
    if spec.reservation:
        labels[f"{GKE}reservation-name"] = spec.reservation.name
    if spec.ephemeral_ssds:
        labels[f"{GKE}gke-ephemeral-storage-local-ssd"] = "true"
    if spec.private_nodes:
        labels[f"{GKE}private-node"] = "true"
    if isinstance(spec, GpuPoolSpec):
        labels |= _gpu_labels(spec)
    if isinstance(spec, TpuPoolSpec):
        labels |= {
            f"{GKE}gke-tpu-accelerator": spec.slice.gke_label,
            f"{GKE}gke-tpu-topology": spec.slice.topology,
            f"{GKE}gke-accelerator-count": str(spec.slice.chips_per_host),
        }
    return {**labels, **spec.node_labels}


def _gpu_labels(spec: GpuPoolSpec) -> dict[str, str]:
    labels = {f"{GKE}gke-accelerator": spec.accelerator_type}
    # Only if GKE installs the driver: the DaemonSet avoids nodes with this label.
    if VERSIONS[spec.driver] != DISABLED:
        labels[VERSION_LABEL] = spec.driver
    if spec.mig_partition:
        labels[f"{GKE}gke-gpu-partition-size"] = spec.mig_partition
    if spec.sharing:
        labels[f"{GKE}gke-gpu-sharing-strategy"] = spec.sharing.strategy
        labels[f"{GKE}gke-max-shared-clients-per-gpu"] = str(spec.sharing.clients)
    if spec.queued_provisioning:
        labels[f"{GKE}gke-queued"] = "true"
    return labels


def node_taints(spec: PoolSpec) -> list[Taint]:
    """Return all taints of the nodes, GKE's own included. A GPU pool that is alone in its cluster has none of GKE's."""
    taints = [taint for taint in spec.taints if taint.key not in ("nvidia.com/gpu", "google.com/tpu")]
    if isinstance(spec, GpuPoolSpec):
        taints.append(Taint(key="nvidia.com/gpu", value="present", effect="NO_SCHEDULE"))
        if spec.queued_provisioning:
            taints.append(Taint(key=f"{GKE}gke-queued", value="true", effect="NO_SCHEDULE"))
    if isinstance(spec, TpuPoolSpec):
        taints.append(Taint(key="google.com/tpu", value="present", effect="NO_SCHEDULE"))
    if node_machine(spec.machine_type).cpu_arch == "arm64":
        taints.append(Taint(key="kubernetes.io/arch", value="arm64", effect="NO_SCHEDULE"))
    return taints

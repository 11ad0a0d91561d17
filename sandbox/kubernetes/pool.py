"""GKE node pool as the container API shows it, and what Google puts on its nodes.

Sources: labels and driver, https://cloud.google.com/kubernetes-engine/docs/how-to/gpus and pkg/labels of
https://github.com/GoogleCloudPlatform/cluster-autoscaler; TPUs, .../kubernetes-engine/docs/concepts/tpus; Spot,
.../docs/concepts/spot-vms (labels; no taint in Standard clusters); queued provisioning,
.../docs/how-to/provisioningrequest. `gke-accelerator-count` is on TPU nodes only: on GPU nodes it is Autopilot's.

Departures: GPU nodes always have their taint (GKE leaves it out where the cluster had no other pool when this one was
created), and a node reports its whole boot disk (the partitions of the system take some 5 GiB of it).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accel.catalog.accelerators import accelerator
from accel.catalog.gke import (
    DEFAULT_BOOT_DISK_GIB,
    DEFAULT_MAX_PODS,
    NodeResources,
    node_allocatable,
    node_capacity,
    offered_gpus,
)
from accel.catalog.gke_machines import included_local_ssds, node_machine
from accel.catalog.machines import Machine
from accel.catalog.tpu import default_topology, tpu_pool
from accel.catalog.tpu_generations import GENERATIONS

GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
POOL_LABEL = "cloud.google.com/gke-nodepool"
_EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}
_STRATEGIES = {"TIME_SHARING": "time-sharing", "MPS": "mps"}


@dataclass(frozen=True, eq=False)
class Pool:
    cluster: dict[str, Any]
    body: dict[str, Any]
    project: str

    @property
    def name(self) -> str:
        return self.body["name"]

    @property
    def link(self) -> str:
        return f"{self.project}/{self.cluster['location']}/{self.cluster['name']}/{self.name}"

    @property
    def config(self) -> dict[str, Any]:
        return self.body.get("config") or {}

    @property
    def zones(self) -> list[str]:
        return self.body.get("locations") or self.cluster.get("locations") or [self.cluster["location"]]

    @property
    def autoscaling(self) -> dict[str, Any]:
        """Bounds of the pool; empty where its size is fixed."""
        found = self.body.get("autoscaling") or {}
        return found if found.get("enabled") else {}

    @property
    def most(self) -> int:
        """Maximum number of nodes, in all zones together, that the autoscaler may create."""
        each = self.autoscaling.get("maxNodeCount", 0) * len(self.zones)
        return self.autoscaling.get("totalMaxNodeCount") or each

    @property
    def least(self) -> int:
        each = self.autoscaling.get("minNodeCount", 0) * len(self.zones)
        return self.autoscaling.get("totalMinNodeCount") or each

    @property
    def queued(self) -> bool:
        return bool((self.body.get("queuedProvisioning") or {}).get("enabled"))

    @cached_property
    def machine(self) -> Machine:
        """Machine type of the pool. Raises UnknownName for one that the catalogue does not have."""
        return node_machine(self.config.get("machineType", "e2-medium"))

    @cached_property
    def topology(self) -> str:
        """TPU topology: the requested one of a slice of several hosts, or that of the one host's chips."""
        asked = (self.body.get("placementPolicy") or {}).get("tpuTopology", "")
        if asked or self.machine.kind != "tpu-host":
            return asked
        name = self.machine.name
        generation = next(each for each in GENERATIONS if name in each.machine_types)
        return default_topology(generation, generation.machine_types[name].chips)

    @cached_property
    def hosts(self) -> int:
        """Number of nodes that come and go together: those of a TPU slice, else one."""
        if self.machine.kind != "tpu-host":
            return 1
        return tpu_pool(self.machine.name, self.topology).hosts

    @cached_property
    def accelerator(self) -> dict[str, Any]:
        """AcceleratorConfig of the GPU, which machines with built-in GPUs always have. Empty: no GPU."""
        for found in self.config.get("accelerators") or []:
            return found
        if self.machine.accelerator and self.machine.kind == "accelerator":
            kind = accelerator(self.machine.accelerator)
            return {"acceleratorType": kind.gke_label, "acceleratorCount": self.machine.whole_accelerators}
        return {}

    @property
    def driver(self) -> str | None:
        """Label gke-gpu-driver-version; None: GKE installs no driver. Omitted means default since GKE 1.30.1."""
        how = (self.accelerator.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion", "DEFAULT")
        return {"INSTALLATION_DISABLED": None, "LATEST": "latest"}.get(how, "default")

    @cached_property
    def extended(self) -> dict[str, int]:
        """Accelerators that pods of a node can request, once there is a driver."""
        if self.machine.kind == "tpu-host":
            return {TPU: self.machine.whole_accelerators}
        if not self.accelerator:
            return {}
        sharing = self.accelerator.get("gpuSharingConfig") or {}
        count = offered_gpus(
            accelerator(self.accelerator["acceleratorType"]).name,
            int(self.accelerator["acceleratorCount"]),
            self.accelerator.get("gpuPartitionSize"),
            int(sharing.get("maxSharedClientsPerGpu") or 1),
        )
        return {GPU: count}

    @cached_property
    def labels(self) -> dict[str, str]:
        """Labels of every node, without the zone's and the node's own."""
        config, image = self.config, self.config.get("imageType", "COS_CONTAINERD").lower()
        labels = {
            "kubernetes.io/arch": "arm64" if self.machine.cpu_arch == "arm64" else "amd64",
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": self.machine.name,
            POOL_LABEL: self.name,
            "cloud.google.com/machine-family": self.machine.name.partition("-")[0],
            "cloud.google.com/gke-os-distribution": image.partition("_")[0],
            "cloud.google.com/gke-container-runtime": "containerd",
            "cloud.google.com/gke-boot-disk": config.get("diskType", "pd-balanced"),
            "cloud.google.com/gke-provisioning": "standard",
        }
        for field, value in (("spot", "spot"), ("preemptible", "preemptible"), ("flexStart", "flex-start")):
            if config.get(field):
                labels |= {f"cloud.google.com/gke-{value}": "true", "cloud.google.com/gke-provisioning": value}
        if self.queued:
            labels["cloud.google.com/gke-queued"] = "true"
        if self._local_ssds:
            labels["cloud.google.com/gke-ephemeral-storage-local-ssd"] = "true"
        if (self.body.get("networkConfig") or {}).get("enablePrivateNodes"):
            labels["cloud.google.com/private-node"] = "true"
        reservation = config.get("reservationAffinity") or {}
        if reservation.get("consumeReservationType") == "SPECIFIC_RESERVATION":
            labels["cloud.google.com/reservation-name"] = reservation["values"][0].rpartition("/")[2]
        return labels | self._accelerator_labels() | (config.get("labels") or {})

    def _accelerator_labels(self) -> dict[str, str]:
        if self.machine.kind == "tpu-host":
            return {
                "cloud.google.com/gke-tpu-accelerator": self.machine.gke_label,
                "cloud.google.com/gke-accelerator-count": str(self.machine.whole_accelerators),
                "cloud.google.com/gke-tpu-topology": self.topology,
            }
        if not self.accelerator:
            return {}
        kind, sharing = self.accelerator["acceleratorType"], self.accelerator.get("gpuSharingConfig") or {}
        labels = {"cloud.google.com/gke-accelerator": kind, "cloud.google.com/gke-gpu": "true"}
        if self.driver:
            labels["cloud.google.com/gke-gpu-driver-version"] = self.driver
        if self.accelerator.get("gpuPartitionSize"):
            labels["cloud.google.com/gke-gpu-partition-size"] = self.accelerator["gpuPartitionSize"]
        if sharing.get("gpuSharingStrategy") in _STRATEGIES:
            labels["cloud.google.com/gke-gpu-sharing-strategy"] = _STRATEGIES[sharing["gpuSharingStrategy"]]
            labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = str(sharing["maxSharedClientsPerGpu"])
        return labels

    @cached_property
    def taints(self) -> list[dict[str, str]]:
        own = [
            {"key": each["key"], "value": each.get("value", ""), "effect": _EFFECTS[each["effect"]]}
            for each in self.config.get("taints") or []
        ]
        given = [*([GPU] if self.accelerator else []), *([TPU] if TPU in self.extended else [])]
        added = [{"key": key, "value": "present", "effect": "NoSchedule"} for key in given]
        if self.machine.cpu_arch == "arm64":
            added.append({"key": "kubernetes.io/arch", "value": "arm64", "effect": "NoSchedule"})
        if self.queued:
            added.append({"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"})
        known = {(each["key"], each["effect"]) for each in own}
        return own + [each for each in added if (each["key"], each["effect"]) not in known]

    @property
    def _local_ssds(self) -> int:
        """Local SSDs for ephemeral storage: the requested ones, else those that the machine always has."""
        asked = (self.config.get("ephemeralStorageLocalSsdConfig") or {}).get("localSsdCount")
        if asked is None and not self.config.get("localNvmeSsdBlockConfig"):
            return included_local_ssds(self.machine.name)
        return int(asked or 0)

    def _size(self) -> tuple[Machine, int, int, int]:
        disk_gib = self.config.get("diskSizeGb") or DEFAULT_BOOT_DISK_GIB
        pods = int((self.body.get("maxPodsConstraint") or {}).get("maxPodsPerNode") or DEFAULT_MAX_PODS)
        return self.machine, disk_gib, self._local_ssds, pods

    def capacity(self, gpus: bool = True) -> dict[str, str]:
        return self._quantities(node_capacity(*self._size()), gpus)

    def allocatable(self, gpus: bool = True) -> dict[str, str]:
        return self._quantities(node_allocatable(*self._size()), gpus)

    def _quantities(self, size: NodeResources, gpus: bool) -> dict[str, str]:
        extended = {name: str(count) for name, count in self.extended.items() if gpus or name != GPU}
        plain = {"cpu": f"{size.cpu_m}m", "memory": f"{size.memory_mib}Mi", "pods": str(size.pods)}
        return {**plain, "ephemeral-storage": f"{size.ephemeral_mib}Mi", **extended}

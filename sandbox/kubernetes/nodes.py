"""Nodes of a node pool: one instance group a zone, and the Node objects that its machines register."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from .client import Object
from .events import stamp
from .pool import POOL_LABEL, Pool

ZONE_LABEL = "topology.kubernetes.io/zone"
REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
NO_PLUGIN_LABEL = "gke-no-default-nvidia-gpu-device-plugin"
POOL_ANNOTATION = "sandbox.accel/pool"
PLAYED = "sandbox.accel/played"
"""Annotation of a node whose pods run as processes of this machine."""
_CONDITIONS = (
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # those of generated names in Kubernetes
_LONGEST_NAMES = 32  # of cluster and pool together in a node's name; else 16 of each


@dataclass(frozen=True, eq=False)
class Group:
    """Managed instance group of a node pool in one zone, which the autoscaler resizes. Equal by pool and zone."""

    pool: Pool
    zone: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and (self.pool.link, self.zone) == (other.pool.link, other.zone)

    def __hash__(self) -> int:
        return hash((self.pool.link, self.zone))

    @property
    def name(self) -> str:
        for url in self.pool.body.get("instanceGroupUrls") or []:
            if f"/zones/{self.zone}/" in url:
                return url.rpartition("/")[2].removesuffix("-grp")
        cluster, pool = self.pool.cluster["name"], self.pool.name
        if len(cluster) + len(pool) > _LONGEST_NAMES:
            cluster, pool = cluster[:16].rstrip("-"), pool[:16].rstrip("-")
        digest = hashlib.sha256(f"{self.pool.link} {self.zone}".encode()).hexdigest()[:8]
        return f"gke-{cluster}-{pool}-{digest}"

    @property
    def url(self) -> str:
        project = f"https://www.googleapis.com/compute/v1/projects/{self.pool.project}"
        return f"{project}/zones/{self.zone}/instanceGroups/{self.name}-grp"

    @property
    def manager(self) -> str:
        """Path of the group below an API's version."""
        return f"projects/{self.pool.project}/zones/{self.zone}/instanceGroupManagers/{self.name}-grp"

    def holds(self, node: Object) -> bool:
        labels = node["metadata"].get("labels", {})
        return labels.get(POOL_LABEL) == self.pool.name and labels.get(ZONE_LABEL) == self.zone

    def node(self, kubelet_port: int, request: str = "") -> Object:
        """Return a new node, ready but for its GPUs, which wait for a driver. `request`: its resize request."""
        pool, name = self.pool, f"{self.name}-{''.join(secrets.choice(_LETTERS) for _ in range(4))}"
        labels = pool.labels | {
            "kubernetes.io/hostname": name,
            "topology.gke.io/zone": self.zone,
            "topology.kubernetes.io/region": self.zone.rpartition("-")[0],
            ZONE_LABEL: self.zone,
        }
        addresses = {"InternalIP": "127.0.0.1", "Hostname": name}
        moment = stamp()
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": labels | ({REQUEST_LABEL: request} if request else {}),
                "annotations": {PLAYED: "yes", POOL_ANNOTATION: pool.link},
            },
            "spec": {"taints": pool.taints, "providerID": f"gce://{pool.project}/{self.zone}/{name}"},
            "status": {
                "capacity": pool.capacity(gpus=False),
                "allocatable": pool.allocatable(gpus=False),
                "addresses": [{"type": kind, "address": address} for kind, address in addresses.items()],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
                "conditions": [
                    {"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": moment}
                    | {"lastTransitionTime": moment, "message": message}
                    for kind, status, reason, message in _CONDITIONS
                ],
                "nodeInfo": {
                    "architecture": labels["kubernetes.io/arch"],
                    "operatingSystem": "linux",
                    "kubeletVersion": f"v{pool.body.get('version') or pool.cluster.get('currentNodeVersion', '')}",
                    "kubeProxyVersion": "",
                    "osImage": "Container-Optimized OS from Google",
                    "containerRuntimeVersion": "containerd://2.0.0",
                    **dict.fromkeys(("machineID", "systemUUID", "bootID", "kernelVersion"), ""),
                },
            },
        }


def groups_of(pool: Pool) -> tuple[Group, ...]:
    return tuple(Group(pool, zone) for zone in pool.zones)

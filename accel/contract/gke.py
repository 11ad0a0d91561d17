"""Contract for a GKE cluster: a target for jobs, and the cluster itself for other stacks."""

from typing import Literal

from pydantic import Field

from .allowances import TargetAllowances
from .model import SCHEMA, Contract, Publication, StopObject

POOL_LABEL = "accel.dev/pool"
"""Node label with the pool's config key. Jobs that wait for a pool by this label still find it after it was
replaced."""

ASKED_AGAIN = "accel.dev/provisioning-asked-again"
"""Annotation of a Workload: how often nodes were requested again, a semicolon, and the last reason."""
ASKING_AGAIN = "accel.dev/provisioning-again"
"""Label of a Workload that is put back into its queue. An inactive Workload without it stays inactive."""
GIVEN_UP = "accel.dev/provisioning-given-up"
"""Annotation of a Workload that was deactivated because its nodes did not arrive: the reason."""

PodSecurity = Literal["restricted", "baseline", "privileged"]
"""Levels of the Kubernetes standard: https://kubernetes.io/docs/concepts/security/pod-security-standards/"""


class Taint(Contract):
    """A taint, which keeps pods that do not tolerate it off a node."""

    key: str
    value: str = ""
    effect: Literal["NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE"]


class GkePool(Contract):
    """A node pool, as pods that run there need to know it. GPUs and chips are per node."""

    name: str = Field(description="Physical name, the value of the node label cloud.google.com/gke-nodepool")
    key: str = Field(description="Config key of the pool")
    machine_type: str
    zones: list[str]
    capacity: Literal["on-demand", "spot", "flex-start", "reservation"]
    max_nodes: int = Field(description="Maximum number of nodes in all zones together")
    labels: dict[str, str] = Field(description="Labels of the nodes, including those that GKE sets")
    taints: list[Taint] = Field(default_factory=list[Taint], description="Taints of the nodes, including GKE's")
    cpu_m: int = Field(
        description="CPU that pods of a node can request, in thousandths of a vCPU, system pods not deducted"
    )
    memory_mib: int = Field(description="Memory that pods of a node can request, in MiB, system pods not deducted")
    disk_gib: int = Field(
        default=0, description="Ephemeral storage that pods of a node can request, in GiB; 0: unknown"
    )
    accelerator: str | None = Field(
        default=None, description="Value of the node label cloud.google.com/gke-accelerator. Without it, no GPU"
    )
    gpus: int = Field(
        default=0, description="Number of nvidia.com/gpu that a node offers; each partition and share counts"
    )
    gpu_sharing: Literal["time-sharing", "mps"] | None = None
    gpu_partition: str | None = Field(default=None, description="MIG profile, such as 1g.10gb")
    driver: Literal["default", "latest", "daemonset", "operator"] | None = Field(
        default=None,
        description="Installation of the NVIDIA driver: by GKE (default, latest), a DaemonSet, or NVIDIA's operator",
    )
    tpu_accelerator: str | None = Field(
        default=None, description="Value of the node label cloud.google.com/gke-tpu-accelerator"
    )
    tpu_topology: str | None = Field(default=None, description="Topology of the TPU slice, such as 2x4")
    tpu_chips: int = Field(default=0, description="Number of google.com/tpu that a node offers")
    hosts: int = Field(default=1, description="Number of nodes of one TPU slice")
    queued: bool = Field(default=False, description="Whether nodes come by ProvisioningRequest only")


class GkeCluster(Contract):
    """A cluster in the `clusters` output of a stack: its location, and what runs pods in it."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    location: str
    name: str
    endpoint: str = Field(description="Address of the API server: host, or host:port")
    ca_certificate: str = Field(
        description="Certificate of the authority that signed the API server's certificate: PEM in base64"
    )
    workload_pool: str | None = None
    pools: dict[str, GkePool] = Field(description="Node pools by config key")


class GkeVolume(Contract):
    """A claim that pods of the namespace may mount."""

    claim: str
    read_only: bool = False
    annotations: dict[str, str] = Field(
        default_factory=dict,
        description="Annotations that a pod needs to mount the claim; without them it would not start",
    )


class GkeTarget(Contract):
    """A namespace of a GKE cluster and its queue, which jobs are submitted to."""

    kind: Literal["gke"] = "gke"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    location: str
    cluster: str
    endpoint: str = Field(
        description="Address of the API server: host, or host:port; the user's own credentials are sent there"
    )
    ca_certificate: str = Field(
        description="Certificate of the authority that signed the API server's certificate: PEM in base64"
    )
    namespace: str
    queue: str | None = Field(
        default=None, description="LocalQueue of Kueue. Without it, pods are scheduled as they come"
    )
    priorities: list[str] = Field(
        default_factory=list[str],
        description="Names of WorkloadPriorityClasses, or of PriorityClasses if there is no queue",
    )
    service_account: str = Field(default="default", description="Kubernetes service account that pods run as")
    pod_security: PodSecurity | None = Field(
        default=None,
        description="Pod Security Standard that the namespace enforces. Without it, unknown: the stack is older",
    )
    jobset: bool = Field(default=False, description="Whether the JobSet controller is installed")
    pools: dict[str, GkePool] = Field(description="Pools that this queue may use, by config key")
    volumes: dict[str, GkeVolume] = Field(
        default_factory=dict[str, GkeVolume], description="Claims that pods may mount, by config key"
    )
    allowances: TargetAllowances = None
    stop: StopObject = None
    published: Publication = None
    code_bucket: str | None = Field(
        default=None, description="Cloud Storage bucket for the code that jobs are sent with"
    )

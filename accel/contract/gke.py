"""Contract for a GKE cluster: a target for jobs, and the cluster itself for other stacks."""

from typing import Literal

from pydantic import Field

from .allowances import Allowances
from .model import SCHEMA, Contract

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

    name: str = Field(description="physical name: the node label cloud.google.com/gke-nodepool")
    key: str = Field(description="the author's key for it")
    machine_type: str
    zones: list[str]
    capacity: Literal["on-demand", "spot", "flex-start", "reservation"]
    max_nodes: int = Field(description="of all zones together")
    labels: dict[str, str] = Field(description="of its nodes, those that GKE sets included")
    taints: list[Taint] = Field(default_factory=list[Taint], description="of its nodes, GKE's included")
    cpu_m: int = Field(description="allocatable to pods, thousandths of a vCPU, system pods not counted")
    memory_mib: int = Field(description="allocatable to pods, system pods not counted")
    disk_gib: int = Field(default=0, description="allocatable ephemeral storage; 0: not known")
    accelerator: str | None = Field(default=None, description="label cloud.google.com/gke-accelerator; None: no GPU")
    gpus: int = Field(default=0, description="nvidia.com/gpu that a node offers: partitions and shares are counted")
    gpu_sharing: Literal["time-sharing", "mps"] | None = None
    gpu_partition: str | None = Field(default=None, description="MIG profile, such as 1g.10gb")
    driver: Literal["default", "latest", "daemonset", "operator"] | None = Field(
        default=None, description="who installs the NVIDIA driver"
    )
    tpu_accelerator: str | None = Field(default=None, description="label cloud.google.com/gke-tpu-accelerator")
    tpu_topology: str | None = Field(default=None, description="of the slice, such as 2x4")
    tpu_chips: int = Field(default=0, description="google.com/tpu that a node offers")
    hosts: int = Field(default=1, description="nodes of one TPU slice")
    queued: bool = Field(default=False, description="nodes come by ProvisioningRequest only")


class GkeCluster(Contract):
    """A cluster in the `clusters` output of a stack: its location, and what runs pods in it."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    location: str
    name: str
    endpoint: str = Field(description="host, or host:port, of the API server")
    ca_certificate: str = Field(description="PEM of the authority that signed the API server's certificate, in base64")
    workload_pool: str | None = None
    pools: dict[str, GkePool] = Field(description="by the author's key")


class GkeVolume(Contract):
    """A claim that pods of the namespace may mount."""

    claim: str
    read_only: bool = False
    annotations: dict[str, str] = Field(
        default_factory=dict, description="that a pod must have which mounts it: without them it would not start"
    )


class GkeTarget(Contract):
    """A namespace of a GKE cluster and its queue, which jobs are submitted to."""

    kind: Literal["gke"] = "gke"
    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    location: str
    cluster: str
    endpoint: str = Field(
        description="host, or host:port, of the API server; the user's own credentials are sent there"
    )
    ca_certificate: str = Field(description="PEM in base64")
    namespace: str
    queue: str | None = Field(default=None, description="Kueue's LocalQueue; None: pods are scheduled as they come")
    priorities: list[str] = Field(
        default_factory=list[str], description="WorkloadPriorityClasses, or PriorityClasses without a queue"
    )
    service_account: str = Field(default="default", description="the Kubernetes service account that pods run as")
    pod_security: PodSecurity | None = Field(
        default=None, description="what the namespace takes of pods; absent: an older stack does not say"
    )
    jobset: bool = Field(default=False, description="the JobSet controller is installed")
    pools: dict[str, GkePool] = Field(description="pools that this queue may use, by the author's key")
    volumes: dict[str, GkeVolume] = Field(default_factory=dict[str, GkeVolume], description="by the author's key")
    allowances: Allowances | None = Field(default=None, description="who may spend how much on jobs here")
    stop: str | None = Field(
        default=None, description="gs://<bucket>/<object>, which says whether a budget has stopped the stack"
    )
    published: str | None = Field(
        default=None, description="where the stack publishes it, as --targets takes it; a copy may be older"
    )
    code_bucket: str | None = Field(default=None, description="Cloud Storage bucket for code that jobs are sent with")

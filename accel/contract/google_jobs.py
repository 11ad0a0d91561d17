"""Contract for jobs on Google Batch and custom jobs of Vertex AI."""

from typing import Literal

from pydantic import Field

from .allowances import TargetAllowances
from .model import SCHEMA, Contract, Publication, StopObject


class GoogleJobsGround(Contract):
    """Fields common to the targets of both services."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    region: str
    service_account: str = Field(description="Email of the service account that jobs run as")
    bucket: str = Field(description="Cloud Storage bucket for outputs and checkpoints of jobs")
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of every job")
    machine_types: list[str] = Field(
        default_factory=list, description="Machine types that jobs may request. Default: all that the service has here"
    )
    reservation: str | None = Field(
        default=None, description="Reservation for jobs that are not Spot: projects/<p>/zones/<z>/reservations/<r>"
    )
    allowances: TargetAllowances = None
    stop: StopObject = None
    published: Publication = None


class GoogleBatchTarget(GoogleJobsGround):
    """Google Batch in one region."""

    kind: Literal["google-batch"] = "google-batch"
    zones: list[str] = Field(
        default_factory=list, description="Zones of the region. Default: Batch chooses among all of them"
    )
    network: str = Field(description="VPC network: projects/<p>/global/networks/<n>")
    subnetwork: str = Field(description="Subnetwork: projects/<p>/regions/<r>/subnetworks/<s>")
    external_address: bool = Field(default=False, description="Whether VMs have external IP addresses")
    tags: list[str] = Field(
        default_factory=list, description="Network tags of VMs, by which firewall rules select them"
    )
    boot_image: str | None = Field(default=None, description="Image of the VMs' boot disks. Default: Batch's own")
    instance_template: str | None = Field(
        default=None,
        description="Instance template for jobs that name no machine: projects/<p>/global/instanceTemplates/<t>",
    )
    notifications: str | None = Field(
        default=None, description="Pub/Sub topic that is notified of jobs' changes of state: projects/<p>/topics/<t>"
    )


class VertexTarget(GoogleJobsGround):
    """Custom jobs of Vertex AI in one region."""

    kind: Literal["vertex"] = "vertex"
    claims: str | None = Field(
        default=None, description="Firestore database that makes submissions idempotent: projects/<p>/databases/<d>"
    )
    network: str | None = Field(
        default=None,
        description="VPC network that is peered with Google's services: projects/<number>/global/networks/<n>",
    )
    network_attachment: str | None = Field(
        default=None,
        description="Network attachment by which jobs reach a network: projects/<p>/regions/<r>/networkAttachments/<a>",
    )
    tensorboard: str | None = Field(
        default=None, description="TensorBoard instance: projects/<p>/locations/<r>/tensorboards/<t>"
    )
    persistent_resource: str | None = Field(
        default=None,
        description="Id of a persistent resource: machines kept for jobs of this region, and used by those that fit",
    )
    persistent_machines: list[str] = Field(
        default_factory=list,
        description="Machines of the persistent resource's pools, such as a2-highgpu-1g or "
        "n1-standard-8+nvidia-tesla-t4x1; jobs whose machines are all among them run there. Without any, "
        "only jobs that name the resource do",
    )

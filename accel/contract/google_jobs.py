"""Contract for jobs on Google Batch and custom jobs of Vertex AI."""

from typing import Literal

from pydantic import Field

from .allowances import Allowances
from .model import SCHEMA, Contract


class GoogleJobsGround(Contract):
    """Fields common to the targets of both services."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    region: str
    service_account: str = Field(description="email of the account that jobs run as")
    bucket: str = Field(description="for outputs and checkpoints of jobs")
    labels: dict[str, str] = Field(default_factory=dict, description="of every job")
    machine_types: list[str] = Field(
        default_factory=list, description="that jobs may ask for; none: every one that the service has here"
    )
    reservation: str | None = Field(
        default=None, description="projects/<p>/zones/<z>/reservations/<r>, for jobs that are not Spot"
    )
    allowances: Allowances | None = Field(default=None, description="who may spend how much on jobs here")
    stop: str | None = Field(
        default=None, description="gs://<bucket>/<object>, which says whether a budget has stopped the stack"
    )
    published: str | None = Field(
        default=None, description="where the stack publishes it, as --targets takes it; a copy may be older"
    )


class GoogleBatchTarget(GoogleJobsGround):
    """Google Batch in one region."""

    kind: Literal["google-batch"] = "google-batch"
    zones: list[str] = Field(default_factory=list, description="of the region; none: Batch chooses among all of them")
    network: str = Field(description="projects/<p>/global/networks/<n>")
    subnetwork: str = Field(description="projects/<p>/regions/<r>/subnetworks/<s>")
    external_address: bool = Field(default=False, description="VMs have addresses of their own on the internet")
    tags: list[str] = Field(default_factory=list, description="network tags of VMs, by which firewalls know them")
    boot_image: str | None = Field(default=None, description="of the VMs' boot disks; none: Batch's own")
    instance_template: str | None = Field(
        default=None, description="projects/<p>/global/instanceTemplates/<t> for jobs that name no machine"
    )
    notifications: str | None = Field(
        default=None, description="projects/<p>/topics/<t>, which is told of jobs' changes of state"
    )


class VertexTarget(GoogleJobsGround):
    """Custom jobs of Vertex AI in one region."""

    kind: Literal["vertex"] = "vertex"
    claims: str | None = Field(
        default=None, description="projects/<p>/databases/<d> of Firestore, which makes submit idempotent"
    )
    network: str | None = Field(
        default=None, description="projects/<number>/global/networks/<n>, where it is peered with Google's services"
    )
    network_attachment: str | None = Field(
        default=None, description="projects/<p>/regions/<r>/networkAttachments/<a>, by which jobs reach a network"
    )
    tensorboard: str | None = Field(default=None, description="projects/<p>/locations/<r>/tensorboards/<t>")
    persistent_resource: str | None = Field(
        default=None, description="id of machines that are kept for jobs of this region, and used by those that fit"
    )
    persistent_machines: list[str] = Field(
        default_factory=list,
        description="of the persistent resource's pools: a2-highgpu-1g, or n1-standard-8+nvidia-tesla-t4x1; jobs whose "
        "machines are all among them run there. None: only jobs that name it do",
    )

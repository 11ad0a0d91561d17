"""Contract for jobs on TPU VMs and on GPU VMs of Compute Engine."""

from typing import Literal

from pydantic import Field

from .allowances import TargetAllowances
from .model import SCHEMA, Contract, Publication, StopObject


class VmGround(Contract):
    """Fields common to targets where jobs create machines of their own."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    zones: list[str] = Field(min_length=1, description="Zones in the order in which a job tries them")
    network: str = Field(description="VPC network: projects/<p>/global/networks/<n>")
    subnetworks: dict[str, str] = Field(description="Subnetworks by region: projects/<p>/regions/<r>/subnetworks/<s>")
    service_account: str = Field(description="Email of the service account that machines of jobs run as")
    bucket: str = Field(description="Cloud Storage bucket for records and results of jobs")
    external_address: bool = Field(default=False, description="Whether machines have external IP addresses")
    tags: list[str] = Field(
        default_factory=list, description="Network tags of machines, by which firewall rules select them"
    )
    labels: dict[str, str] = Field(default_factory=dict, description="Labels of everything that jobs create")
    reservation: str | None = Field(
        default=None, description="Reservation that machines are taken from if the job is not Spot"
    )
    allowances: TargetAllowances = None
    stop: StopObject = None
    published: Publication = None


class TpuVmTarget(VmGround):
    """TPU slices that jobs request by queued resources."""

    kind: Literal["tpu-vm"] = "tpu-vm"
    types: list[str] = Field(
        default_factory=list, description="Accelerator types that jobs may request. Default: all that a zone has"
    )


class GceTarget(VmGround):
    """GPU VMs of Compute Engine that jobs create."""

    kind: Literal["gce"] = "gce"
    machine_types: list[str] = Field(
        default_factory=list, description="Machine types that jobs may request. Default: all that a zone has"
    )
    image: str = Field(description="Boot image: projects/<p>/global/images/family/<f>, or one image of it")
    disk_gib: int = Field(description="Size of the boot disk in GiB")
    disk_type: str = "pd-balanced"
    machine_prefix: str = Field(
        default="", description="Prefix of the names of machines, by which the machines may delete themselves"
    )
    placement: str | None = Field(
        default=None,
        description="Resource policy for the machines of one job: its name, or projects/<p>/regions/<r>/...",
    )

"""Contract for jobs on TPU VMs and on GPU VMs of Compute Engine."""

from typing import Literal

from pydantic import Field

from .allowances import Allowances
from .model import SCHEMA, Contract


class VmGround(Contract):
    """Fields common to targets where jobs create machines of their own."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    project: str
    zones: list[str] = Field(min_length=1, description="in the order in which a job tries them")
    network: str = Field(description="projects/<p>/global/networks/<n>")
    subnetworks: dict[str, str] = Field(description="projects/<p>/regions/<r>/subnetworks/<s>, by region")
    service_account: str = Field(description="email of the account that machines of jobs run as")
    bucket: str = Field(description="where jobs keep their records and results")
    external_address: bool = Field(default=False, description="machines have addresses of their own on the internet")
    tags: list[str] = Field(default_factory=list, description="network tags of machines, by which firewalls know them")
    labels: dict[str, str] = Field(default_factory=dict, description="of everything that jobs make")
    reservation: str | None = Field(default=None, description="that machines are taken out of, where a job is not Spot")
    allowances: Allowances | None = Field(default=None, description="who may spend how much on jobs here")
    stop: str | None = Field(
        default=None, description="gs://<bucket>/<object>, which says whether a budget has stopped the stack"
    )
    published: str | None = Field(
        default=None, description="where the stack publishes it, as --targets takes it; a copy may be older"
    )


class TpuVmTarget(VmGround):
    """TPU slices that jobs request by queued resources."""

    kind: Literal["tpu-vm"] = "tpu-vm"
    types: list[str] = Field(
        default_factory=list, description="accelerator types that jobs may ask for; none: every one that a zone has"
    )


class GceTarget(VmGround):
    """GPU VMs of Compute Engine that jobs create."""

    kind: Literal["gce"] = "gce"
    machine_types: list[str] = Field(
        default_factory=list, description="that jobs may ask for; none: every one that a zone has"
    )
    image: str = Field(description="projects/<p>/global/images/family/<f>, or one image of it")
    disk_gib: int = Field(description="boot disk")
    disk_type: str = "pd-balanced"
    machine_prefix: str = Field(
        default="", description="with which the names of machines begin, by which they may delete themselves"
    )
    placement: str | None = Field(
        default=None, description="resource policy for the machines of one job: projects/<p>/regions/<r>/..., by name"
    )

"""The `vms` part of the `gcp` section: permanent TPU VMs and GPU VMs, and the ground of jobs that create their own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from accel.catalog.gcp_images import CURRENT_BASE, DEEP_LEARNING
from accel.diagnostics.faults import several
from accel.diagnostics.findings import Finding
from accel.rules.gcp import machines, tpu
from accel.rules.gcp import vm_targets as rules
from components.base import Name, Spec
from components.gcp.gpu_vm_group import GpuVmGroupSpec
from components.gcp.gpu_vm_spec import GpuVmSpec
from components.gcp.queued_tpu import QueuedTpuSpec
from components.gcp.reconcile_function import ReconcileSpec
from components.gcp.tpu_queue import TpuQueueSpec
from components.gcp.tpu_vm import TpuVmSpec
from components.gcp.vm_account import VmAccountSpec
from components.gcp.vm_jobs import VmJobsSpec

from ..existing import ExistingAccount
from .capacity_config import Capacity


class CreatedVmAccount(VmAccountSpec):
    """An account for the machines of this part that this stack creates."""

    kind: Literal["create"]


class ExistingVmAccount(ExistingAccount):
    """An existing account for machines."""


VmAccount = Annotated[CreatedVmAccount | ExistingVmAccount, Field(discriminator="kind")]


class VmTarget(Spec):
    """Fields of both kinds of target."""

    zones: list[str] = Field(min_length=1, description="Zones, in the order in which a job tries them")
    reservation: str | None = Field(
        default=None, description="Reservation to take machines from, for jobs that are not Spot"
    )
    external_address: bool = Field(default=False, description="Assign external IP addresses to the machines")

    def check(self) -> list[Finding]:
        return rules.zones(self.zones)


class TpuVmTarget(VmTarget):
    """TPU slices that jobs request by queued resources."""

    kind: Literal["tpu-vm"]
    types: list[str] = Field(
        default_factory=list, description="Accelerator types that jobs may request. Default: all that a zone offers"
    )

    def check(self) -> list[Finding]:
        found = super().check()
        for index, name in enumerate(self.types):
            found += tpu.accelerator_type(name, field=f"types[{index}]")
        return found


class GceTarget(VmTarget):
    """GPU VMs that jobs create."""

    kind: Literal["gce"]
    machine_types: list[str] = Field(
        default_factory=list, description="Machine types that jobs may request. Default: all that a zone offers"
    )
    image: str = Field(
        default=f"projects/{DEEP_LEARNING}/global/images/family/{CURRENT_BASE}",
        description="Boot image: projects/<p>/global/images/family/<f>, or one image of it",
    )
    disk_gib: int = Field(default=200, ge=50, description="Size of the boot disk in GiB")
    disk_type: str = "pd-balanced"
    placement: str | None = Field(default=None, description="Name of a resource policy for the machines of one job")

    def check(self) -> list[Finding]:
        found = super().check()
        for index, name in enumerate(self.machine_types):
            wrong = machines.target_machine(name)
            found += [replace(each, field=f"machine_types[{index}]") for each in wrong]
        return found


AnyVmTarget = Annotated[TpuVmTarget | GceTarget, Field(discriminator="kind")]


class Vms(Capacity):
    """Machines of Compute Engine and TPU VMs."""

    account: VmAccount = Field(
        default=CreatedVmAccount(kind="create"), description="Service account of permanent machines"
    )
    tpus: dict[Name, TpuVmSpec] = Field(default_factory=dict[str, TpuVmSpec], description="Permanent TPU slices")
    tpu_queues: dict[Name, TpuQueueSpec] = Field(
        default_factory=dict[str, TpuQueueSpec],
        description="Permanent TPU slices that are requested as queued resources",
    )
    queued_tpus: dict[Name, QueuedTpuSpec] = Field(
        default_factory=dict[str, QueuedTpuSpec],
        description="TPU slices of queued resources that are requested again after preemption",
    )
    gpus: dict[Name, GpuVmSpec] = Field(default_factory=dict[str, GpuVmSpec], description="Permanent GPU VMs")
    gpu_groups: dict[Name, GpuVmGroupSpec] = Field(
        default_factory=dict[str, GpuVmGroupSpec], description="Groups of several identical GPU VMs"
    )
    jobs: VmJobsSpec | None = Field(default=None, description="Resources for jobs that create their own machines")
    targets: dict[Name, AnyVmTarget] = Field(
        default_factory=dict[str, AnyVmTarget],
        description="Targets to which jobs that create their own machines may be submitted",
    )
    reconcile: ReconcileSpec | None = Field(
        default=None,
        description="Scheduled function that does what `accel-jobs tend` does: it requests queued_tpus and jobs again "
        "whose machines were lost. Without it, clients do",
    )

    @model_validator(mode="after")
    def _ground(self) -> Self:
        if self.targets and self.jobs is None:
            raise several([("jobs", "is missing; targets need a bucket and an account for the machines of jobs")])
        for field in ("queued_tpus", "reconcile"):
            if getattr(self, field) and self.jobs is None:
                message = f"is missing; {field} keeps its records in the bucket of jobs; write jobs: {{}}"
                raise several([("jobs", message)])
        return self

    def check(self) -> list[Finding]:
        found = [*self.of_commitments()]
        for key, spec in self.gpus.items():
            found += self.of_machine(spec, f"gpus.{key}", group=False)
        for key, spec in self.gpu_groups.items():
            found += self.of_machine(spec, f"gpu_groups.{key}", group=True)
        for key, target in self.targets.items():
            if isinstance(target, GceTarget):
                found += self.of_target(target.placement, target.reservation, target.zones, f"targets.{key}")
        return found

    def zones(self) -> Iterator[tuple[str, str]]:
        """Yield every zone that is named for a machine, after the path of its field."""
        for kind in ("tpus", "tpu_queues", "queued_tpus", "gpus", "gpu_groups"):
            for key, spec in getattr(self, kind).items():
                yield f"{kind}.{key}.zone", spec.zone
        for key, target in self.targets.items():
            yield from ((f"targets.{key}.zones[{index}]", zone) for index, zone in enumerate(target.zones))

    def in_subnets(self, of_network: Sequence[str]) -> list[Finding]:
        return [finding for field, zone in self.zones() for finding in rules.subnet(zone, of_network, field)]

    @property
    def own(self) -> bool:
        """Return whether any machine is permanent, so that it needs an account."""
        return bool(self.tpus or self.queued_tpus or self.gpus or self.gpu_groups)

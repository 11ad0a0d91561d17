"""The `batch`, `vertex` and `images` parts of the `gcp` section: the ground of jobs on Google's own job services."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from accel.diagnostics.findings import Finding, under
from accel.rules.batch import machines as google_batch_machines
from accel.rules.gcp import job_services as rules
from accel.rules.gcp import machines, vm_targets
from accel.rules.gcp import zones as gcp_zones
from accel.rules.vertex import jobs, scheduling
from accel.rules.vertex import machines as vertex_machines
from components.base import Name, Spec
from components.gcp.batch_jobs import BatchJobsSpec
from components.gcp.batch_template import BatchTemplateSpec
from components.gcp.claim_database import ClaimDatabaseSpec
from components.gcp.job_notifications import JobNotificationsSpec
from components.gcp.persistent_resource import PersistentResourceSpec
from components.gcp.tensorboard import TensorboardSpec
from components.gcp.vertex_jobs import VertexJobsSpec


class JobTarget(Spec):
    """Fields of targets of both services."""

    machine_types: list[str] = Field(
        default_factory=list,
        description="Machine types that jobs may request. Default: all that the service offers in the region",
    )
    reservation: str | None = Field(
        default=None, description="Reservation for jobs that are not Spot: projects/<p>/zones/<z>/reservations/<r>"
    )


def _machine_types(names: Sequence[str], check: Callable[[str], list[Finding]]) -> list[Finding]:
    found = ((index, each) for index, name in enumerate(names) for each in check(name))
    return [replace(each, field=f"machine_types[{index}]") for index, each in found]


def _known(name: str) -> list[Finding]:
    """Check that the machine type is known. A job says which GPUs go with an N1 machine."""
    return [each for each in machines.target_machine(name) if each.rule in (machines.UNKNOWN.id, machines.NEWER.id)]


class GoogleBatchTarget(JobTarget):
    """Google Batch in one region."""

    region: str | None = Field(default=None, description="Region of the jobs. Default: the section's")
    zones: list[str] = Field(
        default_factory=list, description="Zones of the region. Default: Batch chooses among all of them"
    )
    external_address: bool = Field(default=False, description="Assign external IP addresses to the VMs")
    boot_image: str | None = Field(default=None, description="Image of the VMs' boot disks. Default: Batch's")
    template: bool = Field(default=False, description="Run jobs that name no machine on VMs of the section's template")

    def check(self) -> list[Finding]:
        found = _machine_types(self.machine_types, _known) + vm_targets.zones(self.zones)
        return found + (gcp_zones.region(self.region) if self.region else [])

    def against(self, region: str, template: BatchTemplateSpec | None) -> list[Finding]:
        here = self.region or region
        found = google_batch_machines.zones(self.zones, here)
        found += rules.template(self.template, template.capacity if template else None, here, region)
        capacity = template.capacity if template and self.template else "on-demand"
        found += google_batch_machines.reservation(self.reservation, self.zones, capacity, compact=False)
        return found + ([] if self.zones else rules.reservation(self.reservation, here))


class GoogleBatch(BatchJobsSpec):
    """Google Batch: the ground of its jobs, and their regions."""

    notifications: JobNotificationsSpec | None = Field(
        default=None, description="Pub/Sub topic for state changes of jobs; {} creates one"
    )
    template: BatchTemplateSpec | None = Field(default=None, description="Machines of jobs that name none")
    targets: dict[Name, GoogleBatchTarget] = Field(
        default_factory=dict[str, GoogleBatchTarget], description="Targets to which jobs may be submitted"
    )

    @property
    def ground(self) -> BatchJobsSpec:
        return BatchJobsSpec(account=self.account, bucket=self.bucket)

    def in_section(self, region: str, subnets: Sequence[str] | None) -> Iterator[Finding]:
        """Check against the region of the section, and those of the network's subnets, where these are known."""
        if self.template is not None:
            yield from under("template", rules.template_zone(self.template.zone, region))
        for key, target in self.targets.items():
            at = f"targets.{key}"
            yield from under(at, target.against(region, self.template))
            if subnets is not None:
                yield from under(at, rules.subnet(target.region or region, subnets))


class CreatedClaims(ClaimDatabaseSpec):
    """A Firestore database that this stack creates."""

    kind: Literal["create"]


class ExistingClaims(Spec):
    """An existing Firestore database of the project. Documents of accel-claims expire there only if its owner set a
    time-to-live policy on their field `expires`."""

    kind: Literal["existing"]
    database: str = Field(description='Id of the database, such as claims or "(default)"')

    def check(self) -> list[Finding]:
        return rules.database(self.database)


Claims = Annotated[CreatedClaims | ExistingClaims, Field(discriminator="kind")]


class CreatedTensorboard(TensorboardSpec):
    """A TensorBoard that this stack creates."""

    kind: Literal["create"]


class ExistingTensorboard(Spec):
    """An existing TensorBoard."""

    kind: Literal["existing"]
    name: str = Field(description="Resource name: projects/<p>/locations/<r>/tensorboards/<t>")


AnyTensorboard = Annotated[CreatedTensorboard | ExistingTensorboard, Field(discriminator="kind")]


class PeeredNetwork(Spec):
    """A network that is already peered with Google's services."""

    kind: Literal["peered"]
    network: str = Field(description="Peered VPC network: projects/<number>/global/networks/<n>")

    def check(self) -> list[Finding]:
        return jobs.network(self.network)


class AttachedNetwork(Spec):
    """A network that already has a network attachment for Vertex AI."""

    kind: Literal["attachment"]
    network_attachment: str = Field(description="Network attachment: projects/<p>/regions/<r>/networkAttachments/<a>")


VertexNetwork = Annotated[PeeredNetwork | AttachedNetwork, Field(discriminator="kind")]


class VertexTarget(JobTarget):
    """Custom jobs of Vertex AI in the section's region."""

    persistent_resource: str | None = Field(
        default=None, description="Persistent resource on which jobs that fit run: a key of persistent_resources"
    )

    def check(self) -> list[Finding]:
        found = _machine_types(self.machine_types, vertex_machines.machine_type)
        if self.reservation is None:
            return found
        kept = self.persistent_resource is not None
        return found + scheduling.reservation_with(spot=False, flex=False, persistent=kept)


class Vertex(VertexJobsSpec):
    """Vertex AI: the ground of its custom jobs, and their targets."""

    claims: Claims | None = Field(
        default=CreatedClaims(kind="create"),
        description="Database that makes submit idempotent for everyone who submits. null: for each machine "
        "separately, with a warning",
    )
    tensorboard: AnyTensorboard | None = Field(default=None, description="TensorBoard that jobs write metrics to")
    network: VertexNetwork | None = Field(
        default=None, description="Network that jobs can reach. null: the internet only"
    )
    persistent_resources: dict[Name, PersistentResourceSpec] = Field(
        default_factory=dict[str, PersistentResourceSpec],
        description="Machines that are kept, and billed, between jobs",
    )
    targets: dict[Name, VertexTarget] = Field(
        default_factory=dict[str, VertexTarget], description="Targets to which jobs may be submitted"
    )

    @property
    def ground(self) -> VertexJobsSpec:
        return VertexJobsSpec(account=self.account, bucket=self.bucket)

    def check(self) -> list[Finding]:
        return [
            each
            for key, target in self.targets.items()
            for each in under(
                f"targets.{key}",
                rules.persistent_resource_key(target.persistent_resource, list(self.persistent_resources)),
            )
        ]

    def in_section(self, region: str) -> Iterator[Finding]:
        if isinstance(self.network, AttachedNetwork):
            yield from under("network", rules.attachment(self.network.network_attachment, region))
        if isinstance(self.tensorboard, ExistingTensorboard):
            yield from under("tensorboard", jobs.tensorboard(self.tensorboard.name, "made here", region, "name"))
        for key, target in self.targets.items():
            if target.reservation:
                yield from under(f"targets.{key}", scheduling.reservation(target.reservation, region))


def one_name(targets: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return faults where parts of a section share a target name: they are one output. `targets`: names by part."""
    first: dict[str, str] = {}
    faults: list[tuple[str, str]] = []
    for part, names in targets.items():
        for name in names:
            if name in first:
                faults.append((f"{part}.targets.{name}", f"is the name of a target of {first[name]} too; rename one"))
            first.setdefault(name, part)
    return faults

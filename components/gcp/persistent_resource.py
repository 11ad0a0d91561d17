"""Vertex AI machines that are kept between jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.catalog import UnknownName
from accel.catalog import accelerator as accelerator_named
from accel.catalog import machine as machine_named
from accel.catalog.gpu_attachments import n1
from accel.diagnostics.findings import Finding, under
from accel.rules.gcp import job_services as rules

from ..base import Component, Name, Spec
from ..sdk import gcp
from .services import enable_services
from .timeouts import long


class PersistentPoolSpec(Spec):
    """Machines of one kind."""

    machine_type: str
    accelerator: str | None = Field(
        default=None, description="Accelerator type, such as nvidia-tesla-t4, to attach to an N1 machine"
    )
    accelerator_count: int | None = Field(
        default=None, ge=1, description="Number of accelerators. Default: 1, or that of the machine type"
    )
    replicas: int = Field(
        default=1,
        ge=1,
        description="Initial number of machines, or the fixed number without min_replicas and max_replicas",
    )
    min_replicas: int | None = Field(
        default=None, description="With max_replicas: minimum number of machines that Vertex AI keeps"
    )
    max_replicas: int | None = Field(
        default=None, description="With min_replicas: maximum number of machines, created as jobs need them"
    )
    disk_gib: int = Field(default=100, ge=100, description="Size of the boot disk in GiB")
    disk_type: Literal["pd-ssd", "pd-standard", "hyperdisk-balanced"] | None = Field(
        default=None, description="Type of the boot disk. Default: Vertex AI's for the machine type"
    )

    def check(self) -> list[Finding]:
        return rules.persistent_machine(self.machine_type, self.accelerator, self.accelerator_count) + rules.replicas(
            self.replicas, self.min_replicas, self.max_replicas
        )

    @property
    def accelerators(self) -> tuple[str, int] | None:
        """Return Vertex AI's name of a machine's GPUs and their number: it requires both for built-in ones too."""
        if n1(self.machine_type):
            name, count = self.accelerator, self.accelerator_count or 1
        else:
            try:
                found = machine_named("gcp", self.machine_type)
            except UnknownName:
                return None
            name, count = found.accelerator or None, self.accelerator_count or round(found.accelerator_count)
        if name is None:
            return None
        kind = accelerator_named(name)
        return (kind.vertex_name, count) if kind.vertex_name else None

    @property
    def key(self) -> str:
        """Return the name by which targets know a machine: a2-highgpu-1g, n1-standard-8+nvidia-tesla-t4x1."""
        if not (n1(self.machine_type) and self.accelerator):
            return self.machine_type
        return f"{self.machine_type}+{accelerator_named(self.accelerator).gcp_type}x{self.accelerator_count or 1}"


class PersistentResourceSpec(Spec):
    """Machines on which jobs of one region start without waiting. They are billed as long as they exist."""

    display_name: str | None = Field(default=None, min_length=1, max_length=128)
    pools: dict[Name, PersistentPoolSpec] = Field(min_length=1, description="Pools of machines by their ids")

    def check(self) -> list[Finding]:
        return [each for key, pool in self.pools.items() for each in under(f"pools.{key}", pool.findings)]


@dataclass(frozen=True, kw_only=True)
class PersistentResourceArgs:
    """The spec, the project and region, and at most one of two ways to a network that jobs there have to reach."""

    spec: PersistentResourceSpec
    project: str
    region: str
    network: pulumi.Input[str] | None = None
    network_attachment: pulumi.Input[str] | None = None


class PersistentResource(Component):
    """A cluster of Vertex AI. Only the number of machines changes in place; any other change creates another cluster,
    and cancels the jobs on the old one. Source:
    https://docs.cloud.google.com/vertex-ai/docs/training/persistent-resource-overview"""

    TYPE = "accel:gcp:PersistentResource"

    id: pulumi.Output[str]

    def __init__(self, name: str, args: PersistentResourceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        services = enable_services(self, name, args.project, ["aiplatform"])
        spec, attachment = args.spec, args.network_attachment
        made = gcp.vertex.AiPersistentResource(
            name,
            project=args.project,
            location=args.region,
            display_name=spec.display_name or name,
            resource_pools=[_pool(key, pool) for key, pool in spec.pools.items()],
            network=args.network,
            psc_interface_config=gcp.vertex.AiPersistentResourcePscInterfaceConfigArgs(network_attachment=attachment)
            if attachment is not None
            else None,
            # Otherwise jobs would run there as an agent of Google's, and not as the account that they name.
            resource_runtime_spec=gcp.vertex.AiPersistentResourceResourceRuntimeSpecArgs(
                service_account_spec=gcp.vertex.AiPersistentResourceResourceRuntimeSpecServiceAccountSpecArgs(
                    enable_custom_service_account=True
                )
            ),
            opts=self.child(
                depends_on=services,
                custom_timeouts=long(),
            ),
        )
        self.id = made.name
        self.finish()


def _pool(key: str, spec: PersistentPoolSpec) -> gcp.vertex.AiPersistentResourceResourcePoolArgs:
    kind, count = spec.accelerators or (None, None)
    ranged = spec.min_replicas is not None
    return gcp.vertex.AiPersistentResourceResourcePoolArgs(
        id=key,
        machine_spec=gcp.vertex.AiPersistentResourceResourcePoolMachineSpecArgs(
            machine_type=spec.machine_type, accelerator_type=kind, accelerator_count=count
        ),
        replica_count=str(spec.replicas),
        autoscaling_spec=gcp.vertex.AiPersistentResourceResourcePoolAutoscalingSpecArgs(
            min_replica_count=str(spec.min_replicas), max_replica_count=str(spec.max_replicas)
        )
        if ranged
        else None,
        disk_spec=gcp.vertex.AiPersistentResourceResourcePoolDiskSpecArgs(
            boot_disk_size_gb=spec.disk_gib, boot_disk_type=spec.disk_type
        ),
    )

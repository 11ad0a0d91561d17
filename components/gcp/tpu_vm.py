"""A TPU slice of one or several VMs that stays until the stack deletes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import tpu, tpu_vms

from ..base import Component, Name, Spec, map_present
from ..sdk import gcp
from .slice_spec import SliceSpec
from .timeouts import long
from .vm_spec import SCOPES, VmArgs, metadata


class DataDiskSpec(Spec):
    """A disk beside the boot disk, on every host."""

    size_gib: int | None = Field(
        default=None, ge=10, description="Size in GiB of a new disk, which is deleted with the TPU"
    )
    type: str | None = Field(default=None, description="Type of a new disk. Default: one that the TPU supports")
    source: str | None = Field(
        default=None,
        description="Existing disk, which is kept when the TPU is deleted: projects/<p>/zones/<z>/disks/<d>",
    )
    mode: Literal["read-write", "read-only"] = "read-write"


class TpuVmSpec(SliceSpec):
    """A slice. The type is mandatory: the provider's default is a v2-8."""

    architecture: str = Field(
        default="vm", description="TPU architecture; only vm, since the node architecture was removed"
    )
    spot: bool = False
    reserved: bool = Field(default=False, description="Use a reservation of the project in this zone")
    description: str | None = Field(default=None, max_length=512)
    data_disks: dict[Name, DataDiskSpec] = Field(default_factory=dict[str, DataDiskSpec])

    def check(self) -> list[Finding]:
        found = tpu.architecture(self.architecture) + tpu.provisioning(spot=self.spot, reserved=self.reserved)
        slices = self.slice_findings()
        found += slices + self.vm_findings()
        if any(each.severity == "reject" for each in slices):
            return found
        for name, disk in self.data_disks.items():
            found += tpu_vms.data_disk(
                self.slice.name,
                size_gib=disk.size_gib,
                source=disk.source,
                kind=disk.type,
                read_only=disk.mode == "read-only",
                field=f"data_disks.{name}",
            )
        return found


@dataclass(frozen=True, kw_only=True)
class TpuVmArgs(VmArgs):
    """The spec and the arguments of VmArgs. Without an external address the subnetwork needs Private Google Access."""

    spec: TpuVmSpec


class TpuVm(Component):
    """A TPU slice of the Cloud TPU API, generations v2 to v6e. Google replaces it, and ends what runs on it, when type,
    topology, software version, Spot, network or account change. The new one exists before the old one is deleted,
    unless it has a writable disk, which only one can attach."""

    TYPE = "accel:gcp:TpuVm"

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    accelerator_type: pulumi.Output[str]
    topology: pulumi.Output[str]
    worker_count: pulumi.Output[int]
    chips: pulumi.Output[int]
    ssh_commands: pulumi.Output[list[str]]
    """One command per worker."""

    def __init__(self, name: str, args: TpuVmArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        own = spec.slice
        made = gcp.tpu.V2Vm(
            name,
            project=args.project,
            zone=spec.zone,
            accelerator_type=None if spec.topology else own.api_type,
            accelerator_config=gcp.tpu.V2VmAcceleratorConfigArgs(type=own.version, topology=own.topology)
            if spec.topology
            else None,
            runtime_version=spec.runtime,
            description=spec.description,
            network_config=gcp.tpu.V2VmNetworkConfigArgs(
                network=args.network, subnetwork=args.subnetwork, enable_external_ips=spec.external_address
            ),
            service_account=gcp.tpu.V2VmServiceAccountArgs(email=args.service_account, scopes=SCOPES),
            scheduling_config=_scheduling(spec),
            shielded_instance_config=gcp.tpu.V2VmShieldedInstanceConfigArgs(enable_secure_boot=True)
            if spec.secure_boot
            else None,
            data_disks=_disks(self, name, spec, args) or None,
            metadata=metadata(spec.metadata, startup_script=spec.startup_script),
            labels=spec.all_labels,
            tags=spec.tags or None,
            opts=self.child(
                delete_before_replace=any(disk.mode == "read-write" for disk in spec.data_disks.values()) or None,
                custom_timeouts=long(),
            ),
        )
        self.name = made.name
        self.zone = pulumi.Output.from_input(spec.zone)
        self.accelerator_type = pulumi.Output.from_input(own.name)
        self.topology = pulumi.Output.from_input(own.topology)
        self.worker_count = pulumi.Output.from_input(own.hosts)
        self.chips = pulumi.Output.from_input(own.chips)
        self.ssh_commands = map_present(
            made.name, lambda known: ssh_commands(known, args.project, spec.zone, own.hosts)
        )
        self.finish()


def node_id(text: str, most: int) -> str:
    """Return the text as the id of a TPU: its last characters, lower case, without the dots that stacks may have."""
    return text.lower().replace(".", "-")[-most:].lstrip("-0123456789")


def ssh_commands(name: str, project: str, zone: str, workers: int) -> list[str]:
    """Return a command for each worker, through IAP, which gcloud supports for TPUs in its alpha track only. Source:
    lib/surface/compute/tpus/tpu_vm/ssh.py of Google Cloud CLI (SshAlpha._ENABLE_IAP)."""
    command = f"gcloud alpha compute tpus tpu-vm ssh {name} --project={project} --zone={zone} --tunnel-through-iap"
    return [f"{command} --worker={number}" for number in range(workers)]


def _scheduling(spec: TpuVmSpec) -> gcp.tpu.V2VmSchedulingConfigArgs | None:
    if not (spec.spot or spec.reserved):
        return None
    return gcp.tpu.V2VmSchedulingConfigArgs(spot=spec.spot or None, reserved=spec.reserved or None)


def _disks(self: Component, name: str, spec: TpuVmSpec, args: TpuVmArgs) -> list[gcp.tpu.V2VmDataDiskArgs]:
    attached: list[gcp.tpu.V2VmDataDiskArgs] = []
    for key, disk in spec.data_disks.items():
        source: pulumi.Input[str] = disk.source or ""
        if disk.size_gib is not None:
            source = gcp.compute.Disk(
                f"{name}-{key}",
                project=args.project,
                zone=spec.zone,
                size=disk.size_gib,
                type=disk.type or tpu_vms.disk_types(spec.slice.name)[0],
                labels=spec.all_labels,
                opts=self.child(),
            ).id
        mode = "READ_ONLY" if disk.mode == "read-only" else "READ_WRITE"
        attached.append(gcp.tpu.V2VmDataDiskArgs(source_disk=source, mode=mode))
    return attached

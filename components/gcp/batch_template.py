"""An instance template for jobs of Google Batch that name no machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import vms
from accel.rules.gke import nodes

from ..base import Component
from ..sdk import gcp
from .batch_jobs import TAG
from .gpu_machine import GpuMachineSpec
from .vm_spec import NO_PROJECT_KEYS, SCOPES

IMAGE = "projects/batch-custom-image/global/images/family/batch-cos-stable-official"
"""Batch's own image for containers. Source: https://docs.cloud.google.com/batch/docs/view-os-images"""


class BatchTemplateSpec(GpuMachineSpec):
    """A machine with GPUs. Batch takes machine, disks, network and account only from here, and not from the job."""

    zone: str = Field(
        description="Zone in which the machine type is looked up; jobs run in every zone of its region that offers it"
    )
    capacity: Literal["on-demand", "spot"] = "on-demand"
    image: str = Field(
        default=IMAGE, description="Boot image: projects/<p>/global/images/family/<f>, or one image of it"
    )
    disk_gib: int = Field(default=100, ge=30, description="Size of the boot disk in GiB")
    disk_type: str | None = Field(
        default=None, description="Type of the boot disk. Default: the one that the machine type needs"
    )
    external_address: bool = Field(default=False, description="Assign external IP addresses to the VMs")

    def check(self) -> list[Finding]:
        found = vms.gpu_machine(self.machine_type, self.accelerator, self.accelerator_count, self.zone, self.capacity)
        if any(each.severity == "reject" for each in found):
            return found
        return found + vms.boot_disk(self.disk_type, self.machine, field="disk_type")


@dataclass(frozen=True, kw_only=True)
class BatchTemplateArgs:
    """The spec, and the VMs' location and account: Batch refuses a job with another account."""

    spec: BatchTemplateSpec
    project: str
    network: pulumi.Input[str]
    subnetwork: pulumi.Input[str]
    service_account: pulumi.Input[str]


class BatchTemplate(Component):
    """A global instance template: Batch needs the region of any other. Every change creates another one."""

    TYPE = "accel:gcp:BatchTemplate"

    template: pulumi.Output[str]

    def __init__(self, name: str, args: BatchTemplateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        spot = spec.capacity == "spot"
        made = gcp.compute.InstanceTemplate(
            name,
            project=args.project,
            machine_type=spec.machine,
            # Machines with GPUs built in have no such block: Google fills it in.
            guest_accelerators=[
                gcp.compute.InstanceTemplateGuestAcceleratorArgs(type=spec.accelerator_type, count=spec.gpus)
            ]
            if spec.attached
            else None,
            disks=[
                gcp.compute.InstanceTemplateDiskArgs(
                    boot=True,
                    auto_delete=True,
                    source_image=spec.image,
                    disk_size_gb=spec.disk_gib,
                    disk_type=spec.disk_type or nodes.disk_type(spec.machine) or "pd-balanced",
                )
            ],
            network_interfaces=[
                gcp.compute.InstanceTemplateNetworkInterfaceArgs(
                    network=args.network,
                    subnetwork=args.subnetwork,
                    nic_type="GVNIC",
                    access_configs=[gcp.compute.InstanceTemplateNetworkInterfaceAccessConfigArgs()]
                    if spec.external_address
                    else None,
                )
            ],
            scheduling=gcp.compute.InstanceTemplateSchedulingArgs(
                on_host_maintenance="TERMINATE",
                provisioning_model="SPOT" if spot else "STANDARD",
                preemptible=spot,
                automatic_restart=not spot,
            ),
            service_account=gcp.compute.InstanceTemplateServiceAccountArgs(email=args.service_account, scopes=SCOPES),
            tags=[TAG],
            metadata=NO_PROJECT_KEYS,
            opts=self.child(),
        )
        # projects/<p>/global/instanceTemplates/<t>
        self.template = made.id
        self.finish()

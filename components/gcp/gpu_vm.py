"""A Compute Engine VM with GPUs that stays until the stack deletes it."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi

from ..base import Component, map_present
from ..sdk import gcp
from .gpu_vm_parts import parts
from .gpu_vm_spec import GpuVmSpec
from .vm_scripts import READY
from .vm_spec import VmArgs


@dataclass(frozen=True, kw_only=True)
class GpuVmArgs(VmArgs):
    """The spec and the arguments of VmArgs. `placement` is the policy that the spec names, if the stack creates it."""

    spec: GpuVmSpec
    placement: pulumi.Input[str] | None = None


class GpuVm(Component):
    """A VM with GPUs. A change of machine type stops and restarts it with its disk; one of image, network or zone
    replaces it. The update ends when the VM runs, not when its driver works: the guest attribute in `ready` tells."""

    TYPE = "accel:gcp:GpuVm"

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    machine_type: pulumi.Output[str]
    accelerator: pulumi.Output[str]
    gpus: pulumi.Output[int]
    ready: pulumi.Output[str]
    """Guest attribute, namespace and key: `waiting`, the number of GPUs, or `driver-not-ready`."""
    ssh_command: pulumi.Output[str]

    def __init__(self, name: str, args: GpuVmArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        made = gcp.compute.Instance(
            name,
            zone=spec.zone,
            boot_disk=gcp.compute.InstanceBootDiskArgs(
                auto_delete=True,
                initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                    image=spec.image, size=spec.disk.size_gib, type=spec.disk_type
                ),
            ),
            allow_stopping_for_update=True,
            resource_policies=args.placement or spec.placement,
            **parts(spec, args),
            opts=self.child(),
        )
        self.name = made.name
        self.zone = pulumi.Output.from_input(spec.zone)
        self.machine_type = pulumi.Output.from_input(spec.machine)
        self.accelerator = pulumi.Output.from_input(spec.accelerator_type)
        self.gpus = pulumi.Output.from_input(spec.gpus)
        self.ready = pulumi.Output.from_input(READY)
        self.ssh_command = map_present(made.name, lambda known: ssh_command(known, args.project, spec.zone))
        self.finish()


def ssh_command(name: str, project: str, zone: str) -> str:
    """Return a command that connects through IAP, which needs no external address."""
    return f"gcloud compute ssh {name} --project={project} --zone={zone} --tunnel-through-iap"

"""Many GPU VMs of one kind: an instance template and a managed instance group in one zone."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import vms

from ..base import Component
from ..sdk import gcp
from .gpu_vm_parts import parts
from .gpu_vm_spec import GpuVmSpec
from .timeouts import long
from .vm_scripts import READY
from .vm_spec import VmArgs


class GpuVmGroupSpec(GpuVmSpec):
    """A number of VMs, each with the settings of a single one."""

    size: int = Field(ge=0)
    compact_placement: bool = Field(
        default=False, description="Place the VMs close together, by a policy that the stack creates"
    )

    def check(self) -> list[Finding]:
        found = super().check()
        if any(each.severity == "reject" for each in found):
            return found
        return found + vms.group(self.machine, self.capacity, compact=self.compact_placement or bool(self.placement))


@dataclass(frozen=True, kw_only=True)
class GpuVmGroupArgs(VmArgs):
    """The spec and the arguments of VmArgs. `placement` is the policy that the spec names, if the stack creates it. A
    workload policy applies to the group, any other to its VMs."""

    spec: GpuVmGroupSpec
    placement: pulumi.Input[str] | None = None
    workload: bool = False


class GpuVmGroup(Component):
    """VMs with GPUs that are recreated under their own names when they fail or are preempted. A change of anything but
    the size recreates them, one at a time. The update waits until all run, since the old template can only be deleted
    then. If they are out of stock, it fails after an hour, and the group keeps trying."""

    TYPE = "accel:gcp:GpuVmGroup"

    name: pulumi.Output[str]
    zone: pulumi.Output[str]
    size: pulumi.Output[int]
    machine_type: pulumi.Output[str]
    accelerator: pulumi.Output[str]
    gpus: pulumi.Output[int]
    """Number per VM."""
    ready: pulumi.Output[str]
    """Guest attribute of each VM, namespace and key: `waiting`, the number of GPUs, or `driver-not-ready`."""

    def __init__(self, name: str, args: GpuVmGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args.spec, opts)
        spec = args.spec.settled()
        template = gcp.compute.InstanceTemplate(
            name,
            disks=[
                gcp.compute.InstanceTemplateDiskArgs(
                    boot=True,
                    auto_delete=True,
                    source_image=spec.image,
                    disk_size_gb=spec.disk.size_gib,
                    disk_type=spec.disk_type,
                )
            ],
            resource_policies=_placement(self, name, spec, args),
            **parts(spec, args),
            opts=self.child(),
        )
        made = gcp.compute.InstanceGroupManager(
            name,
            project=args.project,
            zone=spec.zone,
            base_instance_name=name,
            target_size=spec.size,
            versions=[gcp.compute.InstanceGroupManagerVersionArgs(instance_template=template.self_link)],
            update_policy=gcp.compute.InstanceGroupManagerUpdatePolicyArgs(
                type="PROACTIVE",
                minimal_action="REPLACE",
                # GPUs are scarce: no additional VM during an update.
                max_surge_fixed=0,
                max_unavailable_fixed=1,
            ),
            resource_policies=gcp.compute.InstanceGroupManagerResourcePoliciesArgs(workload_policy=args.placement)
            if args.workload
            else None,
            wait_for_instances=True,
            wait_for_instances_status="UPDATED",
            opts=self.child(custom_timeouts=long()),
        )
        self.name = made.name
        self.zone = pulumi.Output.from_input(spec.zone)
        self.size = pulumi.Output.from_input(spec.size)
        self.machine_type = pulumi.Output.from_input(spec.machine)
        self.accelerator = pulumi.Output.from_input(spec.accelerator_type)
        self.gpus = pulumi.Output.from_input(spec.gpus)
        self.ready = pulumi.Output.from_input(READY)
        self.finish()


def _placement(self: Component, name: str, spec: GpuVmGroupSpec, args: GpuVmGroupArgs) -> pulumi.Input[str] | None:
    if args.workload:
        return None
    if not spec.compact_placement:
        return args.placement or spec.placement
    policy = gcp.compute.ResourcePolicy(
        f"{name}-placement",
        project=args.project,
        region=spec.region,
        group_placement_policy=gcp.compute.ResourcePolicyGroupPlacementPolicyArgs(collocation="COLLOCATED"),
        opts=self.child(),
    )
    return policy.id

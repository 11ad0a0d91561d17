"""The fields that reservations of GPU machines and requests for future ones share."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from accel.diagnostics.findings import Finding
from accel.rules.gcp import capacity, vms
from accel.rules.gke import nodes

from .gpu_machine import GpuMachineSpec

LOCAL_SSD_GIB = 375


class ReservedSpec(GpuMachineSpec):
    """A number of machines of one kind in one zone, kept for anyone who may use them."""

    count: int = Field(ge=1, description="Number of machines")
    local_ssds: int = Field(
        default=0, ge=0, description="Number of local SSDs of each machine; built-in ones need not be given"
    )
    min_cpu_platform: str | None = Field(
        default=None, description='Minimum CPU platform, such as "Intel Cascade Lake"; for N1 only'
    )
    specific: bool = Field(
        default=True,
        description="Restrict the reservation to machines that name it. false: machines that name no reservation use "
        "it as well",
    )
    share_with: list[str] = Field(
        default_factory=list, description="Ids of other projects of the organization that may use the reservation"
    )
    description: str | None = None
    spot: bool = Field(default=False, description="Refused if true: Spot VMs use no reservation")
    protect: bool = Field(default=False, description="Protect the reservation from deletion and replacement by Pulumi")

    @property
    def sharing(self) -> dict[str, Any]:
        """Return `shareSettings` of either API, by the argument's name; empty if the reservation is not shared."""
        if not self.share_with:
            return {}
        maps = [{"id": project, "project_id": project} for project in self.share_with]
        return {"share_settings": {"share_type": "SPECIFIC_PROJECTS", "project_maps": maps}}

    @property
    def properties(self) -> dict[str, Any]:
        """Return `instanceProperties` of either API. Built-in GPUs come with the machine type."""
        said: dict[str, Any] = {"machine_type": self.machine, "min_cpu_platform": self.min_cpu_platform}
        if self.attached:
            said["guest_accelerators"] = [{"accelerator_type": self.accelerator_type, "accelerator_count": self.gpus}]
        if self.local_ssds:
            said["local_ssds"] = [{"disk_size_gb": LOCAL_SSD_GIB, "interface": "NVME"}] * self.local_ssds
        return said

    def check(self) -> list[Finding]:
        found = vms.gpu_machine(self.machine_type, self.accelerator, self.accelerator_count, self.zone, "reservation")
        found += capacity.spot(self.spot, "reservation") + capacity.share(self.share_with)
        if self.local_ssds and not any(each.severity == "reject" for each in found):
            found += nodes.local_ssds(self.local_ssds, self.machine, "local_ssds")
        return found

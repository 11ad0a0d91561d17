"""The spec that a GPU VM and a group of them share, and its translation to Compute Engine's terms."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from accel.catalog.gcp_images import CURRENT, DEEP_LEARNING
from accel.diagnostics.findings import Finding
from accel.rules.gcp import images, vms
from accel.rules.gke import nodes

from ..base import Spec
from .gpu_machine import GpuMachineSpec
from .pool_spec import Capacity, ReservationSpec
from .vm_scripts import AUTHORS_SCRIPT, checkpoint_script, shutdown_script, startup_script
from .vm_spec import VmSpec, metadata


def today() -> date:
    """Return the day that the age of images is checked against."""
    return date.today()


class BootDiskSpec(Spec):
    """The boot disk, which is deleted with the VM."""

    size_gib: int = Field(default=200, ge=10)
    type: str | None = Field(default=None, description="Disk type. Default: the one that the machine type needs")


class CheckpointSpec(Spec):
    """The unit or process that gets SIGTERM before the VM ends, and the time to wait for it."""

    unit: str | None = Field(
        default=None, description="Name of the systemd unit that gets SIGTERM, such as training.service"
    )
    pid_file: str | None = Field(
        default=None, pattern=r"^/", description="File that contains the id of the process group that gets SIGTERM"
    )
    wait_s: int | None = Field(
        default=None, ge=1, description="Seconds to wait for the unit or process to end. Default: as long as the VM has"
    )


class GpuVmSpec(GpuMachineSpec, VmSpec):
    """One VM with GPUs, named by its machine type or by accelerator and number."""

    image_family: str = CURRENT
    image_project: str = DEEP_LEARNING
    install_driver: bool = Field(
        default=True, description="Install the GPU driver. false: the image contains it, or nothing needs it"
    )
    driver_wait_s: int = Field(
        default=1800,
        ge=0,
        description="Seconds to wait for the GPU driver, after which the VM is reported as driver-not-ready",
    )
    disk: BootDiskSpec = BootDiskSpec()
    capacity: Capacity = "on-demand"
    reservation: ReservationSpec | None = None
    reservation_bound: bool = Field(
        default=False,
        description="End the VM together with its reservation, which is one of calendar mode or of dense deployment",
    )
    termination_action: Literal["STOP", "DELETE"] | None = Field(
        default=None, description="Action when the VM ends by itself. Default: STOP, or DELETE for flex-start"
    )
    max_run_duration_s: int | None = Field(
        default=None, ge=30, description="Maximum run time in seconds; required for flex-start. Default: no limit"
    )
    preemption_notice_s: int | None = Field(
        default=None, description="Seconds between notice and preemption of Spot VMs: 120. Default: 0"
    )
    automatic_restart: bool | None = Field(
        default=None, description="Restart the VM if Google stops it. Default: true, or false for Spot and flex-start"
    )
    on_host_maintenance: str = Field(
        default="TERMINATE",
        description="Action at host maintenance; only TERMINATE, since VMs with GPUs are not live-migrated",
    )
    checkpoint: CheckpointSpec | None = None
    placement: str | None = Field(
        default=None,
        description="Placement policy: a key of the stack's placements, or "
        "projects/<p>/regions/<r>/resourcePolicies/<name>",
    )

    @property
    def image(self) -> str:
        return f"projects/{self.image_project}/global/images/family/{self.image_family}"

    @property
    def disk_type(self) -> str:
        return self.disk.type or nodes.disk_type(self.machine) or "pd-balanced"

    @property
    def ending(self) -> str | None:
        """Return the termination action for the API; None where nothing ends the VM by itself."""
        if self.capacity == "flex-start":
            return "DELETE"
        ends = self.capacity == "spot" or self.max_run_duration_s is not None
        return (self.termination_action or "STOP") if ends else None

    @property
    def all_metadata(self) -> dict[str, str]:
        script = None
        if self.checkpoint:
            most = vms.most_wait_s(self.capacity, self.preemption_notice_s)
            each = self.checkpoint
            script = checkpoint_script(each.unit, each.pid_file, each.wait_s or most)
        here = self.install_driver and self.image_project in images.UBUNTU
        return metadata(
            {**self.metadata, **({AUTHORS_SCRIPT: self.startup_script} if self.startup_script else {})},
            enable_guest_attributes="TRUE",
            install_nvidia_driver="True" if self.install_driver and self.image_project == DEEP_LEARNING else None,
            startup_script=startup_script(
                self.gpus,
                wait_s=self.driver_wait_s,
                driver=here,
                checkpoint=script if self.preemption_notice_s else None,
            ),
            shutdown_script=shutdown_script(script) if script else None,
        )

    def check(self) -> list[Finding]:
        found = vms.gpu_machine(self.machine_type, self.accelerator, self.accelerator_count, self.zone, self.capacity)
        known = not any(each.severity == "reject" for each in found)
        found += images.family(self.image_family, self.image_project, today=today())
        found += images.driver(self.image_project, install=self.install_driver)
        found += vms.maintenance(self.on_host_maintenance) + vms.secure_boot(self.secure_boot)
        found += vms.provisioning(
            self.capacity,
            reservation=self.reservation.name if self.reservation else None,
            bound=self.reservation_bound,
            automatic_restart=self.automatic_restart,
            termination_action=self.termination_action,
            max_run_duration_s=self.max_run_duration_s,
            notice_s=self.preemption_notice_s,
        )
        if self.checkpoint:
            each = self.checkpoint
            found += vms.checkpoint(each.unit, each.pid_file, each.wait_s, self.capacity, self.preemption_notice_s)
        if known:
            found += vms.boot_disk(self.disk.type, self.machine)
        if known and not self.attached:
            found += images.architecture(self.image_project, self.machine)
        return found + self.vm_findings()

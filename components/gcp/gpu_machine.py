"""A machine with GPUs, named by its type or by accelerator and number."""

from __future__ import annotations

import math

from pydantic import Field

from accel.catalog import accelerator as accelerator_named
from accel.catalog import machine as machine_named
from accel.catalog.gpu_attachments import n1
from accel.rules.gcp import vms

from ..base import Spec


class GpuMachineSpec(Spec):
    """One machine with GPUs in a zone."""

    zone: str
    machine_type: str | None = Field(
        default=None, description="Machine type. Default: the smallest with the accelerators"
    )
    accelerator: str | None = Field(
        default=None, description="Accelerator type, such as nvidia-l4; with an N1 machine, the one to attach"
    )
    accelerator_count: int | None = Field(
        default=None, ge=1, description="Number of accelerators. Default: 1, or that of the machine type"
    )

    @property
    def machine(self) -> str:
        return vms.gpu_machine_name(self.machine_type, self.accelerator, self.accelerator_count, self.zone)

    @property
    def attached(self) -> bool:
        """Return whether the GPUs are attached to an N1 machine; others have theirs built in."""
        return n1(self.machine) is not None

    @property
    def accelerator_type(self) -> str:
        """Return the type in Google's spelling."""
        name = (self.accelerator or "") if self.attached else machine_named("gcp", self.machine).accelerator
        return accelerator_named(name).gcp_type

    @property
    def gpus(self) -> int:
        """Return the number that the machine sees; a share of one counts as one."""
        if self.attached:
            return self.accelerator_count or 1
        return math.ceil(machine_named("gcp", self.machine).accelerator_count)

    @property
    def region(self) -> str:
        return self.zone.rpartition("-")[0]

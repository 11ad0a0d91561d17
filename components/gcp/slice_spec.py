"""The TPU slice that a stack requests, and the rules about it."""

from __future__ import annotations

from pydantic import Field

from accel.catalog.tpu import Slice, tpu
from accel.diagnostics.findings import Finding
from accel.rules.gcp import tpu as gcp_tpu
from accel.rules.gcp import tpu_runtimes, tpu_vms

from .vm_spec import VmSpec


class SliceSpec(VmSpec):
    """The type of a slice, its topology and its software version."""

    accelerator_type: str = Field(
        description="Accelerator type, such as v5litepod-8, or a generation, such as v5p, with a topology"
    )
    topology: str | None = Field(
        default=None, description="Chips along each side, such as 2x2x4. Default: that of the type"
    )
    runtime_version: str | None = Field(
        default=None, description="TPU software version. Default: that of the generation"
    )

    @property
    def slice(self) -> Slice:
        return tpu(self.accelerator_type, self.topology)

    @property
    def runtime(self) -> str:
        return self.runtime_version or next(iter(self.slice.runtime_versions))

    def slice_findings(self) -> list[Finding]:
        return slice_findings(self.accelerator_type, self.topology, self.runtime_version, self.zone)


def slice_findings(
    accelerator_type: str, topology: str | None, runtime_version: str | None, zone: str
) -> list[Finding]:
    found = gcp_tpu.accelerator_type(accelerator_type, topology)
    if any(each.severity == "reject" for each in found):
        return found
    name = tpu(accelerator_type, topology).name
    if runtime_version is not None:
        found += tpu_runtimes.runtime(runtime_version, name)
    return found + tpu_vms.zone(zone, name)

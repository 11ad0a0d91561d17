"""Slices of TPUs as worker pools: v2 and v3 by cores, newer ones by a topology.

Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute#tpus
"""

from dataclasses import dataclass
from typing import Any

from accel.catalog import UnknownName, vertex
from accel.catalog.tpu import NoSuchSlice, Slice, generation_of, tpu_pool
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.gcp import gpus, tpu, tpu_jobs
from accel.rules.vertex import machines

from ..google_machines import Need

OLD = ("tpu-v2", "tpu-v3")
"""Asked for by cores."""


@dataclass(frozen=True)
class PoolSlice:
    """A slice, whose `shape` is what the catalogue has of it. v2 and v3 have `kind` and `cores`, newer ones a
    `topology`."""

    machine: str
    hosts: int
    kind: str | None = None
    cores: int = 0
    topology: str | None = None
    shape: Slice | None = None

    @property
    def name(self) -> str:
        """Its name in the catalogue, or the machine's."""
        return self.shape.name if self.shape else self.machine

    def spec(self) -> dict[str, Any]:
        """Return its MachineSpec."""
        if self.kind:
            names = vertex.accelerator_names()
            return {"machineType": self.machine, "acceleratorType": names[self.kind], "acceleratorCount": self.cores}
        return {"machineType": self.machine, "tpuTopology": self.topology}

    def host_size(self, cpus: int | None, memory_mib: int | None) -> list[Finding]:
        """Check what a job asks of each host."""
        return tpu_jobs.host_size(self.shape, cpus, memory_mib) if self.shape else []


def is_tpu(need: Need) -> bool:
    """Return whether a pool asks for TPUs."""
    return vertex.machine_types().get(need.machine_type or "") == "tpu" or _generation(need.gpu) is not None


def choose(need: Need, topology: str | None, diagnostics: Diagnostics) -> PoolSlice | None:
    """Return the slice that a pool asks for. Add what rules it out, and return None."""
    key = _generation(need.gpu)
    kind = need.gpu if need.gpu and gpus.find_accelerator(need.gpu) else key
    if not diagnostics.add_errors(tpu.vertex(need.machine_type or "", kind)):
        return None
    if key in OLD or need.machine_type == vertex.CLOUD_TPU:
        found = _by_cores(key, need, diagnostics)
    else:
        found = _by_topology(need, topology, diagnostics)
    if found:
        diagnostics.add(found.host_size(need.cpus, need.memory_mib))
    return found


def _generation(kind: str | None) -> str | None:
    """Return the catalogue's key of a TPU, by its own name, Vertex AI's, or that of a slice."""
    if kind is None:
        return None
    found = gpus.find_accelerator(kind)
    if found:
        return found.name if found.is_tpu else None
    try:
        return generation_of(kind).accelerator
    except UnknownName:
        return None


def _by_cores(key: str | None, need: Need, diagnostics: Diagnostics) -> PoolSlice | None:
    if need.gpu is None or key is None:
        diagnostics.add([machines.TPU_CORES.finding("accelerator", "is missing", "write v2-8 or v3-8")])
        return None
    shape = None
    if gpus.find_accelerator(need.gpu) is None:
        shape = tpu.find_slice(need.gpu)
        if shape is None:
            diagnostics.add(tpu.accelerator_type(need.gpu, api="gke", field="accelerator"))
            return None
    cores = shape.cores if shape else need.gpus or 1
    if not diagnostics.add(machines.tpu(vertex.CLOUD_TPU, key, cores, None)):
        return None
    return PoolSlice(vertex.CLOUD_TPU, shape.hosts if shape else max(1, cores // 8), key, cores, shape=shape)


def _by_topology(need: Need, topology: str | None, diagnostics: Diagnostics) -> PoolSlice | None:
    name = _slice_name(need.gpu)
    wanted = tpu.find_slice(name, topology) if name else None
    if need.machine_type is None and wanted is None:
        diagnostics.add(tpu.accelerator_type(name, topology, api="gke", field="accelerator"))
        return None
    machine = need.machine_type or (wanted.machine_type if wanted else None) or ""
    sides = topology or (wanted.topology if wanted else None)
    if not diagnostics.add_errors(machines.tpu(machine, None, None, sides)):
        return None
    try:
        shape = tpu_pool(machine, str(sides))
    except (UnknownName, NoSuchSlice):
        diagnostics.add(tpu.pool(machine, str(sides)))
        return None
    if wanted and (wanted.generation != shape.generation or wanted.chips != shape.chips):
        message = f"is {need.gpu}, and {machine} with {sides} is {shape.name}"
        diagnostics.add([machines.TPU_SHAPE.finding("accelerator", message, "leave one of the two out")])
        return None
    if not diagnostics.add(tpu_jobs.hosts(shape, 1, 1, need.gpus or 1)):
        return None
    return PoolSlice(machine, shape.hosts, topology=sides, shape=shape)


def _slice_name(kind: str | None) -> str | None:
    """Return a name that slices have: that of a generation, for one by which Vertex AI knows it."""
    found = gpus.find_accelerator(kind) if kind else None
    return found.name.removeprefix("tpu-") if found else kind

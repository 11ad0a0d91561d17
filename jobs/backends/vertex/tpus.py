"""A worker pool of TPUs, which is one slice.

Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute#tpus
"""

from dataclasses import dataclass
from typing import Any

from accel.catalog import UnknownName, vertex
from accel.catalog.tpu import NoSuchSlice, Slice, generation_of, tpu_pool
from accel.rules import Finding
from accel.rules.gcp import gpus, tpu, tpu_jobs
from accel.rules.vertex import machines

OLD = ("tpu-v2", "tpu-v3")
"""Asked for by cores."""


@dataclass(frozen=True)
class Tpu:
    """A slice: `made` is what is known of it. v2 and v3 have `kind` and `cores`, newer ones a `topology`."""

    machine: str
    hosts: int
    kind: str | None = None
    cores: int = 0
    topology: str | None = None
    made: Slice | None = None

    @property
    def slice(self) -> str:
        """Its name in the catalogue, or the machine's."""
        return self.made.name if self.made else self.machine

    def spec(self, machine: str) -> dict[str, Any]:
        """MachineSpec."""
        if self.kind:
            names = vertex.accelerator_names()
            return {"machineType": machine, "acceleratorType": names[self.kind], "acceleratorCount": self.cores}
        return {"machineType": machine, "tpuTopology": self.topology}

    def size(self, cpus: int | None, memory_mib: int | None) -> list[Finding]:
        """What a job asks of each host."""
        return tpu_jobs.host_size(self.made, cpus, memory_mib) if self.made else []


def is_tpu(machine_type: str | None, kind: str | None) -> bool:
    """Whether it is TPUs that a pool asks for."""
    return vertex.machine_types().get(machine_type or "") == "tpu" or _generation(kind) is not None


def choose(
    machine_type: str | None, kind: str | None, count: int, topology: str | None
) -> tuple[list[Finding], Tpu | None]:
    """What the rules say, and the slice, if they let it through."""
    key = _generation(kind)
    said = tpu.vertex(machine_type or "", kind if kind and gpus.find_accelerator(kind) else key)
    if any(finding.severity == "reject" for finding in said):
        return said, None
    if key in OLD or machine_type == vertex.CLOUD_TPU:
        said, made = _by_cores(key, kind, count)
    else:
        said, made = _by_topology(machine_type, kind, count, topology)
    refused = any(finding.severity == "reject" for finding in said)
    return said, None if refused else made


def _generation(kind: str | None) -> str | None:
    """The catalogue's key of a TPU, by its own name, Vertex AI's, or that of a slice."""
    if kind is None:
        return None
    found = gpus.find_accelerator(kind)
    if found:
        return found.name if found.is_tpu else None
    try:
        return generation_of(kind).accelerator
    except UnknownName:
        return None


def _by_cores(key: str | None, kind: str | None, count: int) -> tuple[list[Finding], Tpu | None]:
    if kind is None or key is None:
        return [machines.TPU_CORES.finding("accelerator", "is missing", "write v2-8 or v3-8")], None
    sized = gpus.find_accelerator(kind) is None
    made = tpu.find_slice(kind) if sized else None
    if sized and made is None:
        return tpu.accelerator_type(kind, api="gke", field="accelerator"), None
    cores = made.cores if made else count
    said = machines.tpu(vertex.CLOUD_TPU, key, cores, None)
    return said, Tpu(vertex.CLOUD_TPU, made.hosts if made else max(1, cores // 8), key, cores, made=made)


def _by_topology(
    machine_type: str | None, kind: str | None, count: int, topology: str | None
) -> tuple[list[Finding], Tpu | None]:
    named = _named(kind)
    made = tpu.find_slice(named, topology) if named else None
    if machine_type is None and made is None:
        return tpu.accelerator_type(named, topology, api="gke", field="accelerator"), None
    machine = machine_type or (made.machine_type if made else None) or ""
    shape = topology or (made.topology if made else None)
    said = machines.tpu(machine, None, None, shape)
    if any(finding.severity == "reject" for finding in said):
        return said, None
    try:
        found = tpu_pool(machine, str(shape))
    except (UnknownName, NoSuchSlice):
        return tpu.pool(machine, str(shape)), None
    if made and (made.generation != found.generation or made.chips != found.chips):
        message = f"is {kind}, and {machine} with {shape} is {found.name}"
        return [machines.TPU_SHAPE.finding("accelerator", message, "leave one of the two out")], None
    return tpu_jobs.hosts(found, 1, 1, count), Tpu(machine, found.hosts, topology=shape, made=found)


def _named(kind: str | None) -> str | None:
    """A name that slices have: that of a generation, for one by which Vertex AI knows it."""
    found = gpus.find_accelerator(kind) if kind else None
    return found.name.removeprefix("tpu-") if found else kind

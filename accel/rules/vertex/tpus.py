"""TPU pools on Vertex AI: the slice given by machine type, accelerator and topology together. v2 and v3 are requested
by cores, newer ones by a topology. Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute#tpus"""

from dataclasses import dataclass

from accel.catalog import Accelerator
from accel.catalog import vertex as offered
from accel.catalog.tpu import Slice, find_generation
from accel.diagnostics.findings import Finding
from accel.rules.gcp import tpu, tpu_jobs
from accel.rules.gcp.gpus import find_accelerator
from accel.rules.table import rule
from accel.rules.vertex.machines import machine_type as check_machine_type

GENERATION = rule("gcp.tpu.vertex")
MACHINE = rule("gcp.tpu.vertex-machine")
SHAPE = rule("vertex.tpu.topology")
CORES = rule("vertex.tpu.cores")

_BY_CORES = ("tpu-v2", "tpu-v3")
_GENERATIONS = (*_BY_CORES, "tpu-v5litepod", "tpu-v6e", "tpu7x")


@dataclass(frozen=True)
class TpuNeed:
    """The TPUs that a pool requests; None if unset. `written` is the accelerator as in the job, `generation` its
    catalogue name, `slice_name` the name of its slices (v5p-8, or v5p alone). `sized` says that it may have a size."""

    machine_type: str | None
    written: str | None
    count: int
    topology: str | None
    generation: str | None
    slice_name: str | None
    sized: bool


@dataclass(frozen=True)
class PoolSlice:
    """A slice. `shape` is its entry in the catalogue. v2 and v3 have `kind` and `cores`, newer ones a `topology`."""

    machine: str
    hosts: int
    kind: str | None = None
    cores: int = 0
    topology: str | None = None
    shape: Slice | None = None

    @property
    def name(self) -> str:
        """In the catalogue, or the machine's."""
        return self.shape.name if self.shape else self.machine

    def host_size(self, cpus: int | None, memory_mib: int | None) -> list[Finding]:
        return tpu_jobs.host_size(self.shape, cpus, memory_mib) if self.shape else []


def need_of(
    machine_type: str | None, written: str | None, count: int, topology: str | None, kind: Accelerator | None
) -> TpuNeed | None:
    """Return None if it is not a TPU. The name is the accelerator's own or Vertex AI's (`kind`), or a slice's."""
    if kind:
        generation, name = kind.name if kind.is_tpu else None, kind.name.removeprefix("tpu-")
    else:
        of_slice = find_generation(written) if written else None
        generation, name = of_slice.accelerator if of_slice else None, written
    if generation is None and offered.machine_types().get(machine_type or "") != "tpu":
        return None
    return TpuNeed(machine_type, written, count, topology, generation, name, sized=kind is None)


def resolve_slice(wanted: TpuNeed) -> tuple[PoolSlice | None, list[Finding]]:
    machine_type = wanted.machine_type or ""
    said = wanted.generation if wanted.sized else wanted.written
    if wrong := _trained(machine_type, wanted.generation, said):
        return None, wrong
    by_cores = wanted.generation in _BY_CORES or machine_type == offered.CLOUD_TPU
    if by_cores and wanted.generation is None:
        return None, [CORES.finding("accelerator", "is missing", "write v2-8 or v3-8")]
    if by_cores and not wanted.sized:
        return _by_cores(wanted, None)
    topology = None if by_cores else wanted.topology
    named, findings = tpu.resolve_slice(wanted.slice_name, topology, api="gke", field="accelerator")
    if named is None and (by_cores or wanted.machine_type is None):
        return None, findings
    return _by_cores(wanted, named) if by_cores else _by_topology(wanted, named)


def _by_cores(wanted: TpuNeed, named: Slice | None) -> tuple[PoolSlice | None, list[Finding]]:
    cores = named.cores if named else wanted.count
    if wrong := _cores(cores):
        return None, wrong
    hosts = named.hosts if named else max(1, cores // 8)
    return PoolSlice(offered.CLOUD_TPU, hosts, wanted.generation, cores, shape=named), []


def _by_topology(wanted: TpuNeed, named: Slice | None) -> tuple[PoolSlice | None, list[Finding]]:
    machine = wanted.machine_type or (named.machine_type if named else None) or ""
    sides = wanted.topology or (named.topology if named else None)
    if wrong := _topology(machine, sides):
        return None, wrong
    shape, findings = tpu.resolve_pool(machine, str(sides))
    if shape is None:
        return None, findings
    if named and (named.generation != shape.generation or named.chips != shape.chips):
        message = f"is {wanted.written}, and {machine} with {sides} is {shape.name}"
        return None, [SHAPE.finding("accelerator", message, "leave one of the two out")]
    if wrong := tpu_jobs.hosts(shape, 1, 1, wanted.count):
        return None, wrong
    return PoolSlice(machine, shape.hosts, topology=sides, shape=shape), []


def spec(name: str, accelerator: str | None, count: int | None, topology: str | None) -> list[Finding]:
    """Check cloud-tpu with TPU_V2 or TPU_V3 and cores, or a newer host with a topology."""
    kind = find_accelerator(accelerator) if accelerator is not None else None
    if kind and kind.is_tpu and (wrong := _trained(name, kind.name, accelerator)):
        return wrong
    return _cores(count) if name == offered.CLOUD_TPU else _topology(name, topology)


def _trained(machine_type: str, generation: str | None, written: str | None) -> list[Finding]:
    if generation is not None and generation not in _GENERATIONS:
        fix = "use ct5lp-hightpu-4t with topology 2x2, or a TPU VM such as v4-8"
        return [GENERATION.finding("accelerator", f"is {written}, on which Vertex AI does not train", fix)]
    if generation is not None and machine_type == offered.CLOUD_TPU and generation not in _BY_CORES:
        message = f'is "cloud-tpu", which goes with TPU_V2 and TPU_V3, not with {written}'
        fix = "use ct5lp-hightpu-4t or ct6e-standard-4t with a topology"
        return [MACHINE.finding("machine_type", message, fix)]
    return []


def _cores(count: int | None) -> list[Finding]:
    if count is not None and (count == 8 or (count and count % 32 == 0)):
        return []
    message = "is missing" if count is None else f"is {count}, and TPU v2 and v3 are asked for by cores"
    return [CORES.finding("accelerator_count", message, "write 8, 32 or a multiple of 32")]


def _topology(machine: str, topology: str | None) -> list[Finding]:
    shapes = offered.TOPOLOGIES.get(machine)
    if shapes is None or topology in shapes:
        return [] if shapes else check_machine_type(machine)
    said = "is missing" if topology is None else f'is "{topology}", and {machine} has {", ".join(shapes)}'
    return [SHAPE.finding("topology", said, f"write {' or '.join(shapes[:3])}")]

"""The machine of a worker pool: of GPUs, or of TPUs, where a pool is one slice.

Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute#tpus
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accel.catalog import NotOffered, UnknownName, accelerator, vertex
from accel.catalog.attached import attached
from accel.catalog.gke_machines import has_size, node_machine, series
from accel.catalog.machines import NoMachine, machines_for
from accel.catalog.places import where
from accel.catalog.tpu import NoSuchSlice, Slice, generation_of, tpu_pool
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import did_you_mean
from accel.rules import Finding
from accel.rules.gcp import gpu_vm_jobs, gpus, tpu, tpu_jobs
from accel.rules.gcp import gpus as gcp_gpus
from accel.rules.vertex import legacy, machines

from ...model.fields import Accelerator

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


VCPUS_A_GPU = 4
"""Of an N1 machine, where a job does not say: a choice of ours, a vCPU less than the smallest G2 has a GPU."""
CPUS, MEMORY_MIB = 4, 15 * 1024
"""Of a machine without GPUs, where a job says neither: an n1-standard-4, of whose memory Vertex AI may take 40 %.
Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/understanding-training-service
"""
MEMORY_A_CPU_MIB = 3840
"""Where a job says how many vCPUs alone: as much as an n1-standard has."""


@dataclass(frozen=True)
class Wanted:
    """What a pool asks for. `names`: the job file's, for the fields of the rules."""

    machine_type: str | None
    accelerator: Accelerator | None
    topology: str | None
    cpus: int | None
    memory_mib: int | None
    names: Mapping[str, str]


@dataclass(frozen=True)
class VertexChoice:
    """A machine, with the GPUs in it by the catalogue's name, or a slice of TPUs."""

    machine: str
    gpu: str | None = None
    gpus: int = 0
    tpu: Tpu | None = None

    @property
    def key(self) -> str:
        """The machine, and what is attached to it: n1-standard-8+nvidia-tesla-t4x1."""
        return f"{self.machine}+{self.gpu}x{self.gpus}" if self.attached else self.machine

    @property
    def attached(self) -> bool:
        return bool(self.gpu) and self.machine.startswith("n1-")

    def spec(self) -> dict[str, Any]:
        """MachineSpec."""
        if self.tpu:
            return self.tpu.spec(self.machine)
        made: dict[str, Any] = {"machineType": self.machine}
        if self.gpu:
            made |= {"acceleratorType": vertex.accelerator_names()[self.gpu], "acceleratorCount": self.gpus}
        return made

    def places(self) -> dict[str, tuple[str, ...]]:
        """The zones by region that are known to have it."""
        name = f"n1+{self.gpu}x{self.gpus}" if self.attached else self.tpu.slice if self.tpu else self.machine
        try:
            return where("gcp", name) if self.gpu or self.tpu else {}
        except UnknownName:
            return {}


@dataclass(frozen=True)
class _Candidate:
    choice: VertexChoice
    vcpus: int
    memory_mib: int


def choose(wanted: Wanted, target: VertexTarget, diagnostics: Diagnostics) -> VertexChoice | None:
    """None where `diagnostics` got the reason; others are added to it too."""
    found = _chosen(wanted, target, diagnostics)
    if found:
        said = machines.region(found.key, target.region, found.places())
        diagnostics.add(said, wanted.names)
    return found


def _chosen(wanted: Wanted, target: VertexTarget, diagnostics: Diagnostics) -> VertexChoice | None:
    name, kind = wanted.machine_type, wanted.accelerator.type if wanted.accelerator else None
    if name and target.machine_types and name not in target.machine_types:
        near = did_you_mean(name, target.machine_types)
        diagnostics.error(f'{wanted.names["machine_type"]}: "{name}" is none of the target\'s machine types{near}')
        return None
    if _is_tpu(name, kind):
        said, tpu = _choose_tpu(name, kind, wanted.accelerator.count if wanted.accelerator else 1, wanted.topology)
        diagnostics.add(said, wanted.names)
        if tpu:
            diagnostics.add(tpu.size(wanted.cpus, wanted.memory_mib), wanted.names)
        return VertexChoice(tpu.machine, tpu=tpu) if tpu else None
    if wanted.topology:
        diagnostics.error(f"{wanted.names['topology']}: is of TPUs, and the job asks for none")
    if wanted.accelerator and kind is None and name is None:
        diagnostics.error(f"{wanted.names['accelerator']}: is missing, and so is {wanted.names['machine_type']}")
        return None
    if name:
        return _given(wanted, name, kind, target, diagnostics)
    if kind and wanted.accelerator:
        having = _with_gpus(wanted, kind, wanted.accelerator.count, target, diagnostics)
    else:
        having = _plain(wanted, target, diagnostics)
    return _smallest(wanted, having, diagnostics) if having else None


def _given(
    wanted: Wanted, name: str, kind: str | None, target: VertexTarget, diagnostics: Diagnostics
) -> VertexChoice | None:
    """The machine that is named, with the GPUs beside it or in it."""
    count = wanted.accelerator.count if wanted.accelerator else None
    if not diagnostics.add(machines.pool(name, kind, count), wanted.names):
        return None
    size = _sized(name)
    if name.startswith("n1-"):
        choice = VertexChoice(name, accelerator(kind).name, count or 1) if kind else VertexChoice(name)
        if count and not kind:
            diagnostics.error(f"{wanted.names['accelerator']}: is missing, and {name} has no GPUs of its own")
    else:
        choice = size.choice if size else VertexChoice(name)
        if count and not kind and count != choice.gpus:
            diagnostics.error(f"{wanted.names['accelerator_count']}: is {count}, and {name} has {choice.gpus} GPUs")
    if size:
        larger = _larger(wanted, choice, target)
        said = machines.fit(name, size.vcpus, size.memory_mib, wanted.cpus, wanted.memory_mib, larger)
        diagnostics.add(said, wanted.names)
    return choice


def _larger(wanted: Wanted, choice: VertexChoice, target: VertexTarget) -> list[str]:
    """Machines of the same series with the same GPUs that hold what is asked for, the smallest first, in words."""
    same: list[_Candidate] = []
    for name in target.machine_types or vertex.machine_types():
        size = _sized(name)
        if size is None or series(name) != series(choice.machine):
            continue
        gpu, gpus = (choice.gpu, choice.gpus) if choice.attached else (size.choice.gpu, size.choice.gpus)
        takes = not choice.gpu or not choice.attached or _takes(name, choice.gpu, choice.gpus)
        holds = size.vcpus >= (wanted.cpus or 0) and size.memory_mib >= (wanted.memory_mib or 0)
        if (gpu, gpus) == (choice.gpu, choice.gpus) and takes and holds:
            same.append(size)
    same.sort(key=lambda each: (each.vcpus, each.memory_mib))
    return [f"{each.choice.machine} ({each.vcpus} vCPUs, {each.memory_mib} MiB)" for each in same]


def _with_gpus(
    wanted: Wanted, kind: str, count: int, target: VertexTarget, diagnostics: Diagnostics
) -> list[_Candidate]:
    said = machines.gpu(kind) + gcp_gpus.accelerator_count(kind, count)
    if not diagnostics.add(said, wanted.names):
        return []
    key = accelerator(kind).name
    try:
        having = machines_for(key, count, "gcp")
    except (NoMachine, NotOffered) as error:
        diagnostics.error(f"{wanted.names['accelerator_count']}: {error}")
        return []
    names = [each.name for each in having if not each.is_attachment]
    if key in attached():
        names += [name for name in vertex.machine_types() if _takes(name, key, count)]
    listed = [name for name in names if name in vertex.machine_types()]
    allowed = [name for name in listed if not target.machine_types or name in target.machine_types]
    if not allowed:
        has = ", ".join(target.machine_types) if listed else "does not train on them"
        where_ = f"the target has {has}" if listed else f"Vertex AI {has}"
        shown = ", ".join((listed or names)[:6])
        diagnostics.error(f"{wanted.names['accelerator']}: {count} {kind} are in {shown}; {where_}")
    found = [(_sized(name), name) for name in allowed]
    return [
        _Candidate(VertexChoice(name, key, count), size.vcpus, size.memory_mib)
        for size, name in found
        if size is not None
    ]


def _takes(name: str, key: str, count: int) -> bool:
    counts = legacy.legacy_counts(name, key)
    return counts is not None and count in counts.values


def _plain(wanted: Wanted, target: VertexTarget, diagnostics: Diagnostics) -> list[_Candidate]:
    """Machines without GPUs; where the target has none, a job gets what its machines have, as on a queue."""
    names = target.machine_types or [name for name, kind in vertex.machine_types().items() if kind == "cpu"]
    sized = [size for name in names if (size := _sized(name))]
    if not sized:
        diagnostics.error(
            f"{wanted.names['machine_type']}: the target has {', '.join(names)}, whose size this accel does not know; "
            "a newer one may"
        )
    return [each for each in sized if not each.choice.gpus] or sized


def _sized(name: str) -> _Candidate | None:
    """A machine with its size, and the GPUs that are built in; None where the size is not known."""
    if not has_size(name):
        return None
    found = node_machine(name)
    gpu = found.accelerator or None
    return _Candidate(VertexChoice(name, gpu, found.whole_accelerators), found.vcpus, found.memory_mib)


def _smallest(wanted: Wanted, having: Sequence[_Candidate], diagnostics: Diagnostics) -> VertexChoice | None:
    """The smallest that holds the job."""
    largest = max(having, key=lambda each: (each.vcpus, each.memory_mib))
    found = [
        each for each in having if each.vcpus >= (wanted.cpus or 0) and each.memory_mib >= (wanted.memory_mib or 0)
    ]
    if not found:
        asked = {"cpus": wanted.cpus, "memory_mib": wanted.memory_mib}
        said = gpu_vm_jobs.fit(asked, largest.choice.machine, largest.vcpus, largest.memory_mib)
        diagnostics.add_errors(said, wanted.names)
        if not said:
            diagnostics.error(f"cpus: {wanted.cpus} with {wanted.memory_mib} MiB: no machine of the target has both")
        return None
    enough = [each for each in found if _comfortable(wanted, each)] or found
    return min(enough, key=lambda each: (each.vcpus, _rank(each.choice.machine), each.memory_mib)).choice


def _rank(machine: str) -> int:
    """Of machines as large, N1 is the first, which regions have had longest: a choice of ours."""
    return {"n1": 0, "e2": 1, "n2": 2}.get(series(machine), 3)


def _comfortable(wanted: Wanted, each: _Candidate) -> bool:
    """Whether it has what is worth having where a job does not say."""
    if each.choice.gpus:
        return wanted.cpus is not None or not each.choice.attached or each.vcpus >= VCPUS_A_GPU * each.choice.gpus
    if wanted.cpus is None and wanted.memory_mib is None:
        return each.vcpus >= CPUS and each.memory_mib >= MEMORY_MIB
    return wanted.memory_mib is not None or each.memory_mib >= MEMORY_A_CPU_MIB * (wanted.cpus or 0)


def _is_tpu(machine_type: str | None, kind: str | None) -> bool:
    """Whether it is TPUs that a pool asks for."""
    return vertex.machine_types().get(machine_type or "") == "tpu" or _generation(kind) is not None


def _choose_tpu(
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

"""The machine of a worker pool: of GPUs or none, or of TPUs, where a pool is one slice.

Slices of v2 and v3 are asked for by cores, newer ones by a topology. Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute#tpus
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.catalog import Machine, UnknownName, vertex
from accel.catalog.gke_machines import series
from accel.catalog.places import where
from accel.catalog.tpu import Slice, generation_of
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.gcp import gpus, tpu, tpu_jobs
from accel.rules.vertex import legacy, machines

from .. import chooser, google_machines
from ..chooser import Requirement
from ..google_machines import Need, Offer, offer_of

CPUS, MEMORY_MIB = 4, 15 * 1024
"""Of a machine without GPUs, where a job says neither: an n1-standard-4, of whose memory Vertex AI may take 40 %.
Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/understanding-training-service
"""
MEMORY_A_CPU_MIB = 3840
"""Where a job says how many vCPUs alone: as much as an n1-standard has."""
_OLD_TPUS = ("tpu-v2", "tpu-v3")
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


@dataclass(frozen=True)
class VertexChoice:
    """A machine with the GPUs on it, or a host of a slice of TPUs."""

    offer: Offer
    tpu: PoolSlice | None = None

    @property
    def machine(self) -> str:
        return self.offer.name

    @property
    def gpu(self) -> str | None:
        return self.offer.gpu

    @property
    def gpus(self) -> int:
        return self.offer.gpus

    @property
    def key(self) -> str:
        """The machine, and what is attached to it."""
        return self.offer.key

    def spec(self) -> dict[str, Any]:
        """Return its MachineSpec."""
        if self.tpu:
            return self.tpu.spec()
        spec: dict[str, Any] = {"machineType": self.machine}
        if self.gpu:
            spec |= {"acceleratorType": vertex.accelerator_names()[self.gpu], "acceleratorCount": self.gpus}
        return spec

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The zones by region that are known to have it, none for a machine without accelerators."""
        if self.tpu is None:
            return self.offer.places if self.gpu else {}
        try:
            return where("gcp", self.tpu.name)
        except UnknownName:
            return {}


def choose(
    need: Need, topology: str | None, region: str, names: Mapping[str, str], diagnostics: Diagnostics
) -> VertexChoice | None:
    """Return the machine of a pool. Add what rules it out, and return None where nothing is left. `names` are the job
    file's for fields of the rules."""
    view = diagnostics.with_names(names)
    choice = _choice(need, topology, names, view)
    if choice:
        view.add(machines.region(choice.key, region, choice.places))
    return choice


def _choice(
    need: Need, topology: str | None, names: Mapping[str, str], diagnostics: Diagnostics
) -> VertexChoice | None:
    if not google_machines.check_target_type(need, diagnostics):
        return None
    if wanted := _tpu_need(need, topology):
        tpu = _choose_slice(wanted, diagnostics)
        return VertexChoice(Offer(tpu.machine), tpu) if tpu else None
    if topology:
        diagnostics.reject("topology", "is of TPUs, and the job asks for none")
    if need.machine_type:
        offer = _by_name(need, need.machine_type, diagnostics)
    else:
        offer = _best(need, names["accelerator"], _offers(need, names, diagnostics), diagnostics)
    return VertexChoice(offer) if offer else None


def _by_name(need: Need, name: str, diagnostics: Diagnostics) -> Offer | None:
    """Return the machine that is named, with the GPUs beside it or in it."""
    if not diagnostics.add(machines.pool(name, need.gpu, need.gpus)):
        return None
    size = offer_of(name)
    offer = size or Offer(name)
    if name.startswith("n1-") and need.gpu:
        offer = google_machines.attach(offer, need.gpu, need.gpus or 1)
    elif name.startswith("n1-") and need.gpus:
        diagnostics.reject("accelerator", f"is missing, and {name} has no GPUs of its own")
    elif need.gpus and not need.gpu and need.gpus != offer.gpus:
        google_machines.reject_count(offer, need, diagnostics)
    if size:
        larger = [f"{each.name} ({each.vcpus} vCPUs, {each.memory_mib} MiB)" for each in _larger(need, offer)]
        fit = machines.fit(name, size.vcpus, size.memory_mib, need.cpus, need.memory_mib, larger)
        diagnostics.add(fit)
    return offer


def _larger(need: Need, offer: Offer) -> list[Offer]:
    """Return machines of the same series with the same GPUs that hold what is asked for, the smallest first."""

    def same(each: Offer) -> bool:
        if series(each.name) != series(offer.name):
            return False
        if offer.attached:
            return _takes(each.name, offer.gpu or "", offer.gpus)
        return (each.gpu, each.gpus) == (offer.gpu, offer.gpus)

    offers = [size for name in need.target_types or vertex.machine_types() if (size := offer_of(name))]
    return google_machines.by_size(each for each in offers if same(each) and need.holds(each))


def _offers(need: Need, names: Mapping[str, str], diagnostics: Diagnostics) -> list[Offer]:
    """Return the machines that have the pool's GPUs, or none; where the target has none without, a job gets what its
    machines have."""
    if need.gpu:
        count = need.gpus or 1
        if not diagnostics.add(machines.gpu(need.gpu) + gpus.accelerator_count(need.gpu, count)):
            return []
        return google_machines.list_gpu_offers(need, count, diagnostics, _hosts)
    if need.gpus is not None:
        diagnostics.reject("accelerator", f"is missing, and so is {names['machine_type']}")
        return []
    kinds = vertex.machine_types()
    types = [name for name in need.target_types if kinds.get(name) != "tpu"]
    if need.target_types and not types:
        text = f"is missing, and the target has machines of TPUs alone: {', '.join(need.target_types)}"
        diagnostics.reject("accelerator", text)
        return []
    types = types or [name for name, kind in kinds.items() if kind == "cpu"]
    offers = google_machines.without_gpus([size for name in types if (size := offer_of(name))])
    if not offers:
        text = f"the target has {', '.join(types)}, whose size this accel does not know; a newer one may"
        diagnostics.reject("machine_type", text)
    return offers


def _hosts(attachment: Machine) -> Iterable[Offer]:
    """Yield the N1 machines that Vertex AI attaches so many GPUs to."""
    for name in vertex.machine_types():
        if _takes(name, attachment.accelerator, attachment.whole_accelerators) and (size := offer_of(name)):
            yield size


def _takes(name: str, gpu: str, count: int) -> bool:
    counts = legacy.legacy_counts(name, gpu)
    return counts is not None and count in counts.values


def _best(need: Need, field: str, offers: list[Offer], diagnostics: Diagnostics) -> Offer | None:
    """Return the smallest that holds the job."""

    def roomy(offer: Offer) -> bool:
        if offer.gpus:
            return (
                need.cpus is not None or not offer.attached or offer.vcpus >= google_machines.VCPUS_A_GPU * offer.gpus
            )
        if need.cpus is None and need.memory_mib is None:
            return offer.vcpus >= CPUS and offer.memory_mib >= MEMORY_MIB
        return need.memory_mib is not None or offer.memory_mib >= MEMORY_A_CPU_MIB * (need.cpus or 0)

    trains = Requirement[Offer](
        field,
        lambda offer: not need.gpu or offer.name in vertex.machine_types(),
        lambda offers: f"{google_machines.gpus_in(need, offers)}; Vertex AI does not train on them",
    )
    requirements = trains, google_machines.of_target(need, field), google_machines.large_enough(need)
    return chooser.choose(offers, requirements, [roomy], _rank, diagnostics) if offers else None


def _rank(offer: Offer) -> tuple[int, ...]:
    """Of machines as large, N1 is the first, which regions have had longest: a choice of ours."""
    return offer.vcpus, {"n1": 0, "e2": 1, "n2": 2}.get(series(offer.name), 3), offer.memory_mib


@dataclass(frozen=True)
class TpuNeed:
    """The TPUs that a pool asks for, None where it does not say. `generation` is the catalogue's name of the
    accelerator; `slice_name` is what slices are called (v5p-8, or v5p alone), and `sized` says that it may have a
    size."""

    need: Need
    topology: str | None
    generation: str | None
    slice_name: str | None
    sized: bool

    @property
    def kind(self) -> str | None:
        """The accelerator as the job has it, of a slice its generation."""
        return self.generation if self.sized else self.need.gpu


def _tpu_need(need: Need, topology: str | None) -> TpuNeed | None:
    """Return what a pool asks for, by the accelerator's own name, Vertex AI's, or that of a slice; None where that is
    no TPU."""
    known = gpus.find_accelerator(need.gpu) if need.gpu else None
    if known:
        generation, name = known.name if known.is_tpu else None, known.name.removeprefix("tpu-")
    else:
        generation, name = _generation(need.gpu), need.gpu
    if generation is None and vertex.machine_types().get(need.machine_type or "") != "tpu":
        return None
    return TpuNeed(need, topology, generation, name, sized=known is None)


def _generation(slice_name: str | None) -> str | None:
    try:
        return generation_of(slice_name).accelerator if slice_name else None
    except UnknownName:
        return None


def _choose_slice(wanted: TpuNeed, diagnostics: Diagnostics) -> PoolSlice | None:
    """Return the slice that a pool asks for. Add what rules it out, and return None."""
    machine_type = wanted.need.machine_type or ""
    if not diagnostics.add_errors(tpu.vertex(machine_type, wanted.kind)):
        return None
    if wanted.generation in _OLD_TPUS or machine_type == vertex.CLOUD_TPU:
        found = _by_cores(wanted, diagnostics)
    else:
        found = _by_topology(wanted, diagnostics)
    if found:
        diagnostics.add(found.host_size(wanted.need.cpus, wanted.need.memory_mib))
    return found


def _by_cores(wanted: TpuNeed, diagnostics: Diagnostics) -> PoolSlice | None:
    if wanted.generation is None:
        diagnostics.add([machines.TPU_CORES.finding("accelerator", "is missing", "write v2-8 or v3-8")])
        return None
    shape = None
    if wanted.sized:
        shape, findings = tpu.resolve_slice(wanted.slice_name, api="gke", field="accelerator")
        if shape is None:
            diagnostics.add(findings)
            return None
    cores = shape.cores if shape else wanted.need.gpus or 1
    if not diagnostics.add(machines.tpu_size(vertex.CLOUD_TPU, cores, None)):
        return None
    hosts = shape.hosts if shape else max(1, cores // 8)
    return PoolSlice(vertex.CLOUD_TPU, hosts, wanted.generation, cores, shape=shape)


def _by_topology(wanted: TpuNeed, diagnostics: Diagnostics) -> PoolSlice | None:
    need = wanted.need
    named, findings = tpu.resolve_slice(wanted.slice_name, wanted.topology, api="gke", field="accelerator")
    if need.machine_type is None and named is None:
        diagnostics.add(findings)
        return None
    machine = need.machine_type or (named.machine_type if named else None) or ""
    sides = wanted.topology or (named.topology if named else None)
    if not diagnostics.add_errors(machines.tpu_size(machine, None, sides)):
        return None
    shape, findings = tpu.resolve_pool(machine, str(sides))
    if shape is None:
        diagnostics.add(findings)
        return None
    if named and (named.generation != shape.generation or named.chips != shape.chips):
        message = f"is {need.gpu}, and {machine} with {sides} is {shape.name}"
        diagnostics.add([machines.TPU_SHAPE.finding("accelerator", message, "leave one of the two out")])
        return None
    if not diagnostics.add(tpu_jobs.hosts(shape, 1, 1, need.gpus or 1)):
        return None
    return PoolSlice(machine, shape.hosts, topology=sides, shape=shape)

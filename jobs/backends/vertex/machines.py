"""Choice of a worker pool's machine: with GPUs or none, or with TPUs, where a pool is one slice."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from accel.catalog import Accelerator, Machine, UnknownName, vertex
from accel.catalog.gke_machines import series
from accel.catalog.gpu_attachments import vertex_counts
from accel.catalog.places import where
from accel.diagnostics.collector import Diagnostics
from accel.rules import Finding
from accel.rules.gcp import gpus
from accel.rules.vertex import machines, tpus
from accel.rules.vertex.tpus import PoolSlice, TpuNeed

from .. import chooser, google_machines
from ..chooser import Requirement
from ..google_machines import Need, Offer, offer_of

CPUS, MEMORY_MIB = 4, 15 * 1024
"""Size of a machine without GPUs, if a job gives none: an n1-standard-4, of whose memory Vertex AI may take 40 %.
Source:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/understanding-training-service"""
MEMORY_A_CPU_MIB = 3840
"""Memory per vCPU, if a job gives the vCPUs alone: that of an n1-standard."""


@dataclass(frozen=True)
class VertexChoice:
    """Machine with its GPUs, or host of a TPU slice."""

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
        return self.offer.key

    def spec(self) -> dict[str, Any]:
        if self.tpu and self.tpu.topology:
            return {"machineType": self.machine, "tpuTopology": self.tpu.topology}
        kind, count = (self.tpu.kind, self.tpu.cores) if self.tpu else (self.gpu, self.gpus)
        if not kind:
            return {"machineType": self.machine}
        accelerators = {"acceleratorType": vertex.accelerator_names()[kind], "acceleratorCount": count}
        return {"machineType": self.machine, **accelerators}

    @property
    def boot_disk_type(self) -> str | None:
        """Boot disk type, or None for Vertex AI's own."""
        return machines.boot_disk_type(self.machine)

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Zones known to have it, by region; none for a machine without accelerators."""
        if self.tpu is None:
            return self.offer.places if self.gpu else {}
        try:
            return where("gcp", self.tpu.name)
        except UnknownName:
            return {}


def choose(need: Need, topology: str | None, names: Mapping[str, str], diagnostics: Diagnostics) -> VertexChoice | None:
    """Add what rules a machine out; return None if nothing is left. `names`: the job file's, by fields of the rules."""
    diagnostics = diagnostics.with_names(names)
    if not google_machines.check_target_type(need, diagnostics):
        return None
    kind, findings = machines.resolve_gpu(need.gpu) if need.gpu else (None, [])
    if wanted := tpus.need_of(need.machine_type, need.gpu, need.gpus or 1, topology, kind):
        return _slice(wanted, need, diagnostics)
    if topology:
        diagnostics.reject("topology", "is of TPUs, and the job asks for none")
    if need.machine_type:
        findings = machines.with_gpus(need.machine_type, kind, need.gpu, need.gpus, findings)
        offer = _by_name(need, need.machine_type, kind, diagnostics) if diagnostics.add(findings) else None
    else:
        offers = _with(kind, need, findings, diagnostics) if need.gpu else _without(need, names, diagnostics)
        offer = _best(need, names["accelerator"], offers, diagnostics)
    return VertexChoice(offer) if offer else None


def _slice(wanted: TpuNeed, need: Need, diagnostics: Diagnostics) -> VertexChoice | None:
    found, findings = tpus.resolve_slice(wanted)
    if found:
        findings = found.host_size(need.cpus, need.memory_mib)
    diagnostics.add(findings)
    return VertexChoice(Offer(found.machine), found) if found else None


def _by_name(need: Need, name: str, kind: Accelerator | None, diagnostics: Diagnostics) -> Offer:
    size = offer_of(name)
    offer = size or Offer(name)
    if name.startswith("n1-") and kind:
        offer = google_machines.attach(offer, kind, need.gpus or 1)
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
    """Return machines of the same series with the same GPUs that hold what is requested, smallest first."""

    def same(each: Offer) -> bool:
        if series(each.name) != series(offer.name):
            return False
        if offer.attached:
            return _takes(each.name, offer.gpu or "", offer.gpus)
        return (each.gpu, each.gpus) == (offer.gpu, offer.gpus)

    offers = [size for name in need.target_types or vertex.machine_types() if (size := offer_of(name))]
    return google_machines.by_size(each for each in offers if same(each) and need.holds(each))


def _with(kind: Accelerator | None, need: Need, findings: list[Finding], diagnostics: Diagnostics) -> list[Offer]:
    """Return the machines that have the pool's GPUs. `findings` are those on the GPUs' name."""
    count = need.gpus or 1
    if not diagnostics.add(findings + (gpus.gpu_count(kind, count) if kind else [])):
        return []
    return google_machines.list_gpu_offers(need, count, diagnostics, _hosts)


def _without(need: Need, names: Mapping[str, str], diagnostics: Diagnostics) -> list[Offer]:
    """Return the machines that have no GPUs. If all of the target's have some, a job gets what they have."""
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
    for name in vertex.machine_types():
        if _takes(name, attachment.accelerator, attachment.whole_accelerators) and (size := offer_of(name)):
            yield size


def _takes(name: str, gpu: str, count: int) -> bool:
    counts = vertex_counts(name, gpu)
    return counts is not None and count in counts.values


def _best(need: Need, field: str, offers: list[Offer], diagnostics: Diagnostics) -> Offer | None:
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
    """Rank machines of the same size, N1 first, which regions have had longest: our choice."""
    return offer.vcpus, {"n1": 0, "e2": 1, "n2": 2}.get(series(offer.name), 3), offer.memory_mib

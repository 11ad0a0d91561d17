"""Machine types of Google Cloud as offers for a job, with GPUs built in or attached. A backend lists its offers, states
the job's requirements and wishes, and translates the chosen offer."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from accel.catalog import Accelerator, AmbiguousName, UnavailableName, UnknownName, accelerator
from accel.catalog.gke_machines import find_node_machine
from accel.catalog.gpu_attachments import gpu_attachments, n1
from accel.catalog.machines import Machine, NoMachine, hosts, machines, machines_for
from accel.catalog.nearest import nearest
from accel.catalog.places import where
from accel.diagnostics.collector import Diagnostics
from accel.diagnostics.messages import SHOWN_MAX, did_you_mean
from accel.rules import Finding
from accel.rules.gcp import gpu_vm_jobs
from accel.rules.gcp import gpus as gcp_gpus

from ..model import fields
from .chooser import Requirement, narrow

VCPUS_A_GPU = 4
"""vCPUs per GPU of an N1 machine, if a job does not say: our choice, one vCPU less than the smallest G2 has."""


@dataclass(frozen=True)
class Offer:
    """Machine type of Google Cloud. `gpu` is the catalogue's name of its GPUs. Size 0: no table has it."""

    name: str
    vcpus: int = 0
    memory_mib: int = 0
    gpu: str | None = None
    gpus: int = 0
    attached: bool = False

    @property
    def key(self) -> str:
        """With attached GPUs: n1-standard-8+nvidia-tesla-t4x1."""
        return f"{self.name}+{self.gpu}x{self.gpus}" if self.attached else self.name

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Zones known to have it, by region. Attached GPUs have zones of their own."""
        try:
            return where("gcp", f"n1+{self.gpu}x{self.gpus}" if self.attached else self.name)
        except UnknownName:
            return {}


@dataclass(frozen=True)
class Need:
    """Machine requirements of a job, None if it states none, and the machine types of its target (none: every type)."""

    machine_type: str | None
    accelerator: fields.Accelerator | None
    cpus: int | None
    memory_mib: int | None
    target_types: Sequence[str] = ()

    @property
    def gpu(self) -> str | None:
        return self.accelerator.type if self.accelerator else None

    @property
    def gpus(self) -> int | None:
        return self.accelerator.count if self.accelerator else None

    def holds(self, offer: Offer) -> bool:
        return offer.vcpus >= (self.cpus or 0) and offer.memory_mib >= (self.memory_mib or 0)


def offer_of(name: str) -> Offer | None:
    """Return None where no table has the size."""
    machine = find_node_machine(name)
    return _built_in(machine) if machine else None


def n1_offer(name: str, kind: str | None, count: int) -> Offer | None:
    """Return None for a machine other than N1, predefined or custom."""
    size = n1(name)
    if size is None:
        return None
    offer = Offer(name, size.vcpus, int(size.memory_gib * 1024))
    return attach(offer, accelerator(kind), count) if kind else offer


def attach(offer: Offer, kind: Accelerator, count: int) -> Offer:
    return replace(offer, gpu=kind.name, gpus=count, attached=True)


def gpu_offers(kind: str, count: int, hosts_of: Callable[[Machine], Iterable[Offer]] | None = None) -> list[Offer]:
    """Return the machines with exactly that many GPUs, smallest first. `hosts_of` returns the machines for a number of
    attached GPUs; without it, Compute Engine's limits apply. Raise NoMachine, and the errors of accelerator()."""
    offers: list[Offer] = []
    for each in machines_for(kind, count, "gcp"):
        if each.is_attachment:
            offers += [attach(host, accelerator(kind), count) for host in (hosts_of or _hosts)(each)]
        else:
            offers.append(_built_in(each))
    return offers


def cpu_offers() -> list[Offer]:
    return by_size(_built_in(each) for each in machines("gcp") if each.kind == "cpu" and each.cpu_arch == "x86_64")


def by_size(offers: Iterable[Offer]) -> list[Offer]:
    return sorted(offers, key=lambda each: (each.vcpus, each.memory_mib))


def without_gpus(offers: Sequence[Offer]) -> list[Offer]:
    """Return all if all have GPUs: a job that asks for none gets what they have, as on a queue of AWS Batch."""
    return [each for each in offers if not each.gpus] or list(offers)


def _built_in(machine: Machine) -> Offer:
    gpus = machine.whole_accelerators
    return Offer(machine.name, machine.vcpus, machine.memory_mib, machine.accelerator if gpus else None, gpus)


def _hosts(attachment: Machine) -> list[Offer]:
    limits = gpu_attachments()[attachment.accelerator][attachment.whole_accelerators]
    return [
        _built_in(host)
        for host in hosts(attachment)
        if host.vcpus >= limits.vcpus_min and host.memory_mib >= limits.memory_gib_min * 1024
    ]


def check_target_type(need: Need, diagnostics: Diagnostics) -> bool:
    if need.machine_type is None or not need.target_types or need.machine_type in need.target_types:
        return True
    near = did_you_mean(need.machine_type, need.target_types)
    diagnostics.reject("machine_type", f'"{need.machine_type}" is none of the target\'s machine types{near}')
    return False


def check_gpu(need: Need, others: str, diagnostics: Diagnostics) -> bool:
    """Add an error and return false for an unknown name or a TPU. `others` names the kinds of target for TPUs."""
    if need.gpu is None:
        return True
    if not diagnostics.add(gcp_gpus.accelerator_name(need.gpu)):
        return False
    if accelerator(need.gpu).is_tpu:
        diagnostics.reject("accelerator", f"{need.gpu} is a TPU; submit to a target of kind {others}")
        return False
    return True


def list_gpu_offers(
    need: Need, count: int, diagnostics: Diagnostics, hosts_of: Callable[[Machine], Iterable[Offer]] | None = None
) -> list[Offer]:
    """Add an error if no machine has `count` of the GPUs that the job names."""
    try:
        return gpu_offers(need.gpu or "", count, hosts_of)
    except (NoMachine, AmbiguousName, UnavailableName, UnknownName) as error:
        diagnostics.reject("accelerator_count", str(error))
        return []


def unknown_type(name: str) -> str:
    names = [each.name for each in machines("gcp")]
    near = did_you_mean(name, names) if nearest(name[:SHOWN_MAX], names) else "; nothing similar is known"
    return f'unknown machine type "{name}"{near}'


def reject_count(offer: Offer, need: Need, diagnostics: Diagnostics) -> None:
    diagnostics.reject("accelerator_count", f"is {need.gpus}, and {offer.name} has {offer.gpus} GPUs")


def of_target(need: Need, field: str) -> Requirement[Offer]:
    def fault(offers: Sequence[Offer]) -> str:
        return f"{gpus_in(need, offers)}; the target has {', '.join(need.target_types)}"

    return Requirement(field, lambda offer: not need.target_types or offer.name in need.target_types, fault)


def gpus_in(need: Need, offers: Sequence[Offer]) -> str:
    return f"{need.gpus} {need.gpu} are in {', '.join(each.name for each in offers[:6])}"


def list_target_offers(need: Need, size_of: Callable[[str], Offer | None], diagnostics: Diagnostics) -> list[Offer]:
    """Return machines, smallest first, with as many GPUs as a job asks for without naming their type. N1 is absent: a
    job names the type of GPUs attached to it. Add an error if there is no such machine."""
    offers = by_size(offer for name in need.target_types if (offer := size_of(name)))
    if need.gpus is None:
        offers = without_gpus(offers)
    with_count = Requirement[Offer](
        "accelerator",
        lambda offer: need.gpus is None or offer.gpus == need.gpus,
        lambda offers: f"no machine of the target has {need.gpus or 0} GPUs: {', '.join(need.target_types)}",
    )
    return narrow(offers, [with_count], diagnostics)


def large_enough(need: Need) -> Requirement[Offer]:
    def fault(offers: Sequence[Offer]) -> list[Finding]:
        largest = max(offers, key=lambda each: (each.vcpus, each.memory_mib))
        needs = {"cpus": need.cpus, "memory_mib": need.memory_mib}
        return gpu_vm_jobs.fit(needs, largest.name, largest.vcpus, largest.memory_mib)

    return Requirement("cpus", need.holds, fault)

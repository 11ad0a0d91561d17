"""Machines as Google Batch may be asked for them: how large, and with which GPUs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from accel.catalog import UnknownName, accelerator
from accel.catalog.attached import attached, n1
from accel.catalog.gke_machines import node_machine
from accel.catalog.machines import Machine, hosts, machines, machines_for
from accel.catalog.places import where
from accel.diagnostics.messages import did_you_mean
from accel.rules import Finding
from accel.rules.gcp import machines as gcp_machines

VCPUS_A_GPU = 4
"""Of an N1 machine, where a job does not say: a choice of ours, a vCPU less than the smallest G2 has a GPU."""
VCPUS = 2
"""Of a task, where a job does not say: what Batch takes for cpuMilli then. Source: the discovery document of batch.v1
(ComputeResource.cpuMilli)."""
_CUSTOM = re.compile(r"([a-z0-9]+)-custom-(\d{1,3})-(\d{3,7})(-ext)?", re.ASCII)


@dataclass(frozen=True)
class Size:
    """A machine type, and the GPUs on it; `accelerator` is their name in Google's APIs."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: int = 0
    accelerator: str | None = None
    attached: bool = False

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """The zones by region that are known to have it."""
        try:
            return where("gcp", f"n1+{self.accelerator}x{self.gpus}" if self.attached else self.name)
        except UnknownName:
            return {}


def size_of_machine(
    name: str, kind: str | None, count: int, per_vm: int, allowed: Sequence[str]
) -> tuple[Size | None, list[Finding], list[str]]:
    """The machine that a job names, with `count` GPUs for each of `per_vm` tasks; findings, and other faults."""
    if allowed and name not in allowed:
        near = did_you_mean(name, allowed)
        return None, [], [f'google_batch.machine_type: "{name}" is none of the target\'s machine types{near}']
    on_n1 = n1(name)
    wanted = count * per_vm if on_n1 and kind else None
    findings = gcp_machines.machine(name, kind, wanted)
    if any(finding.severity == "reject" for finding in findings):
        return None, findings, []
    if on_n1:
        gpu = accelerator(kind).gcp_type if kind else None
        gpus = count * per_vm if gpu else 0
        return Size(name, on_n1.vcpus, int(on_n1.memory_gib * 1024), gpus, gpu, gpu is not None), findings, []
    found = _known(name)
    if found is None:
        near = did_you_mean(name, [each.name for each in machines("gcp")])
        return None, findings, [f'google_batch.machine_type: unknown machine type "{name}"{near}']
    if count > found.gpus:
        # Its words name the machines that have so many.
        more = gcp_machines.machine(name, kind, count) if found.gpus else []
        faults = [] if more else [f"accelerator.count: is {count}, and {name} has {found.gpus} GPUs"]
        return None, findings + more, faults
    return found, findings, []


def with_gpus(kind: str, count: int) -> list[Size]:
    """Machines with so many GPUs, the smaller first. Raises NoMachine and what accelerator() does."""
    found: list[Size] = []
    for each in machines_for(kind, count, "gcp"):
        if not each.is_attachment:
            found.append(_of(each))
            continue
        limits, gpu = attached()[each.accelerator][count], accelerator(kind).gcp_type
        found += [
            Size(host.name, host.vcpus, host.memory_mib, count, gpu, attached=True)
            for host in hosts(each)
            if host.vcpus >= limits.vcpus_min and host.memory_mib >= limits.memory_gib_min * 1024
        ]
    return found


def like(size: Size) -> list[Machine]:
    """Machines with the same GPUs, or without any as it is, the smaller first."""
    if not size.gpus:
        return [each for each in _cpu() if each.memory_mib > size.memory_mib or each.vcpus > size.vcpus]
    found = with_gpus(size.accelerator or "", size.gpus)
    return [node_machine(each.name) for each in sorted(found, key=lambda each: (each.memory_mib, each.vcpus))]


def of_target(names: Sequence[str]) -> list[Size]:
    """A target's machines, the smaller first, without those that are not known; N1 has no GPUs here, which a job names
    by their kind."""
    return sorted((found for name in names if (found := _known(name))), key=lambda each: (each.vcpus, each.memory_mib))


def _known(name: str) -> Size | None:
    if custom := _CUSTOM.fullmatch(name):
        return Size(name, int(custom[2]), int(custom[3]))
    try:
        return _of(node_machine(name))
    except UnknownName:
        return None


def cpu_machines() -> list[Size]:
    """Machines without GPUs, the smaller first."""
    return [_of(each) for each in _cpu()]


def cpus(size: Size, *, named: bool) -> int:
    """vCPUs of a task that does not say how many it needs; a machine that is named is taken as it is."""
    if named:
        return 1
    return VCPUS_A_GPU * size.gpus if size.attached else 1 if size.gpus else VCPUS


def _cpu() -> list[Machine]:
    found = [each for each in machines("gcp") if each.kind == "cpu" and each.cpu_arch == "x86_64"]
    return sorted(found, key=lambda each: (each.vcpus, each.memory_mib))


def _of(machine: Machine) -> Size:
    gpu = accelerator(machine.accelerator).gcp_type if machine.whole_accelerators else None
    return Size(machine.name, machine.vcpus, machine.memory_mib, machine.whole_accelerators, gpu)

"""Instance types, what fits on one, and the instances that a compute environment runs."""

import uuid
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_FAMILIES, INSTANCE_TYPES

from accel.catalog import machines
from accel.catalog.memory import ecs_gpus

# Share of the nominal memory that the agent registers for jobs: kernel, agent and reserve take the rest. Published
# node figures for the GPU types show 92.5 %.
USABLE_MEMORY = 0.92

# Types that Batch still accepts and moto's EC2 data no longer lists: vCPUs, GiB, GPUs.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-types.html (previous generation)
RETIRED = {
    "p3.2xlarge": (8, 61, 1),
    "p3.8xlarge": (32, 244, 4),
    "p3.16xlarge": (64, 488, 8),
    "g3.4xlarge": (16, 122, 1),
    "g3.8xlarge": (32, 244, 2),
    "g3.16xlarge": (64, 488, 4),
}

# Types newer than moto's EC2 data, with the catalogue's figures and sources.
NEWER = {each.name: each for each in machines("aws") if each.name not in INSTANCE_TYPES and each.name not in RETIRED}

NAMES = (*INSTANCE_TYPES, *RETIRED, *NEWER)

# ComputeResource.instanceTypes in botocore's batch model names these families.
DEFAULTS = {
    "optimal": ("m6i", "c6i", "r6i", "c7i"),
    "default_x86_64": ("m6i", "c6i", "r6i", "c7i"),
    "default_arm64": ("m6g", "c6g", "r6g", "c7g"),
}


@dataclass(frozen=True, slots=True)
class Needs:
    vcpus: float
    memory_mib: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Kind:
    """Instance type; `memory_mib` is the memory that jobs can use."""

    name: str
    vcpus: int
    memory_mib: int
    gpus: int
    arm: bool

    def holds(self, needs: Needs) -> bool:
        return needs.vcpus <= self.vcpus and needs.memory_mib <= self.memory_mib and needs.gpus <= self.gpus


@dataclass(eq=False)
class Instance:
    """Instance of a compute environment, and what is still free on it.

    `arn` is that of its container instance, empty before it registers with ECS. A `sole` instance belongs to one node.
    """

    kind: Kind
    id: str
    arn: str = ""
    sole: bool = False
    free_vcpus: float = field(init=False)
    free_memory_mib: int = field(init=False)
    free_gpus: list[str] = field(init=False)
    jobs: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.free_vcpus, self.free_memory_mib = self.kind.vcpus, self.kind.memory_mib
        self.free_gpus = [f"GPU-{uuid.uuid4()}" for _ in range(self.kind.gpus)]

    def has_room(self, needs: Needs) -> bool:
        return (
            not self.sole
            and needs.vcpus <= self.free_vcpus
            and needs.memory_mib <= self.free_memory_mib
            and needs.gpus <= len(self.free_gpus)
        )

    def take(self, job_id: str, needs: Needs) -> list[str]:
        self.jobs.add(job_id)
        self.free_vcpus -= needs.vcpus
        self.free_memory_mib -= needs.memory_mib
        gpus, self.free_gpus = self.free_gpus[: needs.gpus], self.free_gpus[needs.gpus :]
        return gpus

    def release(self, job_id: str, needs: Needs, gpus: list[str]) -> None:
        self.jobs.discard(job_id)
        self.free_vcpus += needs.vcpus
        self.free_memory_mib += needs.memory_mib
        self.free_gpus += gpus


def _kind(name: str) -> Kind:
    if name in RETIRED:
        vcpus, memory_gib, gpus = RETIRED[name]
        return Kind(name, vcpus, int(memory_gib * 1024 * USABLE_MEMORY), gpus, False)
    if found := NEWER.get(name):
        memory_mib = int(found.memory_mib * USABLE_MEMORY)
        return Kind(name, found.vcpus, memory_mib, ecs_gpus(found), found.cpu_arch == "arm64")
    facts: dict[str, Any] = INSTANCE_TYPES[name]
    gpus = sum(gpu["Count"] for gpu in facts.get("GpuInfo", {}).get("Gpus", []) if gpu["Manufacturer"] == "NVIDIA")
    return Kind(
        name=name,
        vcpus=facts["VCpuInfo"]["DefaultVCpus"],
        memory_mib=int(facts["MemoryInfo"]["SizeInMiB"] * USABLE_MEMORY),
        gpus=gpus,
        arm="arm64" in facts["ProcessorInfo"]["SupportedArchitectures"],
    )


@cache
def kinds(entry: str) -> tuple[Kind, ...]:
    """Return the types behind one entry of instanceTypes, smallest first; none for an unknown entry."""
    if entry in NAMES:
        return (_kind(entry),)
    families = DEFAULTS.get(entry, (entry,))
    names = [name for name in NAMES if name.partition(".")[0] in families]
    return tuple(sorted((_kind(name) for name in names), key=lambda kind: (kind.vcpus, kind.memory_mib)))


def families() -> list[str]:
    return sorted({*INSTANCE_FAMILIES, *DEFAULTS, *(name.partition(".")[0] for name in (*RETIRED, *NEWER))})

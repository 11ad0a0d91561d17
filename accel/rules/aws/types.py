"""Instance types of a GPU compute environment."""

from collections.abc import Sequence

from accel.catalog import Machine, UnknownName, expand, families, machines
from accel.catalog.machines import as_of
from accel.catalog.memory import ecs_gpus
from accel.diagnostics.findings import Finding
from accel.rules import newer_types
from accel.rules.table import rule

EMPTY = rule("aws.types.empty")
UNKNOWN = rule("aws.types.unknown")
NEWER = rule("aws.types.newer")
NO_GPU = rule("aws.types.no-gpu")
FRACTION = rule("aws.types.fractional-gpu")
MIXED_ARCHITECTURE = rule("aws.types.mixed-architecture")
MIXED_GPU_COUNTS = rule("aws.types.mixed-gpu-counts")

BUNDLES = ("optimal", "default_x86_64", "default_arm64")

NEEDS_OWN_AMI = ("p3", "p3dn", "g3", "g3s")
"""Families that ECS_AL2023_NVIDIA does not support. AWS's page names p3 and g3; p3dn has the same GPU generation as p3,
and g3s is a size of g3. Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_Ec2Configuration.html"""


def family(name: str) -> str:
    return name.partition(".")[0]


def find_machines(names: Sequence[str]) -> list[tuple[int, Machine]]:
    """Return each machine with the index of its name. Skips unknown names."""
    found: list[tuple[int, Machine]] = []
    for i, name in enumerate(names):
        try:
            found += [(i, machine) for machine in expand([name])]
        except UnknownName:
            continue  # instance_types() reports it
    return found


def gpus(names: Sequence[str]) -> list[str]:
    return list({machine.accelerator: None for _, machine in find_machines(names) if machine.accelerator})


def instance_types(names: Sequence[str], field: str = "instance_types") -> list[Finding]:
    if not names:
        return [EMPTY.finding(field, "names no instance type", "name GPU families or sizes, such as g5 or g6.xlarge")]
    found: list[Finding] = []
    for i, name in enumerate(names):
        found += _instance_type(f"{field}[{i}]", name)
    return found + _architectures(field, names) + _gpu_counts(field, names)


def _instance_type(field: str, name: str) -> list[Finding]:
    if name in BUNDLES:
        message = f'is "{name}", which picks CPU families only'
        return [NO_GPU.finding(field, message, "name GPU families, such as g5, g6 or p4d")]
    try:
        found = expand([name])
    except UnknownName as unknown:
        if family(name) in NEEDS_OWN_AMI:
            return []  # real, though too old for the catalogue; the image rules speak of it
        if newer_types.aws(name):
            message = f'is "{name}", {newer_types.doubt("aws")}'
            return [NEWER.finding(field, message, newer_types.fix("aws", unknown.nearest))]
        near = " or ".join(unknown.nearest) or "a GPU type of the catalogue, such as g5 or g6.xlarge"
        return [UNKNOWN.finding(field, f'is "{name}", which {_unlike(name)}', f"use {near}; {newer_types.REFRESHED}")]
    if any(ecs_gpus(machine) for machine in found):
        return []
    first = found[0]
    if 0 < first.accelerator_count < 1:
        message = f'is "{name}", whose sizes have {first.accelerator_count:g} of a GPU and more, never a whole one'
        return [FRACTION.finding(field, message, "use a family with whole GPUs, such as g6")]
    has = f"has {first.accelerator}, which Batch does not count as a GPU" if first.accelerator else "has no GPU"
    return [NO_GPU.finding(field, f'is "{name}", which {has}', "use an NVIDIA GPU family, such as g5, g6 or p4d")]


def _unlike(name: str) -> str:
    of, dot, _ = name.partition(".")
    if not dot or of not in families("aws"):
        return "is no GPU type of the catalogue"
    sizes = [each.name.partition(".")[2] for each in machines("aws", family=of)]
    return f"is no size of {of} in the catalogue of {as_of('aws')}: it has {', '.join(sizes)}"


def _architectures(field: str, names: Sequence[str]) -> list[Finding]:
    first: dict[str, str] = {}
    for i, machine in find_machines(names):
        first.setdefault(machine.cpu_arch, names[i])
    if len(first) < 2:
        return []
    shown = " and ".join(f"{arch} ({name})" for arch, name in first.items())
    return [MIXED_ARCHITECTURE.finding(field, f"mixes {shown}", "give each architecture its own environment and queue")]


def _gpu_counts(field: str, names: Sequence[str]) -> list[Finding]:
    least: dict[int, int] = {}
    for i, machine in find_machines(names):
        if gpus := ecs_gpus(machine):
            least[i] = min(gpus, least.get(i, gpus))
    small = [names[i] for i, gpus in least.items() if gpus == 1]
    large = [names[i] for i, gpus in least.items() if gpus >= 8]
    if not small or not large:
        return []
    message = (
        f"mixes one-GPU sizes ({', '.join(small)}) with eight-GPU machines ({', '.join(large)}), and Batch "
        "chooses by the price of a vCPU"
    )
    fix = "give the eight-GPU machines an environment and queue of their own"
    return [MIXED_GPU_COUNTS.finding(field, message, fix)]

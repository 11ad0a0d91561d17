"""The machine image (AMI) that instances of a compute environment start from."""

from collections.abc import Collection, Sequence

from accel.catalog import nearest
from accel.catalog.memory import ecs_gpus
from accel.diagnostics.findings import Finding, did_you_mean
from accel.rules.aws.types import NEEDS_OWN_AMI, family, find_machines
from accel.rules.table import rule

AL2_NVIDIA = rule("aws.image.al2-nvidia")
AL2 = rule("aws.image.al2")
AL1 = rule("aws.image.al1")
UNKNOWN = rule("aws.image.unknown")
OLD_GPU = rule("aws.image.old-gpu")
GRAVITON = rule("aws.image.graviton")
NO_DRIVER = rule("aws.image.no-driver")
UNLOCKED = rule("aws.image.unlocked")

IMAGE_TYPES = ("ECS_AL2023_NVIDIA", "ECS_AL2023")
"""Image types of a new environment; the default of a GPU environment comes first."""

_SUCCESSOR = {"ECS_AL2_NVIDIA": (AL2_NVIDIA, "ECS_AL2023_NVIDIA"), "ECS_AL2": (AL2, "ECS_AL2023")}


def image(
    image_type: str,
    instance_types: Sequence[str] = (),
    *,
    image_id_override: str | None = None,
    imported: bool = False,
    field: str = "image_type",
    types_field: str = "instance_types",
) -> list[Finding]:
    """Ignore a custom image (`image_id_override`). `imported`: the environment exists, so an old type may stay."""
    if image_id_override:
        return []
    if image_type == "ECS_AL1":
        return [AL1.finding(field, "is ECS_AL1, which AWS has ended", "use ECS_AL2023_NVIDIA")]
    if image_type not in IMAGE_TYPES and image_type not in _SUCCESSOR:
        near = nearest(image_type, IMAGE_TYPES, 1)
        return [UNKNOWN.finding(field, f'is "{image_type}"', did_you_mean(near, IMAGE_TYPES))]
    found: list[Finding] = []
    written = image_type
    if image_type in _SUCCESSOR and not imported:
        broken, image_type_now = _SUCCESSOR[image_type]
        message = f"is {image_type}, on which Batch creates no environment since 2026-06-30"
        found.append(broken.finding(field, message, f"use {image_type_now}", image_type_now))
        image_type = image_type_now
    if image_type in ("ECS_AL2", "ECS_AL2023"):
        found += _no_driver(written, instance_types, field)
    if image_type == "ECS_AL2023_NVIDIA":
        found += _unsupported(instance_types, types_field)
    return found


def image_lock(
    image_type: str, region: str, pinned: Collection[tuple[str, str]] | None, field: str = "image_type"
) -> list[Finding]:
    """Check that the lock file pins an image. `pinned`: its image types and regions; None: there is no file."""
    if pinned is None or (image_type, region) in pinned:
        return []
    message = f"is {image_type}, which images.lock.yaml does not pin in {region}: Batch picks the image"
    return [UNLOCKED.finding(field, message, "pin it: stacks images upgrade --yes")]


def _no_driver(image_type: str, instance_types: Sequence[str], field: str) -> list[Finding]:
    gpu = list(dict.fromkeys(instance_types[i] for i, machine in find_machines(instance_types) if ecs_gpus(machine)))
    if not gpu:
        return []
    message = f"is {image_type}, which has no NVIDIA driver, and {gpu[0]} has GPUs"
    return [NO_DRIVER.finding(field, message, "use ECS_AL2023_NVIDIA")]


def _unsupported(instance_types: Sequence[str], field: str) -> list[Finding]:
    found: list[Finding] = []
    for i, name in enumerate(instance_types):
        if family(name) in NEEDS_OWN_AMI:
            message = f'is "{name}", which ECS_AL2023_NVIDIA does not support'
            fix = "use g5, g6 or p4d, or give an image of your own in image_id_override"
            found.append(OLD_GPU.finding(f"{field}[{i}]", message, fix))
    arm = {
        i: machine for i, machine in find_machines(instance_types) if machine.cpu_arch == "arm64" and ecs_gpus(machine)
    }
    for i in arm:
        message = f'is "{instance_types[i]}", a Graviton instance, for which Batch has no NVIDIA image'
        fix = "use g5 or g6, or give an arm64 image of your own in image_id_override"
        found.append(GRAVITON.finding(f"{field}[{i}]", message, fix))
    return found

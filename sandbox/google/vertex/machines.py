"""Machines and accelerators that custom jobs of Vertex AI accept. Source of all tables:
https://docs.cloud.google.com/vertex-ai/docs/training/configure-compute"""

import re
from functools import cache

from accel.catalog.accelerators import accelerators
from accel.catalog.gpu_attachments import vertex_counts
from accel.catalog.machines import machines

_SIZES = {
    "e2-standard": "4 8 16 32",
    "e2-highmem": "2 4 8 16",
    "e2-highcpu": "16 32",
    **dict.fromkeys(("n4-standard", "n4-highmem", "n4-highcpu"), "2 4 8 16 32 48 64 80"),
    "n2-standard": "4 8 16 32 48 64 80",
    "n2-highmem": "2 4 8 16 32 48 64 80",
    "n2-highcpu": "16 32 48 64 80",
    "n1-standard": "4 8 16 32 64 96",
    "n1-highmem": "2 4 8 16 32 64 96",
    "n1-highcpu": "16 32 64 96",
    "c2-standard": "4 8 16 30 60",
    "m1-ultramem": "40 80 160",
    "m1-megamem": "96",
}
_WITH_GPUS = {
    "a4x-highgpu": "4",
    "a4-highgpu": "8",
    "a3-ultragpu": "8",
    "a3-megagpu": "8",
    "a3-highgpu": "1 2 4 8",
    "a2-ultragpu": "1 2 4 8",
    "a2-highgpu": "1 2 4 8",
    "a2-megagpu": "16",
}
_BY_VCPUS = {"g2-standard": "4 8 12 16 24 32 48 96", "g4-standard": "48 96 192 384"}

SMALL_A3 = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
"""Machine types that Compute Engine has as Spot and flex-start VMs only. Source:
https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines#a3-vms. No page says that Vertex AI refuses
other jobs with them."""

FLEX_START = ("NVIDIA_L4", "NVIDIA_TESLA_A100", "NVIDIA_A100_80GB", "NVIDIA_H100_80GB", "NVIDIA_H100_MEGA_80GB",
              "NVIDIA_H200_141GB", "NVIDIA_B200")  # fmt: skip
"""Source: https://docs.cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws"""

_LARGE = ("2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
TPUS: dict[str, tuple[str, ...]] = {
    "ct5lp-hightpu-1t": ("1x1",),
    "ct5lp-hightpu-4t": ("2x2", *_LARGE),
    "ct5lp-hightpu-8t": ("2x4",),
    "ct6e-standard-1t": ("1x1",),
    "ct6e-standard-4t": ("2x2", *_LARGE),
    "ct6e-standard-8t": ("2x4",),
    "tpu7x-standard-4t": ("2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16"),
}
"""Topologies of each machine type."""
CLOUD_TPU = "cloud-tpu"
"""Machine type of TPU_V2 and TPU_V3."""
BOOT_DISKS = ("pd-standard", "pd-ssd", "hyperdisk-balanced")


@cache
def _with_gpus() -> dict[str, tuple[str, int]]:
    names = {f"{family}-{size}g" for family, sizes in _WITH_GPUS.items() for size in sizes.split()}
    names |= {f"{family}-{size}" for family, sizes in _BY_VCPUS.items() for size in sizes.split()}
    found = {each.name: each for each in machines("gcp") if each.name in names}
    kinds = {name: accelerators()[each.accelerator].vertex_name or "" for name, each in found.items()}
    return {name: (kinds[name], found[name].whole_accelerators) for name in sorted(names)}


@cache
def machine_types() -> frozenset[str]:
    plain = (f"{family}-{size}" for family, sizes in _SIZES.items() for size in sizes.split())
    return frozenset([*plain, *_with_gpus(), *TPUS, CLOUD_TPU])


def own_gpus(machine: str) -> tuple[str, int] | None:
    """Return the built-in GPUs of a machine type, by Vertex AI's name, and their number; None without any."""
    return _with_gpus().get(machine)


def counts(machine: str, accelerator: str) -> tuple[int, ...]:
    """Return how many of an accelerator (Vertex AI's name) a machine type may have; () where they do not fit."""
    if machine == CLOUD_TPU:
        return (8, *range(32, 2048 + 1, 32)) if accelerator in ("TPU_V2", "TPU_V3") else ()
    if built_in := own_gpus(machine):
        return (built_in[1],) if built_in[0] == accelerator else ()
    name = next((each.name for each in accelerators().values() if each.vertex_name == accelerator), "")
    allowed = vertex_counts(machine, name) if machine.startswith("n1-") else None
    return allowed.values if allowed else ()


def vcpus(machine: str) -> int:
    """Return the vCPUs of a machine type that counts towards the quota of custom_model_training_cpus, else 0. Source
    for N1 and E2: https://github.com/GoogleCloudPlatform/training-data-analyst/issues/2457."""
    found = re.fullmatch(r"(?:n1|e2)-[a-z]+-(\d+)", machine)
    return int(found[1]) if found else 0

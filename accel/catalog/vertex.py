"""Machine types, TPU shapes and published images of Vertex AI training. Sources:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/configure-compute and
.../training/pre-built-containers (no new image after its first date, no use after the second)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cache

from accel.catalog.accelerators import accelerators
from accel.catalog.tables import Row, rows

REPOSITORY = re.compile(r"(us|europe|asia)-docker\.pkg\.dev/vertex-ai/training/(?P<name>[^:@/]+)(?P<tag>:[^@]+)?")
"""Published images, in any of their three locations; the tag has to be `latest`."""

REDUCTION_SERVER = "{place}-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
REDUCTION_MACHINE = "n1-highcpu-16"
"""Source: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training
"""

CLOUD_TPU = "cloud-tpu"
"""Machine type of TPU v2 and v3, which are requested by cores."""

_LITE = ("2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
TOPOLOGIES = {
    "ct5lp-hightpu-1t": ("1x1",), "ct5lp-hightpu-4t": _LITE, "ct5lp-hightpu-8t": ("2x4",),
    "ct6e-standard-1t": ("1x1",), "ct6e-standard-4t": _LITE, "ct6e-standard-8t": ("2x4",),
    "tpu7x-standard-4t": (
        "2x2x1", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x16",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Image:
    """A published image by its name in the repository. `device`: cpu, gpu or tpu."""

    name: str
    device: str
    patched_until: date
    available_until: date


@cache
def machine_types() -> dict[str, str]:
    """Return gpu, cpu or tpu for each machine type that a worker pool accepts."""
    found: dict[str, str] = {}
    for row in rows("vertex_machines.csv"):
        if row["kind"] not in ("gpu", "cpu", "tpu"):
            raise row.damaged("kind", f"unknown kind of machine: {row['kind']}")
        for size in row.parts("sizes") or ("",):
            found[f"{row['stem']}-{size}" if size else row["stem"]] = row["kind"]
    return found


@cache
def images() -> dict[str, Image]:
    return {image.name: image for image in map(_image, rows("vertex_images.csv"))}


def _image(row: Row) -> Image:
    return Image(row["image"], row["device"], _date(row, "patched_until"), _date(row, "available_until"))


def _date(row: Row, column: str) -> date:
    try:
        return date.fromisoformat(row[column])
    except ValueError:
        raise row.damaged(column, f"not a date: {row[column]}") from None


@cache
def accelerator_names() -> dict[str, str]:
    return {name: each.vertex_name for name, each in accelerators().items() if each.vertex_name}


def place(region: str) -> str:
    """Return the Artifact Registry multi-region nearest to a region: us, europe or asia."""
    near = {"europe": "europe", "me": "europe", "africa": "europe", "asia": "asia", "australia": "asia"}
    return near.get(region.partition("-")[0], "us")

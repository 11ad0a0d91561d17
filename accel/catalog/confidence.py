"""How sure the figures of an accelerator or a machine are."""

from __future__ import annotations

from dataclasses import fields

from accel.catalog.accelerators import Accelerator
from accel.catalog.machines import Machine

TYPE_CHECKING = False  # typing takes 5 ms to import; the type checker knows this name
if TYPE_CHECKING:
    from typing import Literal

_FIELDS = {
    "cuda_compute_capability": "compute_capability",
    "bf16_dense_tflops": "bf16_tflops",
    "fp16_dense_tflops": "fp16_tflops",
    "aws_api_name": "aws_name",
    "gcp_accelerator_type": "gcp_type",
    "accelerator_memory_gib_total": "accelerator_memory_gib",
    "gke_accelerator_label": "gke_label",
    "memory_gib_max": "memory_mib",
    "vcpus_max": "vcpus",
    "efa": "efa_interfaces",
    "efa_max_interfaces": "efa_interfaces",
}
"""Columns of the files whose field has another name."""


def confidence(row: Accelerator | Machine) -> dict[str, Literal["high", "low"]]:
    """How sure each field is: `low` where the data's `unverified_fields` names it (taken from memory of a vendor's
    page), else `high` (from the sources that `sources` names)."""
    low = {_FIELDS.get(column, column) for column in row.unverified}
    if "memory_gib" in low and isinstance(row, Machine):
        low.add("memory_mib")
    said = ("sources", "unverified", "notes")
    return {each.name: "low" if each.name in low else "high" for each in fields(row) if each.name not in said}

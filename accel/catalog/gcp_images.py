"""Families of Google's Deep Learning VM images, with their end dates: no new image after the first, no use after the
second. Source: https://docs.cloud.google.com/deep-learning-vm/docs/framework-support-policy"""

from dataclasses import dataclass
from datetime import date
from functools import cache

from accel.catalog.tables import Row, rows

DEEP_LEARNING = "deeplearning-platform-release"
"""Project of these images."""

CURRENT = "pytorch-2-9-cu129-ubuntu-2204-nvidia-580"
CURRENT_BASE = "common-cu129-ubuntu-2204-nvidia-580"


@dataclass(frozen=True, slots=True)
class Family:
    """An image family. A date that was not read is None."""

    name: str
    patched_until: date | None
    available_until: date | None
    source: str


@cache
def families() -> dict[str, Family]:
    return {family.name: family for family in map(_family, rows("gcp_images.csv"))}


def _family(row: Row) -> Family:
    return Family(row["family"], _date(row, "patched_until"), _date(row, "available_until"), row["source"])


def _date(row: Row, column: str) -> date | None:
    if not row[column]:
        return None
    try:
        return date.fromisoformat(row[column])
    except ValueError:
        raise row.damaged(column, f"not a date: {row[column]}") from None

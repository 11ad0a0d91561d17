"""Typical uses of each accelerator, in the words of its vendor or cloud."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import parts, rows


@dataclass(frozen=True, slots=True)
class Use:
    """Uses for display, in `best_for` the main one first: no rule or ranking depends on them."""

    best_for: tuple[str, ...]
    source: str
    source_date: str


@cache
def uses() -> dict[str, Use]:
    """Return uses by catalogue key, without accelerators that no source covers. Raise DamagedData."""
    return {
        row["accelerator"]: Use(tuple(parts(row["best_for"])), row["source"], row["source_date"])
        for row in rows("accelerator_uses.csv")
    }

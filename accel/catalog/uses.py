"""What an accelerator is best for, in the few words that its vendor or cloud has for it."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import parts, rows


@dataclass(frozen=True, slots=True)
class Use:
    """`best_for`: the main use first. A hint for people: no rule and no ranking rests on it."""

    best_for: tuple[str, ...]
    source: str
    source_date: str


@cache
def uses() -> dict[str, Use]:
    """Uses by the accelerator's catalogue key; one that no source speaks of is missing. Raises DamagedData."""
    return {
        row["accelerator"]: Use(tuple(parts(row["best_for"])), row["source"], row["source_date"])
        for row in rows("accelerator_uses.csv")
    }

"""Machine types of AI Platform Training, which was shut down on 2025-01-31, and their replacements."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.nearest import UnknownName
from accel.catalog.tables import Row, rows


@dataclass(frozen=True, slots=True)
class LegacyMachine:
    """A legacy machine type with `legacy_count` of `legacy_accelerator`, on a host of `base_vcpus` and `base_memory_gb`
    (`size_confidence` `low`: recalled, not compared with a page). `machine`, `accelerator` and `count` replace it; if
    `machine` is empty nothing does, and `decision` lists the alternatives."""

    name: str
    legacy_accelerator: str
    legacy_count: int
    base_type: str
    base_vcpus: int | None
    base_memory_gb: float | None
    size_confidence: str
    machine: str
    accelerator: str
    count: int
    decision: str
    source: str
    notes: str


@cache
def legacy_machines() -> dict[str, LegacyMachine]:
    return {row["legacy_type"]: _machine(row) for row in rows("legacy_machine_types.csv")}


def legacy_machine(name: str) -> LegacyMachine:
    """Raise UnknownName with the nearest known names."""
    known = legacy_machines()
    if name not in known:
        raise UnknownName("legacy machine type", name, known)
    return known[name]


def _machine(row: Row) -> LegacyMachine:
    vcpus = row.number("base_vcpus")
    return LegacyMachine(
        name=row["legacy_type"],
        legacy_accelerator=row["legacy_accelerator"],
        legacy_count=row.integer("legacy_count"),
        base_type=row["base_type"],
        base_vcpus=None if vcpus is None else int(vcpus),
        base_memory_gb=row.number("base_memory_gb"),
        size_confidence=row["size_confidence"],
        machine=row["machine"],
        accelerator=row["accelerator"],
        count=row.integer("accelerator_count"),
        decision=row["decision"],
        source=row["source"],
        notes=row["notes"],
    )

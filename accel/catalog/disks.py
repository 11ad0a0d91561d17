"""Network disks that each Google Cloud machine series can attach."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import Row, rows

HYPERDISK = (
    "hyperdisk-balanced",
    "hyperdisk-balanced-high-availability",
    "hyperdisk-extreme",
    "hyperdisk-throughput",
    "hyperdisk-ml",
)
PERSISTENT_DISK = ("pd-balanced", "pd-ssd", "pd-standard", "pd-extreme")


@dataclass(frozen=True, slots=True)
class DiskSupport:
    """The disks of a machine series. `persistent_disk` is None if no page that was read says."""

    series: str
    hyperdisk_types: tuple[str, ...]
    persistent_disk: bool | None
    source: str

    def attaches(self, disk_type: str) -> bool | None:
        return disk_type in self.hyperdisk_types if disk_type in HYPERDISK else self.persistent_disk


def disk_support(machine_type: str) -> DiskSupport | None:
    """Return None if unknown. N1 has one entry with or without GPUs: plain N1 needs Google's consent to Hyperdisk."""
    prefixes = [prefix for prefix in _series() if machine_type.startswith(f"{prefix}-")]
    return _series()[max(prefixes, key=len)] if prefixes else None


@cache
def _series() -> dict[str, DiskSupport]:
    return {
        prefix: _support(row) for row in rows("gcp_hyperdisk_machines.csv") for prefix in row.parts("machine_prefixes")
    }


def _support(row: Row) -> DiskSupport:
    told = {"yes": True, "no": False, "": None}
    if row["persistent_disk"] not in told:
        raise row.damaged("persistent_disk", f"neither yes, no nor empty: {row['persistent_disk']}")
    for name in row.parts("hyperdisk_types"):
        if name not in HYPERDISK:
            raise row.damaged("hyperdisk_types", f"not a type of Hyperdisk: {name}")
    return DiskSupport(row["series"], row.parts("hyperdisk_types"), told[row["persistent_disk"]], row["source"])

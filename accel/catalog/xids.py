"""Errors that NVIDIA's driver reports in the kernel's log (XIDs), and whether a node that had one takes new pods."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import Row, rows


@dataclass(frozen=True, slots=True)
class Xid:
    """An XID. `action` is NVIDIA's immediate one, in its own word; `cordon`: no new pod belongs on that GPU before the
    GPU was reset or the node was replaced. 154 repeats what another one asks for, and counts by its text."""

    number: int
    mnemonic: str
    what: str
    action: str
    cordon: bool
    source: str


@cache
def xids() -> dict[int, Xid]:
    """Every XID of the catalogue by its number. Those that NVIDIA ties to a subcode (144 to 150) are not in it."""
    return {xid.number: xid for xid in map(_xid, rows("xids.csv"))}


def cordoning() -> list[int]:
    """The numbers after which a node takes no new pods, in order."""
    return sorted(number for number, xid in xids().items() if xid.cordon)


def _xid(row: Row) -> Xid:
    if row["cordon"] not in ("yes", "no"):
        raise row.damaged("cordon", f"neither yes nor no: {row['cordon']}")
    return Xid(
        number=row.integer("xid"),
        mnemonic=row["mnemonic"],
        what=row["what"],
        action=row["action"],
        cordon=row["cordon"] == "yes",
        source=row["source"],
    )

"""GPU errors that NVIDIA's driver reports in the kernel log (XIDs), and whether an affected node takes new pods."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.tables import Row, rows


@dataclass(frozen=True, slots=True)
class Xid:
    """An XID. `action` is NVIDIA's immediate action, in its own wording. `cordon`: the GPU takes no new pods until it
    is reset or its node is replaced. 154 repeats what another XID asks for, and is judged by its text."""

    number: int
    mnemonic: str
    what: str
    action: str
    cordon: bool
    source: str


@cache
def xids() -> dict[int, Xid]:
    """Return XIDs by number, without those that NVIDIA ties to a subcode (144 to 150)."""
    return {xid.number: xid for xid in map(_xid, rows("xids.csv"))}


def cordoning() -> list[int]:
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

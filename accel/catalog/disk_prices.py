"""Prices of Persistent Disks and local SSDs on Google Cloud."""

from __future__ import annotations

from functools import cache

from accel.catalog.network_prices import PartPrice
from accel.catalog.tables import Row, rows

KINDS = ("pd-balanced", "pd-standard", "pd-ssd", "local-ssd")


def disk_price(region: str, kind: str) -> PartPrice | None:
    """Return USD per GiB and month; None if no figure is known for the region or the kind, such as a Hyperdisk."""
    row = _rows().get(region)
    usd = row.number(kind) if row is not None and kind in KINDS else None
    return PartPrice(usd, "GiB-month", row["source"], row["snapshot"], "medium") if row is not None and usd else None


@cache
def _rows() -> dict[str, Row]:
    return {row["region"]: row for row in rows("gcp_disk_prices.csv")}

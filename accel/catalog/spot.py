"""Spot interruption rates as published by AWS's Spot Instance Advisor."""

from dataclasses import dataclass
from functools import cache

from accel.catalog.machines import check_name, check_names
from accel.catalog.places import check_region
from accel.catalog.tables import Table, read

_BANDS = {"<5%": (0.0, 0.05), "5-10%": (0.05, 0.1), "10-15%": (0.1, 0.15), "15-20%": (0.15, 0.2), ">20%": (0.2, 1.0)}


@dataclass(frozen=True, slots=True)
class Interruption:
    """The interruption rate of one instance type's Spot capacity in one region. `band` is the advisor's text; `low` and
    `high` are its bounds as fractions of the capacity reclaimed in the trailing month
    (https://pkg.go.dev/github.com/grailbio/base/cloud/spotadvisor quotes AWS's definition), so the probability for a
    job of a few hours is far smaller. `savings_pct` is relative to on demand over the trailing 30 days, averaged over
    zones; negative if Spot cost more. `date` is the day of the feed."""

    band: str
    low: float
    high: float
    savings_pct: int
    date: str


@cache
def _table() -> Table:
    return read("aws_spot_advisor.csv")


@cache
def _index() -> dict[tuple[str, str], int]:
    table = _table()
    check_names(table, table.of("cloud", "machine"))
    return {(region, machine): index for index, (region, machine) in enumerate(table.of("region", "machine"))}


def interruption(region: str, machine: str) -> Interruption | None:
    """Return None if the advisor has none; Google Cloud publishes no such figure. Raise UnknownName, DamagedData."""
    index = _index().get((region, machine))
    if index is None:
        check_name("aws", machine)
        check_region("aws", region)
        return None
    return _interruption(index)


@cache
def _interruption(index: int) -> Interruption:
    row = _table().row(index)
    band = row["interruption_band"]
    if band not in _BANDS:
        raise row.damaged("interruption_band", f"not one of {', '.join(_BANDS)}: {band}")
    low, high = _BANDS[band]
    return Interruption(band, low, high, row.integer("savings_over_on_demand_pct"), row["snapshot"])

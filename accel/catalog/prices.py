"""Prices, each with its date and source. An unknown price is None with the reason, never zero."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from accel.catalog.machines import check_name, check_names, kinds
from accel.catalog.places import check_region, where
from accel.catalog.tables import Row, Table, read

TYPE_CHECKING = False  # typing takes 5 ms to import; the type checker knows this name
if TYPE_CHECKING:
    from typing import Literal

    Confidence = Literal["high", "medium", "low"]
    Scope = Literal["machine", "gpu-only", "tpu-slice"]

_SCOPES: dict[str, Scope] = {"n1-attach": "gpu-only", "tpu-slice": "tpu-slice"}
"""Scope by kind of machine; every other kind is priced whole."""

_CONFIDENCE: dict[str, Confidence] = {"high": "high", "medium": "medium", "low": "low"}


@dataclass(frozen=True, slots=True)
class Price:
    """The price per hour of a machine in a region, in USD, for Linux and without discounts. `spot` is the median over
    the zones at one instant, `spot_low` the minimum (equal on Google Cloud, which has one price per region). None is
    unknown, and `why_unknown` gives the reason; it is None if both are known. Dates are the day of the list, or a range
    of months if the source had no date. `scope`: the whole `machine`, attached GPUs without their host (`gpu-only`), or
    a TPU slice with its hosts (`tpu-slice`). `includes_local_ssd` is None if it does not apply. Sources are ids of
    sources.csv."""

    on_demand: float | None
    spot: float | None
    spot_low: float | None
    on_demand_date: str | None
    spot_date: str | None
    on_demand_source: str | None
    spot_source: str | None
    confidence: Confidence
    scope: Scope
    why_unknown: str | None
    includes_local_ssd: bool | None = None
    notes: str = ""


@cache
def _table() -> Table:
    return read("prices.csv")


@cache
def _index() -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}
    for index, (cloud, region, machine) in enumerate(_table().of("cloud", "region", "machine")):
        regions = found.get((cloud, machine))
        if regions is None:
            regions = found[cloud, machine] = {}
        regions[region] = index
    check_names(_table(), found)
    return found


def price(cloud: str, region: str, machine: str) -> Price:
    """Price a machine, an attachment or a TPU slice. Raise DamagedData, or UnknownName, which names a zone's region."""
    index = _index().get((cloud, machine), {}).get(region)
    if index is not None:
        return _price(cloud, machine, region, index)
    check_name(cloud, machine)
    check_region(cloud, region)
    return _unknown(cloud, machine, _why_no_line(cloud, region, machine))


def prices_for(cloud: str, machine: str) -> dict[str, Price]:
    """Return prices by region that offers the machine or has a price; an unknown one has a reason. Raise
    UnknownName."""
    check_name(cloud, machine)
    known = _index().get((cloud, machine), {})
    return {region: price(cloud, region, machine) for region in sorted({*known, *where(cloud, machine)})}


@cache
def _price(cloud: str, machine: str, region: str, index: int) -> Price:
    row = _table().row(index)
    if row["confidence"] not in _CONFIDENCE:
        raise row.damaged("confidence", f"not one of {', '.join(_CONFIDENCE)}: {row['confidence']}")
    scope = _scope(cloud, machine)
    if row["price_scope"] != scope:
        raise row.damaged("price_scope", f"must be {scope}: {row['price_scope']}")
    on_demand, spot = _dollars(row, "on_demand_usd_hour"), _dollars(row, "spot_usd_hour_median")
    return Price(
        on_demand=on_demand,
        spot=spot,
        spot_low=_dollars(row, "spot_usd_hour_min"),
        on_demand_date=row["on_demand_snapshot"] or None,
        spot_date=row["spot_snapshot"] or None,
        on_demand_source=row["on_demand_source"] or None,
        spot_source=row["spot_source"] or None,
        confidence=_CONFIDENCE[row["confidence"]],
        scope=scope,
        why_unknown=_why_a_hole(row, machine, region, on_demand, spot),
        includes_local_ssd={"yes": True, "no": False}.get(row["includes_local_ssd"]),
        notes=row["notes"],
    )


def _dollars(row: Row, column: str) -> float | None:
    value = row.number(column)
    if value is not None and value <= 0:
        raise row.damaged(column, f"not above zero: {row[column]}")
    return value


def _scope(cloud: str, machine: str) -> Scope:
    return _SCOPES.get(kinds(cloud)[machine], "machine")


def _unknown(cloud: str, machine: str, why: str) -> Price:
    return Price(None, None, None, None, None, None, None, "low", _scope(cloud, machine), why)


def _why_a_hole(row: Row, machine: str, region: str, on_demand: float | None, spot: float | None) -> str | None:
    missing = [kind for kind, value in (("on-demand", on_demand), ("Spot", spot)) if value is None]
    if not missing:
        return None
    note = f" ({row['notes']})" if on_demand is None and row["notes"] else ""
    return f"no {' or '.join(missing)} price of {machine} in {region} was in the lists that were read{note}"


def _why_no_line(cloud: str, region: str, machine: str) -> str:
    if kinds(cloud)[machine] == "tpu-host":
        return f"{machine} is a TPU host; TPUs are priced by the slice"
    if region not in where(cloud, machine):
        return f"{machine} is not known to be offered in {region}"
    if (cloud, machine) not in _index():
        return f"no price of {machine} was in the lists that were read"
    return f"{machine} is offered in {region}; no price of it there was in the lists that were read"

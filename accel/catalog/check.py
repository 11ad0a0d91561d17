"""Consistency checks of prices, regions and sources. A refreshed catalogue must pass them before it is written."""

import re
from collections.abc import Iterator, Sequence

from accel.catalog.tables import DamagedData, Row, shipped_table

BASES = ("listed", "derived-ratio", "sum-of-skus", "unit-x-count", "unit-x-chips")
CONFIDENCE = ("high", "medium", "low")
ON_DEMAND = ("on_demand_basis", "on_demand_source", "on_demand_snapshot")
SPOT = ("spot_usd_hour_min", "spot_source", "spot_snapshot")
SCOPES = {"n1-attach": "gpu-only", "tpu-slice": "tpu-slice"}

USD_HOUR = (0.005, 50_000.0)
USD_HOUR_AN_ACCELERATOR = (0.05, 32.0)
"""Plausible range, on demand."""

ROUNDING = 1.001
"""Highest accepted ratio of a Spot price to the on-demand price."""

REGION = {"aws": r"[a-z]{2}(-gov)?-[a-z]+-\d", "gcp": r"[a-z]+-[a-z]+\d+"}
ZONE = {"aws": r"[a-z]{3,4}\d-az\d+", "gcp": r"{region}-[a-z]"}


def faults(
    prices: Sequence[Row],
    regions: Sequence[Row],
    sources: Sequence[Row],
    machines: dict[tuple[str, str], Row] | None = None,
) -> Iterator[DamagedData]:
    """Yield the faults of the tables, at most one for each line of prices. `machines`: the shipped table by default."""
    machines = machine_rows() if machines is None else machines
    known = {row["source_id"] for row in sources}
    offered: set[tuple[str, str, str]] = set()
    for row in (*_twice(regions, "cloud", "region", "zone", "machine"), *_twice(prices, "cloud", "region", "machine")):
        yield row.damaged("machine", f"a second line: {row['machine']}")
    for row in regions:
        offered.add((row["cloud"], row["region"], row["machine"]))
        yield from _place(row, machines, known)
    for row in prices:
        fault = price_fault(row, machines, known)
        if fault is not None:
            yield fault
        elif (row["cloud"], row["region"], row["machine"]) not in offered:
            yield row.damaged("region", f"does not offer {row['machine']}: {row['region']}")


def machine_rows() -> dict[tuple[str, str], Row]:
    return {(row["cloud"], row["machine"]): row for row in shipped_table("machines.csv").rows()}


def price_fault(row: Row, machines: dict[tuple[str, str], Row], sources: set[str]) -> DamagedData | None:
    try:
        return next(_price(row, machines, sources), None)
    except DamagedData as error:
        return error


def _twice(table: Sequence[Row], *key: str) -> Iterator[Row]:
    seen: set[tuple[str, ...]] = set()
    for row in table:
        cells = tuple(row[column] for column in key)
        if cells in seen:
            yield row
        seen.add(cells)


def _place(row: Row, machines: dict[tuple[str, str], Row], sources: set[str]) -> Iterator[DamagedData]:
    cloud, region, zone = row["cloud"], row["region"], row["zone"]
    if (cloud, row["machine"]) not in machines:
        yield row.damaged("machine", f"unknown machine: {row['machine']}")
    elif not re.fullmatch(REGION[cloud], region):
        yield row.damaged("region", f"not the name of a region: {region}")
    elif zone and not re.fullmatch(ZONE[cloud].replace("{region}", region), zone):
        yield row.damaged("zone", f"not a zone of {region}: {zone}")
    if row["source"] not in sources:
        yield row.damaged("source", f"unknown source: {row['source']}")


def _price(row: Row, machines: dict[tuple[str, str], Row], sources: set[str]) -> Iterator[DamagedData]:
    machine = machines.get((row["cloud"], row["machine"]))
    if machine is None:
        yield row.damaged("machine", f"unknown machine: {row['machine']}")
        return
    scope = SCOPES.get(machine["kind"], "machine")
    if row["price_scope"] != scope:
        yield row.damaged("price_scope", f"must be {scope}: {row['price_scope']}")
    if row["confidence"] not in CONFIDENCE:
        yield row.damaged("confidence", f"not one of {', '.join(CONFIDENCE)}: {row['confidence']}")
    on_demand, median = row.number("on_demand_usd_hour"), row.number("spot_usd_hour_median")
    if on_demand is None and median is None:
        yield row.damaged("on_demand_usd_hour", "is empty, and so is Spot")
    for usd, columns in ((on_demand, ON_DEMAND), (median, SPOT)):
        for column in columns:
            if bool(row[column]) != (usd is not None):
                yield row.damaged(column, "must be there with its price, and only then")
    if on_demand is not None and row["on_demand_basis"] not in BASES:
        yield row.damaged("on_demand_basis", f"not one of {', '.join(BASES)}: {row['on_demand_basis']}")
    for column in ("on_demand_source", "spot_source"):
        if row[column] and row[column] not in sources:
            yield row.damaged(column, f"unknown source: {row[column]}")
    yield from _plausible(row, machine, on_demand, median)


def _plausible(row: Row, machine: Row, on_demand: float | None, median: float | None) -> Iterator[DamagedData]:
    low = row.number("spot_usd_hour_min")
    if low is not None and median is not None and not 0 < low <= median:
        yield row.damaged("spot_usd_hour_min", f"not between zero and the median: {low:g}")
    if on_demand is None:
        return
    if not USD_HOUR[0] < on_demand < USD_HOUR[1]:
        yield row.damaged("on_demand_usd_hour", f"not plausible: {on_demand:g}")
    if median is not None and median > on_demand * ROUNDING:
        yield row.damaged("spot_usd_hour_median", f"above on demand, {on_demand:g}: {median:g}")
    if machine["kind"] == "accelerator":
        each = on_demand / machine.figure("accelerator_count")
        if not USD_HOUR_AN_ACCELERATOR[0] <= each <= USD_HOUR_AN_ACCELERATOR[1]:
            yield row.damaged("on_demand_usd_hour", f"not plausible, {each:g} an accelerator: {on_demand:g}")

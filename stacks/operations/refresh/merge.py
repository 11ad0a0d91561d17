"""Live readings merged into the shipped prices and offers, and the complete catalogue written to the cache."""

import csv
import io
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from accel.catalog import selection
from accel.catalog.check import SCOPES, faults, machine_rows, price_fault
from accel.catalog.tables import Row, Table, shipped_table
from accel.diagnostics.errors import BadInput, JobsError

from .reading import Key, Reading

KEPT_SNAPSHOTS = 2
"""Catalogues left in the cache: the new one, and the one before it, which another process may be reading."""

DRAFT_AGE_S = 3600
"""Age after which a draft is the leftover of a killed refresh."""


@dataclass(frozen=True)
class MergeResult:
    """The text of each file, how many lines of a region have a live figure, and what stays as shipped and why."""

    texts: dict[str, str]
    counts: dict[Key, dict[str, int]]
    kept: tuple[str, ...]


Cells = dict[str, str]
"""The cells of one line by column."""


def merge(readings: Sequence[Reading], day: str) -> MergeResult:
    """Keep shipped values and dates of what was not read on `day` (2026-11-22). Raise JobsError if inconsistent."""
    tables = {name: shipped_table(name) for name in selection.REFRESHED}
    prices, regions, sources = ([dict(row) for row in table.rows()] for table in tables.values())
    kept = [line for reading in readings for line in (*reading.kept, *reading.types.kept)]
    added = _added(readings)
    for reading in readings:
        regions = _regions(reading, regions, day)
        sources += _sources(reading, day)
    offered = {(row["cloud"], row["region"], row["machine"]) for row in regions}
    kinds, known = machine_rows() | _kinds(added["machines.csv"]), {row["source_id"] for row in sources}
    lines = {(row["cloud"], row["region"], row["machine"]): row for row in prices}
    counts: dict[Key, dict[str, int]] = {}
    for reading in readings:
        for region in reading.regions:
            counts[reading.cloud, region] = {"on_demand": 0, "spot": 0, "offers": len(reading.offers.get(region, {}))}
        for region, machine in sorted({*reading.on_demand, *reading.spot}):
            key = (reading.cloud, region, machine)
            if key not in offered:
                continue
            line = _laid_over(lines.get(key), reading, (region, machine), kinds[reading.cloud, machine], day)
            fault = price_fault(_row(tables["prices.csv"], line), kinds, known)
            if fault is not None:
                kept.append(f"{machine} in {region}: {fault.column}: {fault.why}")
                continue
            lines[key] = line
            counts[reading.cloud, region]["on_demand"] += (region, machine) in reading.on_demand
            counts[reading.cloud, region]["spot"] += (region, machine) in reading.spot
    in_order = [lines[key] for key in sorted(lines, key=_by_machine) if key in offered]
    written = zip(tables.items(), (in_order, regions, sources), strict=True)
    texts = {name: _text(table, cells) for (name, table), cells in written}
    texts |= {name: _text(shipped_table(name), cells) for name, cells in added.items() if cells}
    check(texts, kinds)
    return MergeResult(texts, counts, tuple(kept))


def _added(readings: Sequence[Reading]) -> dict[str, list[Cells]]:
    found = {
        "accelerators.csv": [line for reading in readings for line in reading.types.accelerators.values()],
        "machines.csv": [line for reading in readings for line in reading.types.machines.values()],
    }
    return {
        name: [dict.fromkeys(shipped_table(name).columns, "") | line for line in lines] for name, lines in found.items()
    }


def _kinds(lines: Sequence[Cells]) -> dict[tuple[str, str], Row]:
    return {(line["cloud"], line["machine"]): _row(shipped_table("machines.csv"), line) for line in lines}


def check(texts: Mapping[str, str], machines: dict[tuple[str, str], Row] | None = None) -> None:
    """Raise JobsError with the first fault of the files as their readers will see them."""
    prices, regions, sources = (Table(name, texts[name]).rows() for name in selection.REFRESHED)
    fault = next(faults(prices, regions, sources, machines), None)
    if fault is not None:
        raise JobsError(f"nothing is written, for the new catalogue would not hold together: {fault}")


def _by_machine(key: tuple[str, str, str]) -> tuple[str, str, str]:
    cloud, region, machine = key
    return cloud, machine, region


def _regions(reading: Reading, regions: list[Cells], day: str) -> list[Cells]:
    source = reading.types.source
    new = [
        {"cloud": reading.cloud, "region": region, "zone": zone, "machine": name, "source": source.id, "snapshot": day}
        for (region, name), zones in (reading.types.places if source else {}).items()
        for zone in sorted(zones)
        if source is not None
    ]
    if reading.offers_source is None:
        return sorted((*regions, *new), key=_by_place)
    left = [row for row in regions if row["cloud"] != reading.cloud or row["region"] not in reading.offers]
    live = [
        {"cloud": reading.cloud, "region": region, "zone": zone, "machine": machine}
        | {"source": reading.offers_source.id, "snapshot": day}
        for region, machines in reading.offers.items()
        for machine, zones in machines.items()
        for zone in zones
    ]
    return sorted((*left, *live), key=_by_place)


def _by_place(row: Cells) -> tuple[str, ...]:
    return row["cloud"], row["machine"], row["region"], row["zone"]


def _sources(reading: Reading, day: str) -> Iterator[Cells]:
    used = ((reading.on_demand, reading.on_demand_source), (reading.spot, reading.spot_source))
    read = [each for figures, each in (*used, (reading.offers, reading.offers_source)) if figures]
    for source in dict.fromkeys((*read, reading.types.source)):
        if source is not None:
            cells = {"source_id": source.id, "what": source.what, "revision": "-", "snapshot": day}
            yield cells | {"licence": "read for this user alone", "used_for": source.used_for}


def _laid_over(shipped_line: Cells | None, reading: Reading, key: Key, machine: Row, day: str) -> Cells:
    """Return a line of prices with the values read. A note about the on-demand price goes with the price. The line has
    the reading's confidence if all of it was read, else no more than the shipped one."""
    region, name = key
    line = dict(shipped_line) if shipped_line else _blank(reading.cloud, region, name, machine)
    on_demand, spot = reading.on_demand.get(key), reading.spot.get(key)
    if on_demand is not None:
        line["on_demand_usd_hour"] = _usd(on_demand)
        line["on_demand_basis"] = reading.basis.get(machine["kind"], reading.basis["machine"])
        line |= {"on_demand_source": reading.on_demand_source.id, "on_demand_snapshot": day}
        if line["price_scope"] == "machine":
            line |= {"notes": "", "includes_local_ssd": _includes_ssd(machine)}
    if spot is not None:
        line["spot_usd_hour_min"], line["spot_usd_hour_median"] = _usd(spot.low), _usd(spot.median)
        line |= {"spot_zone_count": str(spot.zones), "spot_basis": reading.spot_basis}
        line |= {"spot_source": reading.spot_source.id, "spot_snapshot": day}
    left = (on_demand is None and line["on_demand_usd_hour"]) or (spot is None and line["spot_usd_hour_median"])
    if not left:
        line["confidence"] = reading.sure
    return line


def _blank(cloud: str, region: str, name: str, machine: Row) -> Cells:
    line = dict.fromkeys(shipped_table("prices.csv").columns, "")
    scope = SCOPES.get(machine["kind"], "machine")
    line |= {"cloud": cloud, "region": region, "machine": name, "price_scope": scope}
    return line | {"includes_local_ssd": _includes_ssd(machine)}


def _includes_ssd(machine: Row) -> str:
    return {"bundled": "yes", "optional": "no"}.get(machine["local_ssd_mode"], "n/a")


def _usd(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _row(table: Table, line: Cells) -> Row:
    return Row(table.file, 0, table.columns, [line[column] for column in table.columns])


def _text(table: Table, lines: Sequence[Cells]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([line[column] for column in table.columns] for line in lines)
    return stream.getvalue()


def write(texts: Mapping[str, str], now: datetime) -> Path:
    """Write a dated folder in the cache, atomically; of older ones keep the last. Raise BadInput where that fails."""
    cache = Path(selection.cache())
    try:
        cache.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=cache))
        try:
            for name, text in texts.items():
                with (draft / name).open("w", encoding="utf-8") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(stream.fileno())
            folder = draft.rename(cache / now.strftime("%Y-%m-%dT%H%M%S.%fZ"))
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise BadInput(f"{error.filename or cache}: cannot be written: {error.strerror}") from None
    _prune(cache)
    return folder


def _prune(cache: Path) -> None:
    for name in selection.snapshots()[:-KEPT_SNAPSHOTS]:
        shutil.rmtree(cache / name, ignore_errors=True)
    for draft in cache.glob(".draft-*"):
        if time.time() - draft.stat().st_mtime > DRAFT_AGE_S:
            shutil.rmtree(draft, ignore_errors=True)

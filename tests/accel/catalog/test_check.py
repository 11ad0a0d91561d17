"""The check that a refreshed catalogue must pass: the shipped one does, and each kind of damage does not."""

from collections.abc import Callable

import pytest

from accel.catalog.check import faults
from accel.catalog.tables import Row, shipped_table

A2 = ("gcp", "us-central1", "a2-highgpu-1g")
T4 = ("gcp", "us-central1", "n1+nvidia-tesla-t4x1")
Tables = dict[str, list[Row]]


def tables() -> Tables:
    return {name: shipped_table(f"{name}.csv").rows() for name in ("prices", "regions", "sources")}


def found(changed: Tables) -> list[str]:
    return [str(fault) for fault in faults(changed["prices"], changed["regions"], changed["sources"])]


def line(rows: list[Row], key: tuple[str, str, str]) -> Row:
    return next(row for row in rows if (row["cloud"], row["region"], row["machine"]) == key)


def test_what_ships_passes() -> None:
    assert found(tables()) == []


@pytest.mark.parametrize(
    "key, changes, why",
    [
        (A2, {"on_demand_usd_hour": "dear"}, "on_demand_usd_hour: not a number: dear"),
        (A2, {"on_demand_usd_hour": "nan"}, "on_demand_usd_hour: not a number: nan"),
        (A2, {"on_demand_usd_hour": "0"}, "on_demand_usd_hour: not plausible: 0"),
        (A2, {"on_demand_usd_hour": "60000"}, "on_demand_usd_hour: not plausible: 60000"),
        (A2, {"on_demand_usd_hour": "33"}, "on_demand_usd_hour: not plausible, 33 an accelerator: 33"),
        (A2, {"on_demand_usd_hour": "1.5"}, "spot_usd_hour_median: above on demand, 1.5: 1.92802"),
        (A2, {"spot_usd_hour_min": "2"}, "spot_usd_hour_min: not between zero and the median: 2"),
        (A2, {"spot_usd_hour_min": ""}, "spot_usd_hour_min: must be there with its price, and only then"),
        (A2, {"on_demand_snapshot": ""}, "on_demand_snapshot: must be there with its price, and only then"),
        (A2, {"spot_usd_hour_median": ""}, "spot_usd_hour_min: must be there with its price, and only then"),
        (A2, {"on_demand_basis": "guessed"}, "on_demand_basis: not one of listed, derived-ratio"),
        (A2, {"spot_source": "hearsay"}, "spot_source: unknown source: hearsay"),
        (A2, {"confidence": "sure"}, "confidence: not one of high, medium, low: sure"),
        (T4, {"price_scope": "machine"}, "price_scope: must be gpu-only: machine"),
        (A2, {"machine": "a2-hugegpu-1g"}, "machine: unknown machine: a2-hugegpu-1g"),
        (A2, {"region": "us-east4"}, "region: does not offer a2-highgpu-1g: us-east4"),
        (A2, {"on_demand_usd_hour": "", "spot_usd_hour_median": ""}, "on_demand_usd_hour: is empty, and so is Spot"),
    ],
)  # fmt: skip
def test_a_damaged_price_is_found_with_its_line(key: tuple[str, str, str], changes: dict[str, str], why: str) -> None:
    changed = tables()
    row = line(changed["prices"], key)
    assert all(row[column] != value for column, value in changes.items())
    row |= changes
    assert found(changed)[0].startswith(f"prices.csv:{row.line}: {why}")


def test_a_second_line_is_found() -> None:
    changed = tables()
    again = line(changed["prices"], A2)
    changed["prices"].append(Row("prices.csv", 9999, tuple(again), list(again.values())))
    assert found(changed) == ["prices.csv:9999: machine: a second line: a2-highgpu-1g"]


@pytest.mark.parametrize(
    "change, why",
    [
        (lambda row: row.update(zone="us-central1"), "zone: not a zone of us-central1: us-central1"),
        (lambda row: row.update(region="Iowa"), "region: not the name of a region: Iowa"),
        (lambda row: row.update(machine="a2"), "machine: unknown machine: a2"),
        (lambda row: row.update(cloud="azure"), "machine: unknown machine: a2-highgpu-1g"),
        (lambda row: row.update(source="hearsay"), "source: unknown source: hearsay"),
    ],
)
def test_a_damaged_offer_is_found_with_its_line(change: Callable[[Row], None], why: str) -> None:
    changed = tables()
    row = line(changed["regions"], A2)
    change(row)
    assert found(changed)[0] == f"regions.csv:{row.line}: {why}"


def test_a_price_without_an_offer_and_a_source_that_is_gone() -> None:
    changed = tables()
    changed["regions"] = [row for row in changed["regions"] if row["region"] != "us-central1"]
    assert any("does not offer a2-highgpu-1g: us-central1" in told for told in found(changed))
    changed = tables()
    changed["sources"] = [row for row in changed["sources"] if row["source_id"] != "karpenter-gcp"]
    assert any("unknown source: karpenter-gcp" in told for told in found(changed))

"""The files of prices, regions and Spot bands agree with the machines and with well-known figures."""

import re
from collections import defaultdict

import pytest

from accel.catalog.tables import rows

MACHINES = {(row["cloud"], row["machine"]): row for row in rows("machines.csv")}
SOURCES = {row["source_id"] for row in rows("sources.csv")}
PRICES = rows("prices.csv")
REGIONS = rows("regions.csv")
ADVISOR = rows("aws_spot_advisor.csv")
OFFERED = {(row["cloud"], row["region"], row["machine"]) for row in REGIONS}
PRICED = {(row["cloud"], row["region"], row["machine"]): row for row in PRICES}


@pytest.mark.parametrize(
    "table, count, key",
    [
        (PRICES, 2829, ["cloud", "region", "machine"]),
        (REGIONS, 7489, ["cloud", "region", "zone", "machine"]),
        (ADVISOR, 796, ["cloud", "region", "machine"]),
    ],
    ids=["prices", "regions", "advisor"],
)
def test_keys_are_unique_and_no_line_was_lost(table, count: int, key: list[str]) -> None:
    assert len(table) == count
    assert len({tuple(row[column] for column in key) for row in table}) == count


def test_prices_are_of_machines_that_the_region_offers() -> None:
    assert PRICED.keys() <= OFFERED
    assert {(row["cloud"], row["region"], row["machine"]) for row in ADVISOR} <= OFFERED
    assert {(cloud, machine) for cloud, _, machine in OFFERED} <= MACHINES.keys()


def test_what_is_no_slice_is_offered_somewhere() -> None:
    offered = {(cloud, machine) for cloud, _, machine in OFFERED}
    assert {key for key, row in MACHINES.items() if row["kind"] not in ("tpu-slice", "cpu")} <= offered


def test_a_price_has_its_basis_source_and_date() -> None:
    for row in PRICES:
        on_demand, spot = row["on_demand_usd_hour"], row["spot_usd_hour_median"]
        assert on_demand or spot, row
        for column in ("on_demand_basis", "on_demand_source", "on_demand_snapshot"):
            assert bool(row[column]) == bool(on_demand), row
        for column in ("spot_usd_hour_min", "spot_source", "spot_snapshot"):
            assert bool(row[column]) == bool(spot), row
        bases = ("", "listed", "derived-ratio", "sum-of-skus", "unit-x-count", "unit-x-chips")
        assert row["on_demand_basis"] in bases, row
        assert {row["on_demand_source"], row["spot_source"]} - {""} <= SOURCES, row
        assert row["confidence"] in ("high", "medium", "low"), row


def test_the_scope_follows_from_the_kind() -> None:
    scopes = {"tpu-slice": "tpu-slice", "n1-attach": "gpu-only"}
    for row in PRICES:
        kind = MACHINES[row["cloud"], row["machine"]]["kind"]
        assert row["price_scope"] == scopes.get(kind, "machine"), row


def test_prices_are_plausible() -> None:
    for row in PRICES:
        on_demand, low, spot = (
            row.number(column) for column in ("on_demand_usd_hour", "spot_usd_hour_min", "spot_usd_hour_median")
        )
        assert on_demand is None or 0.005 < on_demand < 50000, row
        assert low is None or spot is None or 0 < low <= spot, row
        assert spot is None or on_demand is None or spot <= on_demand * 1.001, row
        machine = MACHINES[row["cloud"], row["machine"]]
        if on_demand is not None and machine["kind"] == "accelerator":
            assert 0.05 <= on_demand / machine.figure("accelerator_count") <= 32, row


@pytest.mark.parametrize(
    "cloud, region, machine, usd",
    [
        ("aws", "us-east-1", "p5.48xlarge", 55.04),
        ("aws", "us-east-1", "p4d.24xlarge", 21.957642),
        ("aws", "us-east-1", "g4dn.xlarge", 0.526),
        ("gcp", "us-central1", "a2-highgpu-1g", 3.673385),
        ("gcp", "us-central1", "a3-highgpu-8g", 88.49),
        ("gcp", "us-central1", "g2-standard-4", 0.706832),
        ("gcp", "us-central1", "v5litepod-8", 9.6),
        ("gcp", "us-central1", "v6e-8", 21.6),
        ("gcp", "us-central1", "n1+nvidia-tesla-t4x1", 0.35),
    ],
)
def test_well_known_prices(cloud: str, region: str, machine: str, usd: float) -> None:
    assert PRICED[cloud, region, machine].number("on_demand_usd_hour") == pytest.approx(usd, rel=1e-3)


def test_the_sizes_of_an_aws_family_keep_one_ratio_to_us_east_1() -> None:
    """One mistyped digit would break it."""
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (cloud, region, machine), row in PRICED.items():
        home = PRICED.get(("aws", "us-east-1", machine))
        if cloud == "aws" and row["on_demand_basis"] == "listed" and "-gov-" not in region and home:
            family = MACHINES["aws", machine]["series"]
            if home["on_demand_usd_hour"]:
                ratios[family, region].append(row.figure("on_demand_usd_hour") / home.figure("on_demand_usd_hour"))
    assert len(ratios) > 65
    for key, found in ratios.items():
        assert max(found) / min(found) - 1 < 0.0025, key
        assert 0.9 <= min(found) <= 1.6, key


def test_the_slices_of_a_tpu_version_have_one_price_a_chip() -> None:
    chips: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (cloud, region, machine), row in PRICED.items():
        slice_ = MACHINES[cloud, machine]
        if slice_["kind"] == "tpu-slice" and row["on_demand_usd_hour"] and slice_["tpu_version"] > "tpu-v3":
            chips[slice_["tpu_version"], region].append(row.figure("on_demand_usd_hour") / slice_.figure("tpu_chips"))
    assert chips
    for key, found in chips.items():
        assert max(found) / min(found) - 1 < 1e-3, key


def test_regions_and_zones_have_the_form_of_their_cloud() -> None:
    for row in REGIONS:
        region, zone = row["region"], row["zone"]
        assert row["source"] in SOURCES, row
        if row["cloud"] == "gcp":
            assert re.fullmatch(r"[a-z]+-[a-z]+\d+", region), row
            assert not zone or re.fullmatch(rf"{region}-[a-f]", zone), row
        else:
            assert re.fullmatch(r"[a-z]{2}(-gov)?-[a-z]+-\d", region), row
            assert not zone or re.fullmatch(r"[a-z]{3,4}\d-az\d+", zone), row


def test_spot_bands() -> None:
    assert {row["interruption_band"] for row in ADVISOR} == {"<5%", "5-10%", "10-15%", "15-20%", ">20%"}
    assert all(-150 <= row.integer("savings_over_on_demand_pct") <= 95 for row in ADVISOR)
    assert {row["cloud"] for row in ADVISOR} == {"aws"}

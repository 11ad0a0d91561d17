import dataclasses

import pytest

from accel.catalog import UnknownName, interruption, price, prices_for
from accel.catalog.machines import kinds
from accel.catalog.places import where
from accel.catalog.tables import rows


def test_a_price_has_both_figures_their_dates_and_sources() -> None:
    found = price("gcp", "us-central1", "a2-highgpu-1g")
    assert found.on_demand == pytest.approx(3.673385)
    assert found.spot is not None and found.spot == found.spot_low
    assert (found.on_demand_date, found.on_demand_source) == ("2026-08-03", "karpenter-gcp")
    assert (found.spot_date, found.spot_source) == ("2026-08-03", "karpenter-gcp")
    assert (found.confidence, found.scope, found.why_unknown) == ("high", "machine", None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.on_demand = 1.0  # pyright: ignore


def test_spot_is_the_median_over_zones_and_the_least() -> None:
    found = price("aws", "us-east-1", "g5.xlarge")
    assert found.spot is not None and found.spot_low is not None and found.on_demand is not None
    assert found.spot_low <= found.spot <= found.on_demand
    assert "inferred" in str(found.spot_date)


@pytest.mark.parametrize(
    "machine, scope",
    [("g2-standard-4", "machine"), ("n1+nvidia-tesla-t4x1", "gpu-only"), ("v5litepod-8", "tpu-slice")],
)
def test_scopes(machine: str, scope: str) -> None:
    assert price("gcp", "us-central1", machine).scope == scope


@pytest.mark.parametrize(
    "cloud, region, machine, why",
    [
        ("aws", "us-west-2", "trn2.48xlarge", "trn2.48xlarge is not known to be offered in us-west-2"),
        ("aws", "us-east-2", "trn2.48xlarge", "no price of trn2.48xlarge was in the lists that were read"),
        ("aws", "us-west-2", "g7e.2xlarge", "g7e.2xlarge is offered in us-west-2; no price of it there was in the "),
        ("gcp", "us-central1", "ct5lp-hightpu-4t", "ct5lp-hightpu-4t is a TPU host; TPUs are priced by the slice"),
        ("gcp", "us-west1", "a2-ultragpu-1g", "a2-ultragpu-1g is not known to be offered in us-west1"),
    ],
)
def test_a_hole_is_none_with_the_reason(cloud: str, region: str, machine: str, why: str) -> None:
    found = price(cloud, region, machine)
    assert found.why_unknown is not None and found.why_unknown.startswith(why)
    assert found.on_demand is found.spot is found.spot_low is found.on_demand_date is None


def test_half_a_hole_says_which_half() -> None:
    b200 = next(each for each in prices_for("gcp", "a4-highgpu-8g").values() if each.spot is not None)
    assert b200.on_demand is None
    assert str(b200.why_unknown).startswith("no on-demand price of a4-highgpu-8g in ")
    assert "90.216" in str(b200.why_unknown)
    inf2 = price("aws", "us-east-1", "inf2.xlarge")
    assert inf2.on_demand is not None and inf2.spot is None
    assert str(inf2.why_unknown).startswith("no Spot price of inf2.xlarge in us-east-1 ")


def test_prices_for_covers_every_region_that_offers_it() -> None:
    found = prices_for("aws", "g5.xlarge")
    assert found.keys() == where("aws", "g5.xlarge").keys()
    assert found["us-east-1"] == price("aws", "us-east-1", "g5.xlarge")
    assert any(each.on_demand is None for each in found.values())


def test_every_price_of_every_machine_can_be_read_and_is_above_zero_or_unknown() -> None:
    seen = 0
    for cloud in ("aws", "gcp"):
        for machine in kinds(cloud):
            for region, found in prices_for(cloud, machine).items():
                figures = (found.on_demand, found.spot, found.spot_low)
                assert all(figure is None or figure > 0 for figure in figures), (region, machine)
                assert (None in (found.on_demand, found.spot)) == (found.why_unknown is not None), (region, machine)
                seen += found.on_demand_source is not None or found.spot_source is not None
    assert seen == len(rows("prices.csv"))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: price("gcp", "us-central1", "a2-highpu-1g"), 'unknown machine type "a2-highpu-1g"; nearest: a2-highg'),
        (lambda: price("aws", "us-esat-1", "g5.xlarge"), 'unknown region "us-esat-1"; nearest: us-east-1'),
        (lambda: price("gcp", "us-central1-a", "g2-standard-4"), "us-central1-a is a zone; the region is us-central1"),
        (lambda: price("azure", "x", "y"), 'unknown cloud "azure"'),
        (lambda: prices_for("aws", "g5.xlrge"), 'unknown instance type "g5.xlrge"; nearest: g5.xlarge'),
        (lambda: interruption("us-east-1", "g5.xlrge"), 'unknown instance type "g5.xlrge"; nearest: g5.xlarge'),
        (lambda: interruption("us-esat-1", "g5.xlarge"), 'unknown region "us-esat-1"; nearest: us-east-1'),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(call, message: str) -> None:
    with pytest.raises(UnknownName) as error:
        call()
    assert str(error.value).startswith(message)


def test_interruptions() -> None:
    found = interruption("af-south-1", "g4dn.12xlarge")
    assert found is not None
    assert (found.band, found.low, found.high, found.savings_pct) == ("<5%", 0.0, 0.05, 87)
    assert found.date == "2025-06-28"
    assert interruption("us-east-1", "p6-b300.48xlarge") is None


@pytest.mark.parametrize("row", rows("aws_spot_advisor.csv")[::7], ids=lambda row: f"{row['region']}-{row['machine']}")
def test_every_band_is_a_fraction(row) -> None:
    found = interruption(row["region"], row["machine"])
    assert found is not None
    assert 0 <= found.low < found.high <= 1

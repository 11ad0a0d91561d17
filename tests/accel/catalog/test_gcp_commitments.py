"""Prices of commitments, against the price list that the catalogue has from elsewhere."""

from accel.catalog.gcp_commitments import HOURS_A_MONTH, commitment_price
from accel.catalog.places import where
from accel.catalog.prices import price
from accel.catalog.tables import rows


def test_every_line_is_of_a_machine_where_it_is_offered() -> None:
    for row in rows("gcp_commitments.csv"):
        assert row["region"] in where("gcp", row["machine"]), row
        assert row["source"].startswith("https://"), row
        assert row["snapshot"], row


def test_on_demand_is_what_the_catalogue_has_of_another_day() -> None:
    """Within a tenth: prices of one region have moved since."""
    compared = 0
    for row in rows("gcp_commitments.csv"):
        known = price("gcp", row["region"], row["machine"]).on_demand
        if known:
            compared += 1
            assert abs(row.figure("on_demand_usd_month") / HOURS_A_MONTH / known - 1) < 0.1, row
    assert compared > 50


def test_a_longer_term_is_cheaper_and_both_save() -> None:
    plans = ("TWELVE_MONTH", "THIRTY_SIX_MONTH")
    for row in rows("gcp_commitments.csv"):
        one, three = (commitment_price(row["machine"], row["region"], plan) for plan in plans)
        assert one and three
        assert 0.3 < three.break_even < one.break_even < 0.75, row
        assert one.saving == 1 - one.break_even


def test_what_is_not_known_is_none() -> None:
    assert commitment_price("a4-highgpu-8g", "us-central1", "TWELVE_MONTH") is None
    assert commitment_price("a2-highgpu-1g", "us-east4", "TWELVE_MONTH") is None

"""Prices of what stands beside the instances."""

import re

import pytest

from accel.catalog.network_prices import part_price
from accel.catalog.tables import rows

ITEMS = ("nat-gateway", "public-ipv4", "interface-endpoint", "gp3-gib", "gp3-iops", "gp3-mib-s")


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2"])
@pytest.mark.parametrize("item", ITEMS)
def test_each_has_a_price_with_source_and_date(region: str, item: str) -> None:
    found = part_price(region, item)
    assert found and 0 < found.usd < 1 and found.unit in ("hour", "month")
    assert found.source.startswith("https://") and re.match(r"20\d\d", found.date)
    assert found.confidence in ("medium", "low"), "no price list of AWS itself was read"


def test_no_line_is_double() -> None:
    keys = [(row["region"], row["item"]) for row in rows("aws_network_prices.csv")]
    assert len(keys) == len(set(keys)) == 2 * len(ITEMS)


def test_what_was_not_read_is_unknown() -> None:
    assert part_price("eu-central-2", "nat-gateway") is None
    assert part_price("us-east-1", "nat") is None

"""Prices of nodes that no one line of the list has, from the lines that there are."""

import pytest

from accel.catalog import price
from accel.catalog.node_prices import find_price, slice_host, together, with_gpus
from accel.catalog.tpu import tpu_pool

HERE = "us-central1"


@pytest.mark.parametrize(
    ("machine", "topology", "slice_name", "hosts"),
    [
        ("ct5lp-hightpu-8t", "2x4", "v5litepod-8", 1),
        ("ct5lp-hightpu-4t", "2x4", "v5litepod-8", 2),
        ("ct5lp-hightpu-4t", "4x4", "v5litepod-16", 4),
        ("ct6e-standard-4t", "4x8", "v6e-32", 8),
    ],
)
def test_the_hosts_of_a_slice_cost_the_slice_together(machine: str, topology: str, slice_name: str, hosts: int) -> None:
    found, whole = slice_host(HERE, tpu_pool(machine, topology)), price("gcp", HERE, slice_name)
    assert whole.on_demand and whole.spot and found.on_demand and found.spot and found.spot_low
    assert found.on_demand * hosts == pytest.approx(whole.on_demand)
    assert found.spot * hosts == pytest.approx(whole.spot) and found.spot_low * hosts == pytest.approx(whole.spot_low)
    assert (found.scope, found.on_demand_date, found.confidence) == ("machine", whole.on_demand_date, whole.confidence)


def test_a_slice_without_a_price_says_why() -> None:
    found = slice_host(HERE, tpu_pool("tpu7x-standard-4t", "2x2x1"))
    assert found.on_demand is found.spot is None and "tpu7x-2x2x1" in str(found.why_unknown)


def test_gpus_are_added_to_their_host() -> None:
    host, gpus = price("gcp", HERE, "n1-standard-8"), price("gcp", HERE, "n1+nvidia-tesla-t4x2")
    found = with_gpus(HERE, "n1-standard-8", "nvidia-tesla-t4", 2)
    assert host.on_demand and gpus.on_demand and host.spot and gpus.spot
    assert found.on_demand == host.on_demand + gpus.on_demand and found.spot == host.spot + gpus.spot
    assert found.on_demand_date == min(str(host.on_demand_date), str(gpus.on_demand_date))
    assert (found.confidence, found.scope, found.why_unknown) == ("medium", "machine", None)


@pytest.mark.parametrize(
    ("region", "host", "said"),
    [(HERE, "n1-custom-8-30720", "n1-custom-8-30720"), ("us-north9", "n1-standard-8", 'unknown region "us-north9"')],
)
def test_a_part_without_a_price_leaves_the_whole_without_one(region: str, host: str, said: str) -> None:
    found = with_gpus(region, host, "nvidia-tesla-t4", 2)
    assert found.on_demand is found.spot is found.on_demand_date is None
    assert said in str(found.why_unknown) and found.confidence == "low"


def test_one_part_is_itself() -> None:
    alone = price("gcp", HERE, "g2-standard-8")
    whole = together(alone)
    assert (whole.on_demand, whole.spot, whole.confidence) == (alone.on_demand, alone.spot, alone.confidence)
    assert find_price("gcp", HERE, "g2-standard-8") == alone
    assert find_price("gcp", HERE, "g2-standard-9").why_unknown

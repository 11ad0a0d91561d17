"""The arithmetic of costs."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel import cost
from accel.cost import Amount, Envelope, Option

PRICES = st.none() | st.floats(min_value=0.01, max_value=100)
OPTIONS = st.lists(
    st.builds(
        Option,
        name=st.sampled_from(["g5.xlarge", "g6.xlarge", "p5.48xlarge"]),
        vcpus=st.integers(1, 192),
        on_demand=PRICES,
        spot=PRICES,
        spot_low=PRICES,
    ),
    max_size=5,
)
POOLS = st.fixed_dictionaries(
    {
        "options": OPTIONS,
        "min_vcpus": st.integers(0, 300),
        "max_vcpus": st.integers(0, 1000),
        "utilisation": st.floats(min_value=0, max_value=1),
        "on_spot": st.booleans(),
    }
)

ONE = Option("g5.xlarge", 4, 1.0, 0.4, 0.3)
LARGE = Option("g5.48xlarge", 192, 16.0)
UNPRICED = Option("g9.xlarge", 4, None)


def pool(*options: Option, **changes: Any) -> Envelope:
    values: dict[str, Any] = {"min_vcpus": 0, "max_vcpus": 10, "utilisation": 0.5, "on_spot": False}
    return cost.pool(options, **{**values, **changes})


@given(POOLS)
def test_worst_is_at_least_expected_is_at_least_floor(values: dict[str, Any]) -> None:
    found = cost.pool(**values)
    if found.worst.usd is None or found.expected.usd is None or found.floor.usd is None:
        assert not any(option.on_demand or (values["on_spot"] and option.spot) for option in values["options"])
        return
    assert found.worst.usd * (1 + 1e-9) >= found.expected.usd >= found.floor.usd >= 0
    if found.spot:
        assert found.spot[0] <= found.spot[1] <= found.worst.usd * (1 + 1e-9)


@given(POOLS)
def test_a_type_without_a_price_never_makes_it_cheaper_and_is_told(values: dict[str, Any]) -> None:
    before = cost.pool(**values)
    after = cost.pool(**{**values, "options": [*values["options"], UNPRICED]})
    assert (after.worst.usd, after.expected.usd) == (before.worst.usd, before.expected.usd)
    assert after.worst.at_least


@given(POOLS, st.floats(min_value=0.001, max_value=10))
def test_what_every_instance_has(values: dict[str, Any], each: float) -> None:
    del values["on_spot"]
    found = cost.cost_per_instance(**values, each=each)
    if not values["options"]:
        assert found.worst == cost.UNKNOWN
        return
    assert found.worst.usd is not None and found.expected.usd is not None and found.floor.usd is not None
    assert found.worst.usd >= found.expected.usd >= found.floor.usd


@given(st.lists(st.builds(Amount, st.none() | st.floats(0, 1e6), st.booleans())))
def test_a_sum_is_its_known_parts_and_says_what_it_lacks(parts: list[Amount]) -> None:
    found = cost.total(parts)
    known = [part.usd for part in parts if part.usd is not None]
    if parts and not known:
        assert found.usd is None
    else:
        assert found.usd is not None and math.isclose(found.usd, sum(known), abs_tol=1e-6)
    assert found.at_least == any(part.at_least or part.usd is None for part in parts)


def test_whole_instances_are_paid() -> None:
    found = pool(ONE)
    assert (found.floor.usd, found.expected.usd, found.worst.usd) == (0, 1.5, 3)
    assert pool(ONE, LARGE).worst == Amount(16.0)
    assert pool(ONE, LARGE).dearest == "g5.48xlarge"
    assert pool(ONE, LARGE, max_vcpus=192).dearest == "g5.xlarge"


def test_a_minimum_is_paid_whether_anything_runs() -> None:
    found = pool(ONE, LARGE, min_vcpus=8, max_vcpus=8, utilisation=0)
    assert (found.floor.usd, found.expected.usd, found.worst.usd) == (2, 2, 16)


def test_spot_is_expected_and_on_demand_is_the_worst() -> None:
    found = pool(ONE, on_spot=True, utilisation=1)
    assert (found.expected.usd, found.worst.usd) == (pytest.approx(1.2), 3)
    assert found.spot == (pytest.approx(0.9), pytest.approx(1.2))
    dear = Option("x", 4, 1.0, 5.0)
    assert pool(dear, on_spot=True, utilisation=1).expected.usd == 3, "Batch bids at most the on-demand price"


def test_without_a_spot_price_on_demand_stands_in() -> None:
    found = pool(Option("x", 4, 1.0), on_spot=True, utilisation=1)
    assert (found.expected.usd, found.spot) == (3, None)


def test_no_price_at_all_is_unknown() -> None:
    found = pool(UNPRICED)
    assert (found.floor.usd, found.expected.usd, found.worst.usd) == (0, None, None)
    assert pool(UNPRICED, min_vcpus=4).floor == cost.UNKNOWN


@given(st.floats(0.01, 1000), st.floats(0, 1), st.none() | st.floats(0.01, 100))
def test_interruptions_only_add_and_checkpoints_only_save(hours: float, monthly: float, every: float | None) -> None:
    paid = cost.spot_hours(hours, monthly, every)
    assert paid >= hours
    assert paid <= cost.spot_hours(hours, monthly, None)
    assert paid - hours <= cost.repeats(monthly, hours) * hours + 1e-6


def test_the_formula_of_interruptions() -> None:
    assert cost.repeats(0.2, 730) == pytest.approx(0.2)
    assert cost.spot_hours(73, 0.2, None) == pytest.approx(73 + 0.02 * 73)
    assert cost.spot_hours(73, 0.2, 1) == pytest.approx(73 + 0.02 * 0.5)


def test_attempts() -> None:
    assert cost.attempts_usd(2.0, 1800, 3, 4) == 12


def test_least_sure() -> None:
    assert cost.least_sure(["high", "low", "medium"]) == "low"
    assert cost.least_sure(["high", "medium"]) == "medium"
    assert cost.least_sure([]) == "low"

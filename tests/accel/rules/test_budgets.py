"""A share of the amount, however it is written."""

import pytest

from accel.rules import budgets


@pytest.mark.parametrize(
    ("value", "fix"),
    [(90, "write 0.9 for 90 %"), (5, "write 0.05 for 5 %"), (0, "write a share"), (-1, "write a share")],
)
def test_what_is_no_share_and_what_is_meant(value: float, fix: str) -> None:
    (found,) = budgets.threshold("at", value)
    assert found.field == "at" and fix in found.text


@pytest.mark.parametrize("values", [[0.5, 0.9, 1.0], [1.5, 3.0], []])
def test_shares(values: list[float]) -> None:
    assert budgets.thresholds("actual", values) == []

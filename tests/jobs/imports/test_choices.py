"""Choices that a client library writes as their numbers."""

from typing import Any

import pytest

from jobs.importers.fields import choice

NAMES = ("UNSPECIFIED", "SPOT", "", "FLEX_START")


@pytest.mark.parametrize(
    "value, is_",
    [("1", "SPOT"), ("0", "UNSPECIFIED"), ("2", "2"), ("4", "4"), ("SPOT", "SPOT"), ("-1", "-1"), ("٣", "٣"), (1, 1),
     (None, None), ("", "")],
)  # fmt: skip
def test_a_number(value: Any, is_: Any) -> None:
    assert choice(value, NAMES) == is_
    assert choice(value, ()) == value

"""When a log is whole after the end of its writer: one rule for every platform."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from jobs.backends.late_lines import LONG_OVER_S, WriterEnd

NOW = 1000.0


@pytest.mark.parametrize(
    ("ago_s", "whole_from"),
    [(None, NOW + 10), (0, NOW + 10), (-3600, NOW + 10), (45, NOW + 10), (55, NOW + 5), (LONG_OVER_S + 1, NOW - 1)],
)
def test_a_log_is_whole(ago_s: float | None, whole_from: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: NOW)
    stopped = None if ago_s is None else datetime.now(UTC) - timedelta(seconds=ago_s)
    end = WriterEnd(stopped, wait_s=10)
    assert end.is_whole(whole_from + 0.5) and not end.is_whole(whole_from - 0.5)

"""Axes of charts: their ends, and their ticks at round numbers or round times."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from accel.console.terminal_text import number

TICKS = 5
"""Approximate number of ticks."""
_MOST, _LEAST = 1e300, 1e-100
_DAY = 86_400.0
_TIMES = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0,
          43_200.0, _DAY)  # fmt: skip
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


@dataclass(frozen=True)
class Axis:
    """Axis from `low` to `high`, including both."""

    low: float
    high: float
    step: float
    words: Callable[[float], str] = number

    def part(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end; clamp values beyond."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        begin = math.ceil(self.low / self.step - 1e-9)
        count = int(self.high / self.step + 1e-9) - begin + 1
        values = [(begin + i) * self.step for i in range(count)]
        return [(self.part(value), self.words(value)) for value in values]


def between(low: float, high: float) -> Axis:
    low, high = _apart(low, high)
    return Axis(low, high, _round((high - low) / TICKS))


def around(low: float, high: float) -> Axis:
    """Return an axis of numbers with ends at ticks on either side, and at 0 where that is near."""
    low, high = _apart(low, high)
    low, high = (0.0 if 0 < low <= high / 2 else low), (0.0 if low / 2 <= high < 0 else high)
    step = _round((high - low) / TICKS)
    begin = math.floor(low / step + 1e-9)
    return Axis(begin * step, max(math.ceil(high / step - 1e-9), begin + 1) * step, step)


def since(first: float, last: float) -> Axis:
    """Return an axis of times, in seconds since the first."""
    length = max(last - first, 1.0)
    step = next((each for each in _TIMES if length / each <= TICKS + 1), 0.0) or _DAY * _round(length / TICKS / _DAY)
    return Axis(0.0, length, step, format_duration)


def format_duration(seconds: float) -> str:
    """Return a round time in as few letters as possible: 0, 45s, 1m30s, 2h."""
    left, found = round(seconds), ""
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        found += f"{count}{unit}" if count else ""
    return found or "0"


def _apart(low: float, high: float) -> tuple[float, float]:
    low, high = (0.0 if abs(end) < _LEAST else min(max(end, -_MOST), _MOST) for end in (low, high))
    if high - low <= max(abs(low), abs(high)) * 1e-9:
        return low - (abs(low) or 1.0) * 0.5, high + (abs(high) or 1.0) * 0.5
    return low, high


def _round(rough: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least as much as `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= rough * (1 - 1e-9))

"""Comparison of the spending that a cloud reports with the line at which the stack stops."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """The point at which a budget stops the stack, as configured."""

    budget: str
    """Key of the budget in the config."""
    at: float
    """Share of the amount: 1.0 is all of it."""
    basis: str
    """`actual` or `forecast`."""
    running_after_s: int | None
    """Delay before running work is stopped as well; None: never."""


@dataclass(frozen=True)
class Reading:
    """The cloud's report on one budget. Clouds report hours late, and several times a day for each budget."""

    budget: str
    period: str
    """Start of the current period, as any text that stays the same throughout: 2026-11-01."""
    amount: float
    currency: str
    actual: float
    forecast: float | None = None
    """None if the cloud reports none."""

    def spent(self, basis: str) -> float | None:
        return self.actual if basis == "actual" else self.forecast


@dataclass(frozen=True)
class Crossing:
    """A budget over its line, kept in the state so that it does not stop a resumed stack again."""

    budget: str
    period: str
    line: float
    """Amount at which it stops, in the currency."""
    text: str
    running_after_s: int | None = None

    def covers(self, later: "Crossing") -> bool:
        return (self.budget, self.period) == (later.budget, later.period) and later.line <= self.line


def crossing(limit: Limit, reading: Reading) -> Crossing | None:
    spent, line = reading.spent(limit.basis), limit.at * reading.amount
    if spent is None or spent < line:
        return None
    text = (
        f"budget {limit.budget}: {spent:,.2f} {reading.currency} {limit.basis} of {reading.amount:,.2f} "
        f"in the period since {reading.period} (stops at {limit.at:.0%})"
    )
    return Crossing(limit.budget, reading.period, line, text, limit.running_after_s)

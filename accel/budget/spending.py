"""Whether a budget is crossed: what a cloud says is spent, against the line at which the stack stops."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limit:
    """Where a budget stops the stack, as the stack was configured."""

    budget: str
    """The author's key."""
    at: float
    """Share of the amount: 1.0 is all of it."""
    basis: str
    """`actual` or `forecast`."""
    running_after_s: int | None
    """Running work is stopped so long after the rest; None: never."""


@dataclass(frozen=True)
class Reading:
    """What the cloud says of one budget. Clouds say it hours late, and for every budget several times a day."""

    budget: str
    period: str
    """When the current period began, any text that is the same all through it: 2026-11-01."""
    amount: float
    currency: str
    actual: float
    forecast: float | None = None
    """Of the whole period; None where the cloud does not say."""

    def spent(self, basis: str) -> float | None:
        """What counts against a limit of that basis."""
        return self.actual if basis == "actual" else self.forecast


@dataclass(frozen=True)
class Crossing:
    """A budget over its line: kept in the state, so that a resumed stack is not stopped again for the same."""

    budget: str
    period: str
    line: float
    """At which it stops, in the currency."""
    text: str
    running_after_s: int | None = None

    def covers(self, later: "Crossing") -> bool:
        """Whether the later one says nothing new: same period, and no higher line."""
        return (self.budget, self.period) == (later.budget, later.period) and later.line <= self.line


def crossing(limit: Limit, reading: Reading) -> Crossing | None:
    """The budget over its line, or None."""
    spent, line = reading.spent(limit.basis), limit.at * reading.amount
    if spent is None or spent < line:
        return None
    text = (
        f"budget {limit.budget}: {spent:,.2f} {reading.currency} {limit.basis} of {reading.amount:,.2f} "
        f"in the period since {reading.period} (stops at {limit.at:.0%})"
    )
    return Crossing(limit.budget, reading.period, line, text, limit.running_after_s)

"""One line of an estimate."""

from dataclasses import dataclass

from accel.cost import Envelope


@dataclass(frozen=True)
class Line:
    """One component's cost in USD an hour, the dates and the confidence of its prices, and what is to be said of it."""

    component: str
    what: str
    envelope: Envelope
    dates: tuple[str, ...] = ()
    confidence: str = "low"
    notes: tuple[str, ...] = ()

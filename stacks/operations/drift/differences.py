"""Differences between a stack and its clouds, as plain values."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from accel.diagnostics.errors import CloudRefused, JobsError, NotFound

Weight = Literal["broken", "changed", "soon", "unknown"]
WEIGHTS: tuple[Weight, ...] = ("broken", "changed", "soon", "unknown")
"""broken: jobs cannot run there, or will soon be unable to; changed: differs from the stack; soon: nothing is wrong
yet; unknown: could not be read."""


@dataclass(frozen=True)
class Drift:
    """One difference. `what` is its kind, `name` the author's key if there is one, `fix` the remedy."""

    what: str
    name: str
    weight: Weight
    text: str
    fix: str

    def row(self, stack: str) -> dict[str, Any]:
        return {"stack": stack, **vars(self)}


def in_order(found: list[Drift]) -> list[Drift]:
    return sorted(dict.fromkeys(found), key=lambda each: (WEIGHTS.index(each.weight), each.what, each.name))


def ending(what: str, name: str, end: datetime | None, now: datetime, within: timedelta, fix: str) -> list[Drift]:
    if end is None or end > now + within:
        return []
    hours = (end - now).total_seconds() / 3600
    if hours <= 0:
        return [Drift(what, name, "broken", f"ended {end:%Y-%m-%d %H:%M} UTC", fix)]
    left = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
    return [Drift(what, name, "soon", f"ends {end:%Y-%m-%d %H:%M} UTC, in {left}", fix)]


def attempt_check(
    place: str, call: Callable[[], Iterable[Drift]], borne: tuple[type[JobsError], ...] = (CloudRefused, NotFound)
) -> list[Drift]:
    """Add a finding of weight `unknown` if the check fails with an error in `borne`; raise other errors."""
    found: list[Drift] = []
    try:
        for each in call():
            found.append(each)
    except borne as refused:
        hint = refused.hint or "ask whoever owns the account or project for it"
        found.append(Drift("not readable", place, "unknown", refused.message, hint))
    return found

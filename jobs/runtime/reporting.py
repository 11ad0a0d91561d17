"""Reports of the program about itself, as lines of its output (lines.py)."""

from __future__ import annotations

import sys
import time
from typing import Any

from . import lines

EVERY_S = 1.0
"""Seconds between two lines of `report`: a job of a thousand steps a second must not flood its log."""

_waiting: dict[str, Any] = {}
_last = float("-inf")


def report(step: int | None = None, steps: int | None = None, **metrics: float) -> None:
    """Report the job's progress and metrics: `report(step=120, steps=1000, loss=0.31)`. Write at most one line a
    second: keep the newest value of each name meanwhile, and write it with the next line or at the program's end. A
    metric may be anything that float() takes, so also an array of one number. Raise TypeError if it is no number."""
    numbers = {name: _number(name, value) for name, value in metrics.items()}
    if not _waiting and _last == float("-inf"):
        import atexit

        atexit.register(flush)
    if step is not None:
        _waiting["step"] = int(step)
    if steps is not None:
        _waiting["steps"] = int(steps)
    if numbers:
        _waiting.setdefault("metrics", {}).update(numbers)
    if time.monotonic() - _last >= EVERY_S:
        flush()


def flush() -> None:
    global _last
    if _waiting:
        _last = time.monotonic()
        told = dict(_waiting)
        _waiting.clear()
        _write(lines.format_line(**told))


def event(kind: str, said: str, step: int | None = None) -> None:
    """Report a "resume", "checkpoint", "stop", "health" or "end". Write what `report` has kept back first."""
    flush()
    _write(lines.format_line(event=kind, said=said, **({} if step is None else {"step": step})))


def _write(line: str) -> None:
    # One call, so that lines of several threads do not run into each other.
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _number(name: str, value: Any) -> float:
    try:
        return value if isinstance(value, int) else float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: a metric must be a number, is {type(value).__name__}") from None

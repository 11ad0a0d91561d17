"""Which parameters a task of a sweep has: the same for one index on every machine and Python.

A sweep is JSON of text, as ACCEL_SWEEP holds it, in one of three forms:

    {"grid": {"LR": ["0.1", "0.01"], "SIZE": ["32", "64"]}}     every combination; the last name changes fastest
    {"list": {"names": ["LR", "SIZE"], "rows": [["0.1", "32"]]}}
    {"random": {"LR": {"log": ["1e-4", "1e-1"]}}, "count": 20, "seed": 7}

A drawn value follows from the whole number n that the first eight bytes of SHA-256 of "<seed>/<index>/<name>" are, the
highest byte first; u is n / 2**64. `choice` takes entry n * length // 2**64, `int` low + n * (high - low + 1) // 2**64,
`uniform` low + (high - low) * u, `log` exp(ln low + (ln high - ln low) * u). The last two are worked out with 28
decimal digits, whose exp and ln are the same everywhere, and rounded to six.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any

SWEEP = "ACCEL_SWEEP"
ONLY = "ACCEL_SWEEP_ONLY"
"""Tasks of the sweep that a job has, as `format_spans` writes them; without it, all of them. The export of the
parameters removes it, and then the index is the sweep's."""
INDEX_FROM, INDEX = "ACCEL_TASK_INDEX_FROM", "ACCEL_TASK_INDEX"

_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)
_SHOWN = Context(prec=6, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True)
class Member:
    """A task of a sweep: its index among `count`, and its parameters as text."""

    index: int
    count: int
    params: dict[str, str]


def task(env: Mapping[str, str] | None = None) -> Member | None:
    """Return the task of this process, None if its job is no sweep. Raise ValueError without a valid index."""
    env = os.environ if env is None else env
    if SWEEP not in env:
        return None
    spec = json.loads(env[SWEEP])
    whence = env.get(INDEX_FROM, INDEX)
    text = env.get(whence, "")
    if not text.isdecimal():
        raise ValueError(f"{whence}: must be the number of a task, is {text!r}")
    index = int(text)
    if ONLY in env:
        places = spans(env[ONLY])
        if index >= len(places):
            raise ValueError(f"{whence}: is {index}, and {ONLY} has {len(places)} tasks")
        index = places[index]
    return Member(index, count(spec), params(spec, index))


def count(spec: Mapping[str, Any]) -> int:
    if "grid" in spec:
        total = 1
        for values in spec["grid"].values():
            total *= len(values)
        return total
    return len(spec["list"]["rows"]) if "list" in spec else int(spec["count"])


def names(spec: Mapping[str, Any]) -> list[str]:
    return list(spec["list"]["names"] if "list" in spec else spec.get("grid") or spec["random"])


def params(spec: Mapping[str, Any], index: int) -> dict[str, str]:
    """Raise IndexError if the sweep has no such task."""
    if not 0 <= index < count(spec):
        raise IndexError(f"task {index} of a sweep of {count(spec)}")
    if "grid" in spec:
        return {name: spec["grid"][name][at] for name, at in zip(names(spec), places(spec, index))}
    if "list" in spec:
        return dict(zip(names(spec), spec["list"]["rows"][index]))
    return {name: _drawn(draw, int(spec["seed"]), index, name) for name, draw in spec["random"].items()}


def places(spec: Mapping[str, Any], index: int) -> list[int]:
    """Return which value of each name a task of a grid has."""
    found: list[int] = []
    for values in reversed(spec["grid"].values()):
        index, at = divmod(index, len(values))
        found.insert(0, at)
    return found


def spans(text: str) -> list[int]:
    """Return the whole numbers of `3,7,12-14`, in that order."""
    found: list[int] = []
    for each in filter(None, text.split(",")):
        low, _, high = each.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def format_spans(numbers: Sequence[int]) -> str:
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _drawn(draw: Mapping[str, Any], seed: int, index: int, name: str) -> str:
    kind, given = next(iter(draw.items()))
    number = int.from_bytes(hashlib.sha256(f"{seed}/{index}/{name}".encode()).digest()[:8], "big")
    if kind == "choice":
        return given[number * len(given) >> 64]
    if kind == "int":
        low, high = int(given[0]), int(given[1])
        return str(low + (number * (high - low + 1) >> 64))
    with localcontext(_EXACT):
        low, high = Decimal(given[0]), Decimal(given[1])
        part = Decimal(number) / Decimal(2**64)
        if kind == "log":
            value = (low.ln() + (high.ln() - low.ln()) * part).exp()
        else:
            value = low + (high - low) * part
        value = _SHOWN.plus(value)
        # A bound may have more digits than a value.
        if value <= low:
            return given[0]
        return given[1] if value >= high else f"{float(value):.6g}"

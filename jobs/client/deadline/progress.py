"""How much work a job has left, from the lines that it prints (jobs/runtime/lines.py).

What counts as done is what is saved: the step of the last checkpoint that it tells of. A job that tells of none is
taken at its newest step, and what it has not saved is part of the changeover. Lines are a program's own, so that
anything may be in them: what is no sensible number is passed over.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...runtime.lines import read

EVIDENCE_STEPS = 3
"""Steps that must have been seen before their pace is believed."""


@dataclass(frozen=True)
class Left:
    """`work_s`: seconds of work on one undisturbed machine. `told`: where that is from, in words."""

    work_s: float
    told: str


@dataclass
class _Seen:
    """What the lines so far say."""

    step: float | None = None
    steps: float | None = None
    saved: float | None = None
    """At the last checkpoint; None where none was told of."""
    gone_steps: float = 0.0
    gone_s: float = 0.0
    """Steps forward that were seen within attempts, and the time that they took."""
    last: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """By source: its step, and since when it has been there."""

    def take(self, source: str, line: dict[str, Any]) -> None:
        step, steps, at = _number(line.get("step")), _number(line.get("steps")), _number(line.get("at")) or 0.0
        resumes = line.get("event") == "resume"
        if resumes:
            self.last.pop(source, None)  # the time since its last step was not spent on steps, nor is that of its start
        self.steps = steps or self.steps
        if step is not None:
            before = self.last.get(source)
            if before and step > before[0] and at >= before[1]:
                self.gone_steps += step - before[0]
                self.gone_s += at - before[1]
            if not resumes and (before is None or step != before[0]):
                self.last[source] = step, at
            self.step = step
            if self.saved is not None:
                self.saved = min(self.saved, step)  # it has gone back further than it said it could
        if line.get("event") == "checkpoint" and self.step is not None:
            self.saved = self.step


def left(lines: Iterable[tuple[str, str]], work_s: float, *, measured_alone: bool = False) -> Left:
    """What is left of a job whose whole work takes `work_s`, by the lines of all its attempts in their order, each with
    its source (node and attempt).

    Its pace, once a few steps have been seen, makes that longer and never shorter; with `measured_alone` (where
    `work_s` is no more than a limit) it counts alone.
    """
    seen = _Seen()
    for source, text in lines:
        if (told := read(text)) is not None:
            seen.take(source, told)
    done = seen.saved if seen.saved is not None else seen.step
    if not seen.steps or done is None:
        return Left(work_s, "it has told of no steps, so all of its work counts as left")
    missing = max(seen.steps - done, 0.0)
    said = f"{'saved' if seen.saved is not None else 'at'} step {done:g} of {seen.steps:g}"
    declared_s = work_s * missing / seen.steps
    if seen.gone_steps < EVIDENCE_STEPS or seen.gone_s <= 0:
        return Left(declared_s, said)
    measured_s = missing * seen.gone_s / seen.gone_steps
    return Left(measured_s if measured_alone else max(declared_s, measured_s), said)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return float(value)

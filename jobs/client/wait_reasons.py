"""Reasons why jobs wait, reported once they have waited for some time, and again when the reason changes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from accel.diagnostics.errors import JobsError

from ..backends.base import Backend, Explain, JobRef, Phase, Status

FIRST_S = 60.0
"""Seconds of waiting before the first question for a job: machines take a minute or more to come."""
APART_S = 120.0
"""Seconds between two questions for one job. Each takes several calls."""
JOBS_MAX = 3
"""Most jobs that are asked about: the others wait for the same reason, as a rule."""


@dataclass
class _Waits:
    asked_at: float
    """Time of the last question; before the first, the time that makes it due."""
    said: tuple[str, str] = ("", "")


class Pending:
    """Observer of the statuses that a wait sees. `tell` gets whole lines."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._waits: dict[JobRef, _Waits] = {}

    def look(self, ref: JobRef, backend: Backend, status: Status) -> str | None:
        """Return a new reason, after passing its line to `tell`."""
        if status.phase not in (Phase.QUEUED, Phase.STARTING) or not isinstance(backend, Explain):
            self._waits.pop(ref, None)
            return None
        now = self._clock()
        if ref not in self._waits:
            if len(self._waits) < JOBS_MAX:
                self._waits[ref] = _Waits(now + FIRST_S - APART_S)
            return None
        waits = self._waits[ref]
        if now - waits.asked_at < APART_S:
            return None
        waits.asked_at = now
        cause, reason, step = _asked(ref, backend)
        if (cause, step) == waits.said:
            return None
        waits.said = (cause, step)
        self._tell(f"{ref}: waits: {reason}{f'; next: {step}' if step else ''}")
        return reason


def _asked(ref: JobRef, backend: Explain) -> tuple[str, str, str]:
    """Return cause, reason and next step. An error of the platform is a cause too."""
    try:
        told = backend.explain(ref)
    except JobsError as error:
        return "not-told", f"why it waits cannot be told: {error.message}", ""
    return told.cause, told.reason, told.next_step.replace(" REF`", f" {ref}`")

"""Polling intervals: short after a change, then longer and longer, until the timeout."""

import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_S = 0.1
GROWTH = 1.5


@dataclass
class Pauses:
    """The pauses of one wait, which begins now. `timeout_s` None: no timeout; `first_s`: the shortest pause."""

    timeout_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    first_s: float = FIRST_S

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._ends = None if self.timeout_s is None else self._began + self.timeout_s
        self._pause_s = self.first_s

    @property
    def waited_s(self) -> float:
        return self.clock() - self._began

    @property
    def left_s(self) -> float | None:
        """Zero once the timeout has passed; None without a timeout."""
        return None if self._ends is None else max(0.0, self._ends - self.clock())

    def restart(self) -> None:
        """Return to short pauses after a change: more may follow soon."""
        self._pause_s = self.first_s

    def next_s(self, longest_s: float, least_s: float = 0.0) -> float | None:
        """Return the seconds until the next look, or None if the wait is over."""
        wait_s, left_s = max(min(self._pause_s, longest_s), least_s), self.left_s
        if left_s == 0:
            return None
        self._pause_s *= GROWTH
        return wait_s if left_s is None else min(wait_s, left_s)

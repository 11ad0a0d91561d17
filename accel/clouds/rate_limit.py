"""Rate limit for submissions, shared by all threads of a process."""

import threading
import time
from collections import deque
from collections.abc import Callable

from ..diagnostics.errors import NotSent

SLACK = 0.005
"""Relative extra delay of each turn, so that slightly late calls do not collide with later ones."""


class Rate:
    """At most `turns` in any second, or in any `within_s`, evenly spread. Unused turns do not accumulate."""

    def __init__(
        self,
        turns: int,
        *,
        within_s: float = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._turns = turns
        self._within_s = within_s
        self._apart_s = (1 + SLACK) * within_s / turns
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = clock()
        self._taken: deque[float] = deque(maxlen=turns)
        self._closed = False

    def close(self) -> None:
        """Grant no more turns, including to those who are waiting."""
        self._closed = True

    def turn(self) -> None:
        """Wait for a turn and take it. Raises NotSent after `close`."""
        # The lock is held during the sleep: the others have to wait for at least as long.
        with self._lock:
            while not self._closed and (wait_s := self._due() - self._clock()) > 0:
                self._sleep(wait_s)
            if self._closed:
                raise NotSent("not sent: stopped before")
            now = self._clock()
            self._taken.append(now)
            self._next = max(self._next, now - self._apart_s) + self._apart_s

    def _due(self) -> float:
        full = len(self._taken) == self._turns
        return max(self._next, self._taken[0] + self._within_s) if full else self._next

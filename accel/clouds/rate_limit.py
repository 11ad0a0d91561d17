"""How often jobs are submitted: a rate that all threads of a process share."""

import threading
import time
from collections import deque
from collections.abc import Callable

from ..diagnostics.errors import NotSent

SLACK = 0.005
"""What a turn comes later than it could, so that calls that are a little late do not meet those after them."""


class Rate:
    """At most `turns` in any second, or in any `within_s`, evenly spread: a time in which none was taken is not made
    up for."""

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
        """No more turns, for those who wait for one either."""
        self._closed = True

    def turn(self) -> None:
        """Waits for a turn and takes it. Raises NotSent once it is closed."""
        # The lock is held while one sleeps: the others have to wait for at least as long.
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

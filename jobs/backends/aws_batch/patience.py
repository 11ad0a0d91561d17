"""Waiting: within a lease, and not in step with others."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .errors import Throttled

LONGEST_PAUSE_S = 8

Result = TypeVar("Result")

# Linux's monotonic clock stands still while a laptop sleeps, and leases do not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds of a clock that nobody sets and that no sleep stops."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True)
class Lease:
    """The time in which a claim is surely ours, by now()."""

    ends: float

    def allows(self, seconds: float) -> bool:
        """Whether something that takes so long ends within the lease."""
        return now() + seconds < self.ends


def pause(seconds: float) -> None:
    """Sleeps for half to one and a half of it, so that many clients spread."""
    time.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311 - spreads, hides nothing


def patiently(call: Callable[[], Result], lease: Lease, call_s: float) -> Result:
    """The result of a call, which is made again while it is throttled and fits into the lease at its longest.

    Raises Throttled where it does not fit, with nothing accepted.
    """
    wait_s = 0.5
    if not lease.allows(call_s):
        raise Throttled("not sent: the rest of the claim's lease is too short", "run the same command again")
    while True:
        try:
            return call()
        except Throttled:
            if not lease.allows(1.5 * wait_s + call_s):
                raise
        pause(wait_s)
        wait_s = min(2 * wait_s, LONGEST_PAUSE_S)

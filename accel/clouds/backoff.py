"""Waiting within a lease, with jitter."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..diagnostics.errors import Throttled

LONGEST_PAUSE_S = 8

Result = TypeVar("Result")

# Linux's monotonic clock stops while a laptop sleeps, but leases do not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return seconds of a clock that nobody sets and that continues during sleep."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True)
class Lease:
    """The period in which a claim is certain to be ours, by now()."""

    ends: float

    def allows(self, seconds: float) -> bool:
        return now() + seconds < self.ends


def pause(seconds: float) -> None:
    """Sleep for 0.5 to 1.5 times as long, so that many clients spread out."""
    time.sleep(seconds * random.uniform(0.5, 1.5))  # noqa: S311 - spreads, hides nothing


def patiently(
    call: Callable[[], Result], lease: Lease, call_s: float, turn: Callable[[], None] = lambda: None
) -> Result:
    """Repeat a call while it is throttled and its longest duration fits into the lease. `turn` waits until it may be
    made. Raise Throttled if it does not fit; nothing was accepted then."""
    wait_s = 0.5
    while True:
        turn()
        if not lease.allows(call_s):
            raise Throttled("not sent: the rest of the claim's lease is too short", "run the same command again")
        try:
            return call()
        except Throttled:
            if not lease.allows(wait_s + call_s):
                raise
        back_off(wait_s)
        wait_s = min(2 * wait_s, LONGEST_PAUSE_S)


def back_off(longest_s: float) -> None:
    """Sleep for a random time up to `longest_s`, so that clients refused together do not return together. Source:
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/"""
    time.sleep(random.uniform(0, longest_s))  # noqa: S311 - spreads, hides nothing

"""Waiting: within a lease, and not in step with others."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..diagnostics.errors import Throttled

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


def patiently(
    call: Callable[[], Result], lease: Lease, call_s: float, turn: Callable[[], None] = lambda: None
) -> Result:
    """The result of a call, which is made again while it is throttled and fits into the lease at its longest.

    `turn` waits until the call may be made. Raises Throttled where it does not fit, with nothing accepted.
    """
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
    """Sleeps for anything up to it: of many clients that were refused together, no two come again together.
    Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/"""
    time.sleep(random.uniform(0, longest_s))  # noqa: S311 - spreads, hides nothing

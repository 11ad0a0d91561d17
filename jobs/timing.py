"""How long calls of a cloud's API may take, and how often one is made."""

import random
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds, and how often a call that may be repeated is made."""

    connect_s: float = 5
    read_s: float = 30
    attempts: int = 5
    backoff_s: float = 0.5
    longest_wait_s: float = 8
    poll_s: float = 2
    """Between two looks at logs."""
    silence_s: float = 300
    """A followed log outlives a server that cannot be reached for this long."""


def pause(timing: Timing, attempt: int) -> None:
    """Waits before the next attempt, longer each time, and not in step with others."""
    longest = min(timing.backoff_s * 2**attempt, timing.longest_wait_s)
    time.sleep(random.uniform(longest / 2, longest))  # noqa: S311 - spreads, hides nothing

"""How long calls of a cloud's API may take, and how often one is made."""

import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..diagnostics.errors import CloudSilent, Unreached

T = TypeVar("T")


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
    drain_s: float = 10
    """After the end of a job its last lines may still come for so long, where nothing tells how many there are."""


def with_retries(timing: Timing, call: Callable[[], T]) -> T:
    """What the call gives, made again while it is not answered."""
    for attempt in range(timing.attempts):
        try:
            return call()
        except CloudSilent:
            if attempt + 1 == timing.attempts:
                raise
        pause(timing, attempt)
    raise AssertionError


def classify_failure(error: Exception) -> tuple[type[CloudSilent], BaseException]:
    """What became of a request that failed on its way, and the innermost cause of it."""
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    never_sent = isinstance(cause, ConnectionRefusedError | socket.gaierror)
    return Unreached if never_sent else CloudSilent, cause


def pause(timing: Timing, attempt: int) -> None:
    """Waits before the next attempt, longer each time, and not in step with others."""
    longest = min(timing.backoff_s * 2**attempt, timing.longest_wait_s)
    time.sleep(random.uniform(longest / 2, longest))  # noqa: S311 - spreads, hides nothing

"""Timeouts and retries of calls to a cloud's API."""

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
    """Timeouts in seconds, and the number of attempts of an idempotent call."""

    connect_s: float = 5
    read_s: float = 30
    attempts: int = 5
    backoff_s: float = 0.5
    longest_wait_s: float = 8
    poll_s: float = 2
    """Interval between two looks at logs."""
    silence_s: float = 300
    """Longest outage of the server that a followed log survives."""
    drain_s: float = 10
    """Time to wait for the last log lines after the end of a job, if their number is unknown."""


def with_retries(timing: Timing, call: Callable[[], T]) -> T:
    for attempt in range(timing.attempts):
        try:
            return call()
        except CloudSilent:
            if attempt + 1 == timing.attempts:
                raise
        pause(timing, attempt)
    raise AssertionError


def classify_failure(error: Exception) -> tuple[type[CloudSilent], BaseException]:
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    never_sent = isinstance(cause, ConnectionRefusedError | socket.gaierror)
    return Unreached if never_sent else CloudSilent, cause


def pause(timing: Timing, attempt: int) -> None:
    """Wait longer each time, with jitter."""
    longest = min(timing.backoff_s * 2**attempt, timing.longest_wait_s)
    time.sleep(random.uniform(longest / 2, longest))  # noqa: S311 - spreads, hides nothing

"""Time of a reservation in the ledger of one machine, in a month with many jobs: as a submit sees it, from its first
look at the ledger to the reservation that was read back."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from accel.contract.allowances import Allowances
from jobs.backends.base import Request
from jobs.client.allowances.ledgers import address, ledger_at
from jobs.client.allowances.price import Price
from jobs.client.allowances.reservation import AT_ONCE, Hold
from jobs.client.allowances.reserve import Holding, ReservationRequest

from .measure import Line

TEAM, JOBS, RUNS = "research", 5_000, 50
LIMITS_MS = {1: 50, AT_ONCE: 200}
"""Limits by the number of jobs of a command."""
_OTHER = Hold(
    usd=1,
    usd_hour=1,
    machines=1,
    tasks=1,
    attempts=1,
    timeout_s=3600,
    key="",
    team=TEAM,
    period="2026-11",
    name="job",
    target="gpu",
    owner="me",
    lease_until=0,
    made=0,
    ref="local:/job",
)


def measure(scratch: Path) -> Iterator[Line]:
    allowances = Allowances.model_validate({"stack": "bench/bench", "teams": {TEAM: {"usd": 1000}}})
    with patch.dict(os.environ, {"XDG_STATE_HOME": str(scratch)}):
        ledger = ledger_at(address(allowances))
        for start in range(0, JOBS, AT_ONCE):
            ledger.add([replace(_OTHER, key=f"other-{start}-{number}") for number in range(AT_ONCE)], None)
        for jobs, limit_ms in LIMITS_MS.items():
            took_ms = [_hold_ms(allowances, f"{jobs}-{turn}", jobs) for turn in range(RUNS)]
            name = f"{jobs} held at submit, on this machine beside {JOBS} others"
            yield Line(f"{name}: median", statistics.median(took_ms), "ms", limit=limit_ms)
            yield Line(f"{name}: slowest of {RUNS}", max(took_ms), "ms")


def _hold_ms(allowances: Allowances, key: str, jobs: int) -> float:
    """Time a reservation by a client that has opened nothing yet, and release it afterwards."""
    price = Price(1, 1, 1, 1, 1, 3600)
    wanted = [
        ReservationRequest(Request("local", "gpu", "job", f"{key}-{number}", {}), TEAM, price) for number in range(jobs)
    ]
    started = time.perf_counter()
    with Holding(ledger_at(address(allowances)), allowances, wanted):
        return 1000 * (time.perf_counter() - started)

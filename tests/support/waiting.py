"""How tests wait for what other processes do: one patience for all, longer than any of it takes on a busy machine."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.kubernetes.client import Refusal

PATIENCE_S = 240
SOONEST_S, LATEST_S = 0.02, 0.1
"""Between two looks: they grow apart, because each look is work for the machine that is waited for."""
AT_LEAST_S = float(os.environ.get("ACCEL_LOOK_S", "0"))
"""With a second or more, a test that has to see what lasts for a moment fails on every machine, not on slow ones."""


def until(what: Callable[[], Any]) -> Any:
    """The first answer that is true; the last refusal of a Kubernetes API, or an assertion, where none comes."""
    begun = time.monotonic()
    give_up = begun + PATIENCE_S
    while True:
        try:
            if answer := what():
                return answer
        except Refusal:
            if time.monotonic() > give_up:
                raise
        assert time.monotonic() < give_up, f"not within {PATIENCE_S} s"
        time.sleep(max(AT_LEAST_S, min(LATEST_S, SOONEST_S + (time.monotonic() - begun) / 10)))


def announced(told: Path, process: Any) -> Any:
    """What a part of the sandbox writes once it answers; its log, where it has one of its own, if it ended before."""
    until(lambda: told.exists() or process.poll() is not None)
    log = told.with_suffix(".log")
    assert told.exists(), log.read_text() if log.exists() else f"{told.stem} ended with {process.returncode}"
    return json.loads(told.read_text())

"""How tests wait for what other processes do: one patience for all, longer than any of it takes on a busy machine."""

import time
from collections.abc import Callable
from typing import Any

from sandbox.kubernetes.client import Refusal

PATIENCE_S = 240


def until(what: Callable[[], Any]) -> Any:
    """The first answer that is true; the last refusal of a Kubernetes API, or an assertion, where none comes."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            if answer := what():
                return answer
        except Refusal:
            if time.monotonic() > give_up:
                raise
        assert time.monotonic() < give_up, f"not within {PATIENCE_S} s"
        time.sleep(0.02)

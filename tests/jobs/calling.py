"""What tests of the functions for Python share: small jobs of this machine, and what they printed."""

import time
from typing import Any

from jobs import Run

HELLO: dict[str, Any] = {"name": "hello", "command": ["sh", "-c", "echo hi; exit ${CODE:-0}"]}
LONG: dict[str, Any] = {"name": "long", "command": ["sh", "-c", "echo began; sleep 600"]}
WAIT_S = 180


def printed_by(run: Run) -> list[str]:
    return [line.text for line in run.logs()]


def until_printed(run: Run, text: str) -> None:
    give_up = time.monotonic() + WAIT_S
    while text not in printed_by(run):
        assert time.monotonic() < give_up
        time.sleep(0.05)

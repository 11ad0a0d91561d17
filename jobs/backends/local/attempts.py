"""The attempts of a job of this machine, from the folders that their runners write."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from ..base import Attempt
from .files import numbers, read_if_there
from .records import StatusRecord

TASKS_MAX = 100
_WORDS = {"exited": None, "terminated": "it was asked to stop", "timeout": "ran longer than its timeout_s"}


def attempts(folder: Path, request: dict[str, Any], time: Callable[[str | None], datetime | None]) -> list[Attempt]:
    """Of the first hundred tasks. What a killed runner did not write is not known."""
    several: bool = request["body"]["tasks"] > 1
    found: list[Attempt] = []
    for task in range(min(request["body"]["tasks"], TASKS_MAX)):
        tries = folder / "tasks" / str(task)
        made = numbers(tries)
        for number in made:
            # None between the start of an attempt and its runner's first word.
            told = read_if_there(tries / str(number) / "status.json", StatusRecord) or {}
            gone = told.get("phase") == "running" and number != made[-1]
            reason: str | None = told.get("reason")
            found.append(
                Attempt(
                    number,
                    task if several else None,
                    created=time(request["created"]) if number == 1 else None,
                    started=time(told.get("started")),
                    stopped=time(told.get("stopped")),
                    exit_code=told.get("exit_code"),
                    reason="its runner was killed" if gone else _WORDS.get(reason or "", reason),
                    lost=gone,
                )
            )
    return found

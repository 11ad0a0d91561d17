"""The attempts of a job of this machine, from the folders that their runners write."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from ..backend import Attempt

TASKS_MAX = 100
_WORDS = {"exited": None, "terminated": "it was asked to stop", "timeout": "ran longer than its timeout_s"}


def attempts(folder: Path, time: Callable[[str | None], datetime | None]) -> list[Attempt]:
    """Of the first hundred tasks. What a killed runner did not write is not known."""
    request: dict[str, Any] = json.loads((folder / "request.json").read_text())
    several: bool = request["body"]["tasks"] > 1
    found: list[Attempt] = []
    for task in range(min(request["body"]["tasks"], TASKS_MAX)):
        tries = folder / "tasks" / str(task)
        numbers = sorted(int(entry.name) for entry in tries.iterdir()) if tries.exists() else []
        for number in numbers:
            told = _told(tries / str(number) / "status.json")
            gone = told.get("phase") == "running" and number != numbers[-1]
            found.append(
                Attempt(
                    number,
                    task if several else None,
                    created=time(request["created"]) if number == 1 else None,
                    started=time(told.get("started")),
                    stopped=time(told.get("stopped")),
                    exit_code=told.get("exit_code"),
                    reason="its runner was killed" if gone else _WORDS.get(told.get("reason", ""), told.get("reason")),
                    lost=gone,
                )
            )
    return found


def _told(path: Path) -> dict[str, Any]:
    """Empty between the start of an attempt and its runner's first word."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}

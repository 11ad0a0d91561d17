"""The lines by which a job tells how it goes: one JSON object a line, behind a mark, in the job's ordinary output.

`@accel {"at":1795347571.57,"step":120,"steps":1000,"metrics":{"loss":0.31},"gpus":[{"index":0,"use":97}]}`

Keys, each absent where it is not told:

    at       seconds since 1970, when the line was written; always there
    step     steps done; steps: of how many
    metrics  name to number: loss, accuracy, samples_per_s, ...; never NaN or infinite, which are left out
    params   name to value: what this task of a sweep was started with
    gpus     one object a GPU: index, use (%), memory_mib, memory_total_mib, power_w, temperature_c, throttle (reasons),
             xid (error numbers), name, mig (true)
    host     cpu (% of all cores), memory_mib, memory_total_mib
    event    "resume", "checkpoint", "stop", "health", "end"; `said`: its words
"""

from __future__ import annotations

import json
import math
import time
from typing import Any, cast

MARK = "@accel "
LENGTH_MAX = 8000
"""Maximum bytes of a line. AWS CloudWatch and Cloud Logging take far more; a terminal and a person do not."""


def format_line(**told: Any) -> str:
    """Return a line, without its end. Raise ValueError if it has more than LENGTH_MAX bytes."""
    if "metrics" in told:
        told["metrics"] = {
            name: value
            for name, value in told["metrics"].items()
            if not isinstance(value, float) or math.isfinite(value)
        }
    line = MARK + json.dumps({"at": round(time.time(), 3), **told}, separators=(",", ":"), allow_nan=False)
    if len(line) > LENGTH_MAX:
        raise ValueError(f"a line of {len(line)} bytes; at most {LENGTH_MAX} fit")
    return line


def read(line: str) -> dict[str, Any] | None:
    """Return the values in a line of a job's output, or None for every other line, whatever it holds."""
    place = line.find(MARK)
    if place < 0 or (place > 0 and "{" in line[:place]):
        return None
    try:
        told: Any = json.loads(line[place + len(MARK) :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None
    found = cast("dict[str, Any]", told)
    return found if isinstance(found.get("at"), (int, float)) else None

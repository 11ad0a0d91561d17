"""Lines of a job that tells how it goes, for tests."""

import json
from typing import Any

from jobs.runtime.lines import format_line


def printed(*told: dict[str, Any], source: str = "") -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for each in told:
        line = json.loads(format_line(**{key: value for key, value in each.items() if key != "at"})[len("@accel ") :])
        lines.append((source, "12:00 INFO"))
        lines.append((source, "@accel " + json.dumps({**line, "at": each.get("at", 0.0)})))
    return lines

"""The jobs submitted from here lately: a convenience for short references, never needed for anything else.

One line of JSON a job, appended: two commands at once lose nothing. A line that cannot be read is skipped.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..folders import state

SIZE_MAX = 256 * 1024
KEPT = 500


def path() -> Path:
    """Where it is kept."""
    return state() / "history.jsonl"


def append(
    ref: str,
    name: str,
    target: str,
    key: str,
    spend: "dict[str, str] | None" = None,
    size: "dict[str, Any] | None" = None,
) -> None:
    """`spend`: where the job's hold is, if it has one. `size`: by what it is priced (so_far.size_of).

    Raises OSError where the file cannot be written; the job exists all the same.
    """
    path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = {"at": datetime.now(UTC).isoformat(), "ref": ref, "name": name, "target": target, "key": key}
    line |= {"spend": spend} if spend else {}
    line |= {"size": size} if size else {}
    with path().open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if path().stat().st_size > SIZE_MAX:
        draft = path().with_suffix(".draft")
        draft.write_text("".join(json.dumps(entry) + "\n" for entry in reversed(recent()[:KEPT])))
        draft.replace(path())


def recent() -> list[dict[str, Any]]:
    """Newest first, each job once."""
    try:
        lines = path().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries: dict[str, dict[str, Any]] = {}
    for line in reversed(lines):
        try:
            entry: Any = json.loads(line)
            entries.setdefault(str(entry["ref"]), entry)
        except (ValueError, TypeError, KeyError):
            continue
    return list(entries.values())

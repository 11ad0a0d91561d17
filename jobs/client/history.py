"""History of the jobs submitted from this machine: a convenience for short references that nothing else needs. It has
one JSON line per job and is only appended to, so two commands at once lose nothing. Unreadable lines are skipped."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from accel.diagnostics.errors import BadInput
from accel.diagnostics.redaction import redact
from accel.folders import state, write

from ..backends.base import JobRef

SIZE_MAX = 256 * 1024
KEPT = 500


def path() -> Path:
    return state() / "history.jsonl"


def append(
    ref: str,
    name: str,
    target: str,
    key: str,
    spend: "dict[str, str] | None" = None,
    size: "dict[str, Any] | None" = None,
) -> None:
    """Raise OSError where the file cannot be written; the job exists all the same. `spend` is the place of its
    reservation, if any, and `size` the basis of its price (accrued_cost.size_of)."""
    path().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = {"at": datetime.now(UTC).isoformat(), "ref": ref, "name": name, "target": target, "key": key}
    line |= {"spend": spend} if spend else {}
    line |= {"size": size} if size else {}
    with path().open("a", encoding="utf-8") as file:
        file.write(redact(json.dumps(line)) + "\n")
    if path().stat().st_size > SIZE_MAX:
        write(path(), "".join(json.dumps(entry) + "\n" for entry in reversed(recent()[:KEPT])))


def recent() -> list[dict[str, Any]]:
    """Return entries newest first, each job once."""
    entries: dict[str, dict[str, Any]] = {}
    for _, entry in reversed([*_lines()]):
        if isinstance(entry, dict):
            entries.setdefault(entry["ref"], entry)
    return list(entries.values())


def faults() -> list[str]:
    return [f"line {number}: {entry}" for number, entry in _lines() if isinstance(entry, str)]


def _lines() -> Iterator[tuple[int, dict[str, Any] | str]]:
    try:
        lines = path().read_bytes().splitlines()
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _entry(line)


def _entry(line: bytes) -> dict[str, Any] | str:
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError):
        return "is no JSON"
    if not isinstance(entry, dict):
        return "is no job"
    found = cast("dict[str, Any]", entry)
    for field in ("ref", "name", "target"):
        if not isinstance(found.get(field), str):
            return f"has no {field}"
    for field in ("spend", "size"):
        if not isinstance(found.get(field, {}), dict):
            return f"{field}: is no object"
    try:
        JobRef.parse(found["ref"])
    except BadInput as error:
        return error.message
    return found

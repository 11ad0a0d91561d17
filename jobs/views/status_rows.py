"""Statuses as rows of a table."""

from typing import Any

from accel.console.output import age

from ..backends.base import Status

STATUS_COLUMNS = ("ref", "target", "phase", "tasks", "age")
STATUS_WIDE = (
    *STATUS_COLUMNS[:3],
    "native",
    "tasks",
    "attempts",
    "exit_code",
    "created",
    "started",
    "stopped",
    "reason",
)


def status_row(status: Status) -> dict[str, Any]:
    row = dict(vars(status))  # asdict would also copy the values, which takes seconds for 10,000 jobs
    times = {field: row[field].isoformat() for field in ("created", "started", "stopped") if row[field]}
    return row | times | {"ref": str(status.ref), "phase": str(status.phase), "age": age(status.created)}

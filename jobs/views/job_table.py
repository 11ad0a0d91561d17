"""The table of `ls`: the names of a job, its state, and its accrued cost."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from accel.console.columns import line, widths
from accel.console.output import show, table
from accel.console.screen import Screen, live, style_of

from ..client.names import job_name, shorts
from ..client.observation import WatchedJob
from .status_rows import status_row
from .watch.draw import COLOURS, NAME_MAX, dollars

if TYPE_CHECKING:
    from accel.console.options import Settings

    from ..backends.base import Status
    from ..client.accrued_cost import JobPrice

UNKNOWN = "-"
WIDE = ("ref", "owner", "native", "counts", "attempts", "lost", "exit_code", "created", "started", "stopped", "reason")


@dataclass(frozen=True)
class Column:
    """A column of the table; accel.console.columns explains the fields."""

    name: str
    most: int
    keep: int
    right: bool = False

    @property
    def title(self) -> str:
        return self.name.upper()


COLUMNS = (
    Column("name", NAME_MAX, 0),
    Column("id", 20, 9),
    Column("target", 20, 5),
    Column("phase", 9, 0),
    Column("tasks", 18, 7),
    Column("age", 6, 8, right=True),
    Column("gpus", 6, 3, right=True),
    Column("cost", 20, 4, right=True),
)
PHASE = 3


def show_jobs(statuses: "Sequence[Status]", settings: "Settings") -> None:
    if settings.output == "id":
        show([status_row(status) for status in statuses], "id", (), (), "ref")
        return
    from ..client import accrued_cost

    known = accrued_cost.job_prices([status.ref for status in statuses], settings) if statuses else {}
    short, now = shorts(status.ref for status in statuses), time.time()
    rows = [_row(status, short[status.ref], known[status.ref], now) for status in statuses]
    if settings.output in ("json", "jsonl"):
        show(rows, settings.output, (), (), "ref")
        return
    cells = [_cells(row, known[status.ref], status) for row, status in zip(rows, statuses, strict=True)]
    names = tuple(column.name for column in COLUMNS)
    if settings.output == "wide":
        wide = [{**row, **_unknown(row), "counts": row["tasks"], **each} for row, each in zip(rows, cells, strict=True)]
        table(wide, (*names, *WIDE))
    elif live(sys.stdout):
        _fitted([[each[name] for name in names] for each in cells], [COLOURS[status.phase] for status in statuses])
    else:
        table(cells, names)


def _row(status: "Status", short: str, price: "JobPrice", now: float) -> dict[str, Any]:
    """Return JSON values; `cost_usd` is the lowest and the highest accrued cost."""
    cost = _cost(status, price, now)
    return {
        **status_row(status),
        "target": status.target or price.target,
        "job": job_name(status.name),
        "short": short,
        "cost_usd": None if cost is None else [round(usd, 6) for usd in cost],
    }


def _cost(status: "Status", price: "JobPrice", now: float) -> tuple[float, float] | None:
    """Return None for an array, whose tasks do not report how long each has run."""
    if status.tasks and not price.free:
        return None
    return WatchedJob(status.ref, status=status, rate=price.rate, free=price.free).cost(now)


def _cells(row: dict[str, Any], price: "JobPrice", status: "Status") -> dict[str, str]:
    again = ">" if (status.attempts or 1) > 1 else ""
    cost = "free" if price.free else f"{again}{dollars(*row['cost_usd'])}" if row["cost_usd"] else UNKNOWN
    return {
        "name": row["job"],
        "id": row["short"],
        "target": row["target"] or UNKNOWN,
        "phase": row["phase"],
        "tasks": _tasks(status),
        "age": row["age"] or UNKNOWN,
        "gpus": UNKNOWN if status.gpus is None else str(status.gpus),
        "cost": cost,
    }


def _unknown(row: dict[str, Any]) -> dict[str, str]:
    return {name: UNKNOWN for name in ("attempts", "lost", "owner") if row[name] is None}


def _tasks(status: "Status") -> str:
    job = WatchedJob(status.ref, status=status)
    failed = job.counted(("failed",))
    return f"{job.ended}/{job.size}{f', {failed} failed' if failed else ''}" if job.size else ""


def _fitted(cells: Sequence[Sequence[str]], colours: Sequence[str]) -> None:
    if not cells:
        return
    style = style_of(sys.stdout)
    clean = [[style.clean(text) for text in row] for row in cells]
    sizes = widths(COLUMNS, clean, Screen().size[0], PHASE)
    titles = [column.title for column in COLUMNS]
    click.echo(style.paint(line(COLUMNS, titles, sizes, style), "dim"), color=True)
    for row, colour in zip(clean, colours, strict=True):
        click.echo(line(COLUMNS, row, sizes, style, {PHASE: colour}), color=True)

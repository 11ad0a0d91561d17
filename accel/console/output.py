"""Values on stdout in the format of -o."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import click

Row = Mapping[str, Any]


def show(rows: Iterable[Row], form: str, columns: Sequence[str], wide: Sequence[str], name: str) -> None:
    """Print rows as a table of the columns, as JSON with every field, or as the field `name` of each."""
    if form == "json":
        click.echo(json.dumps([_without_age(row) for row in rows], indent=2))
    elif form == "jsonl":
        for row in rows:
            click.echo(json.dumps(_without_age(row)))
    elif form == "id":
        for row in rows:
            click.echo(row[name])
    else:
        table(list(rows), wide if form == "wide" else columns)


def show_json(rows: Sequence[Row], form: str) -> None:
    """Print the rows with every field: as `jsonl`, or as one JSON list."""
    click.echo("\n".join(map(json.dumps, rows)) if form == "jsonl" else json.dumps(rows, indent=2))


def table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    if not rows:
        return
    lines = [
        [column.upper() for column in columns],
        *([_cell(row.get(column)) for column in columns] for row in rows),
    ]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def details(row: Row) -> None:
    shown = {field: _cell(value) for field, value in row.items() if value not in (None, {}, "")}
    width = max(map(len, shown))
    for field, cell in shown.items():
        click.echo(f"{field.ljust(width)}  {cell}")


def age(since: datetime | None) -> str:
    if since is None:
        return ""
    return span((datetime.now(UTC) - since).total_seconds())


def span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return " ".join(f"{key}:{inner}" for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    text = str(value)
    return text if text.isprintable() else repr(text)


def _without_age(row: Row) -> dict[str, Any]:
    return {field: value for field, value in row.items() if field != "age"}

"""Columns of a table that fits a terminal. Names are shortened before a column is dropped."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from .terminal_text import Style, fit, width

NARROWEST = 8
"""Minimum width of a name while a column can still be dropped."""


class Fits(Protocol):
    """A column; the first one is the name."""

    @property
    def title(self) -> str: ...
    @property
    def most(self) -> int:
        """Maximum width in terminal columns."""
        ...

    @property
    def keep(self) -> int:
        """Priority: the lowest column is dropped first if there is no room; 0: never."""
        ...

    @property
    def right(self) -> bool: ...


def widths(columns: Sequence[Fits], cells: Sequence[Sequence[str]], room: int, phase: int) -> list[int]:
    """Return 0 for a column to drop. `phase` is the column that is shortened last, besides the name."""
    natural = [
        min(max([width(column.title), *(width(row[place]) for row in cells)]), column.most)
        if any(row[place] for row in cells)
        else 0
        for place, column in enumerate(columns)
    ]

    def total() -> int:
        return sum(natural) + 2 * (sum(1 for each in natural if each) - 1)

    for place in sorted(range(len(columns)), key=lambda place: columns[place].keep):
        if total() <= room:
            break
        over = total() - room
        if natural[0] - over >= NARROWEST:
            natural[0] -= over
        elif columns[place].keep:
            natural[place] = 0
    if total() > room:
        kept = min(natural[phase], max(room - 6, 0))
        natural[phase], natural[0] = kept, max(room - kept - (2 if kept else 0), 1)
    return natural


def line(
    columns: Sequence[Fits],
    row: Sequence[str],
    sizes: Sequence[int],
    style: Style,
    colours: Mapping[int, str] | None = None,
) -> str:
    parts: list[str] = []
    for place, (cell, size) in enumerate(zip(row, sizes, strict=True)):
        if size:
            text = fit(cell, size, style, right=columns[place].right)
            parts.append(style.paint(text, (colours or {}).get(place, "")))
    return "  ".join(parts).rstrip()

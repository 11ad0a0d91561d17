"""Reader of the data files. Cells are text until a number is requested; any damage is one error with its line."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from operator import itemgetter

from accel.catalog.selection import ADDED, CHOICE, REFRESHED, NoCatalog, folder

DATA = os.path.join(os.path.dirname(__file__), "data")  # noqa: PTH118, PTH120  pathlib takes 5 ms to import


class DamagedData(Exception):
    """A data file with invalid content: `prices.csv:812: on_demand_usd_hour: not a number: 1,5`. Not a ValueError,
    which pydantic would report as a fault of the document that it validates."""

    def __init__(self, file: str, line: int, column: str, why: str) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.why = why
        super().__init__(f"{file}:{line}: {column}: {why}" if column else f"{file}:{line}: {why}")


class Row(dict[str, str]):
    """The cells of a line by column. Raises DamagedData for a missing column, or a cell that does not hold a number."""

    __slots__ = ("file", "line")

    def __init__(self, file: str, line: int, columns: tuple[str, ...], cells: list[str]) -> None:
        super().__init__(zip(columns, cells, strict=True))
        self.file = file
        self.line = line

    def __missing__(self, column: str) -> str:
        raise DamagedData(self.file, 1, column, "the column is missing")

    def number(self, column: str) -> float | None:
        """Return None for an empty cell (unknown, or not applicable)."""
        cell = self[column]
        if not cell:
            return None
        try:
            value = float(cell)
        except ValueError:
            raise self.damaged(column, f"not a number: {cell}") from None
        if value - value != 0:  # infinite, or not a number: float() reads "inf" and "nan"
            raise self.damaged(column, f"not a number: {cell}")
        return value

    def figure(self, column: str) -> float:
        """Return a required number."""
        value = self.number(column)
        if value is None:
            raise self.damaged(column, "is empty")
        return value

    def integer(self, column: str) -> int:
        value = self.figure(column)
        if value != int(value):
            raise self.damaged(column, f"not a whole number: {self[column]}")
        return int(value)

    def parts(self, column: str) -> tuple[str, ...]:
        return parts(self[column])

    def damaged(self, column: str, why: str) -> DamagedData:
        return DamagedData(self.file, self.line, column, why)


class Table:
    """A data file. Lines are split into cells on demand: most never are."""

    __slots__ = ("columns", "file", "lines")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        header, *self.lines = text.removesuffix("\n").split("\n")
        self.columns = tuple(header.split(","))

    def at(self, column: str) -> int:
        """Raise DamagedData if the column is missing."""
        if column not in self.columns:
            raise DamagedData(self.file, 1, column, "the column is missing")
        return self.columns.index(column)

    def cells(self) -> Iterator[list[str]]:
        """Raise DamagedData for a line with too many or too few cells."""
        width = len(self.columns)
        for index, line in enumerate(self.lines):
            # Splitting is six times faster than csv.reader, and few lines have quotes.
            cells = line.split(",") if '"' not in line else self._quoted(index)
            if len(cells) != width:
                raise DamagedData(self.file, index + 2, "", f"has {len(cells)} cells, the header {width}")
            yield cells

    def of(self, *columns: str) -> Iterator[tuple[str, ...]]:
        """Yield the cells of two or more columns, line by line."""
        return map(itemgetter(*(self.at(column) for column in columns)), self.cells())

    def row(self, index: int) -> Row:
        """Return a line, 0 being the first below the header. Does not check the number of cells."""
        return Row(self.file, index + 2, self.columns, self._quoted(index))

    def rows(self) -> list[Row]:
        return [Row(self.file, line, self.columns, cells) for line, cells in enumerate(self.cells(), 2)]

    def _quoted(self, index: int) -> list[str]:
        try:
            return next(csv.reader([self.lines[index]], strict=True))
        except csv.Error as error:
            raise DamagedData(self.file, index + 2, "", f"{error}") from None


def read(file: str) -> Table:
    """Read a CSV file of data/ or of the folder of $ACCEL_CATALOG: one header line without quotes, no line break inside
    a cell. Raise NoCatalog, and DamagedData, with the full path for a file of such a folder."""
    choice = os.environ.get(CHOICE) if file in (*REFRESHED, *ADDED) else None
    if not choice:
        return _read(f"{DATA}/{file}", file)
    path = f"{folder(choice)}/{file}"
    if file in ADDED:
        there = os.path.exists(path)  # noqa: PTH110
        return add_missing_lines(shipped_table(file), _read(path, path)) if there else shipped_table(file)
    try:
        return _read(path, path)
    except OSError as error:
        raise NoCatalog(f"{path}: {error.strerror}") from None


def add_missing_lines(table: Table, added: Table) -> Table:
    """Add the lines that a table lacks. Raise DamagedData if the columns differ."""
    if added.columns != table.columns:
        raise DamagedData(added.file, 1, "", f"has not the columns of {table.file}")
    width = table.columns.index(table.file.removesuffix("s.csv")) + 1  # up to the name of what a line is of
    known = {tuple(cells[:width]) for cells in table.cells()}
    more = [line for line, cells in zip(added.lines, added.cells(), strict=True) if tuple(cells[:width]) not in known]
    whole = Table(table.file, ",".join(table.columns))
    whole.lines = [*table.lines, *more]
    return whole


def shipped_table(file: str) -> Table:
    """Read a file of data/, regardless of $ACCEL_CATALOG. Raise DamagedData."""
    return _read(f"{DATA}/{file}", file)


def _read(path: str, name: str) -> Table:
    try:
        with open(path, encoding="utf-8") as stream:  # noqa: PTH123  as above
            return Table(name, stream.read())
    except UnicodeDecodeError as error:
        raise DamagedData(name, error.object.count(b"\n", 0, error.start) + 1, "", "not UTF-8") from None


def rows(file: str) -> list[Row]:
    return read(file).rows()


def number(cell: str) -> float | None:
    return float(cell) if cell else None


def parts(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(";")) if cell else ()

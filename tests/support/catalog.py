"""The catalogue's data files, changed for one test."""

import functools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accel.catalog import tables

Edit = Callable[[list[str]], object]
Damage = Callable[[str, Edit], None]


def forget() -> None:
    """Empties the caches of everything that reads the catalogue."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("accel.", "jobs.", "stacks.")):
            for each in list(vars(module).values()):
                if isinstance(each, functools._lru_cache_wrapper):
                    each.cache_clear()


@pytest.fixture
def damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Damage]:
    """Changes the lines of a file in a copy of the data, which is then read in its place."""
    shutil.copytree(tables.DATA, tmp_path / "data")
    monkeypatch.setattr(tables, "DATA", str(tmp_path / "data"))
    forget()

    def change(file: str, edit: Edit) -> None:
        path = tmp_path / "data" / file
        lines = path.read_text(encoding="utf-8").splitlines()
        edit(lines)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    yield change
    forget()


def replaced(start: str, old: str, new: str) -> Edit:
    """Another text for a part of the first line that begins so."""

    def edit(lines: list[str]) -> None:
        at = next(index for index, line in enumerate(lines) if line.startswith(start))
        assert old in lines[at]
        lines[at] = lines[at].replace(old, new, 1)

    return edit


def line_of(file: str, start: str) -> int:
    """The number of the first line that begins so."""
    lines = (Path(tables.DATA) / file).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(start))

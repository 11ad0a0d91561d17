"""A warm `make up`: the sandbox runs, nothing changes, and one job is run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .empty import empty_program
from .measure import Line, median_s, once_s, run

# What make hands down would make the inner one a part of the outer.
UP = ("env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "make", "--no-print-directory", "up")


def measure(scratch: Path) -> Iterator[Line]:
    run(UP)
    program = empty_program(scratch)
    update = ("pulumi", "up", "--stack", "empty", "--yes", "--skip-preview", "--non-interactive")
    empty_s = median_s(update, runs=3, cwd=program)
    yield Line("make up, warm, with one job", once_s(UP), "s", "pulumi up of an empty program", empty_s)

"""Output of `watch`: a terminal whose last lines are overwritten."""

import os
import shutil
import sys
from typing import TextIO

from .terminal_text import Style


def live(stream: TextIO) -> bool:
    """Return whether output of the stream can be overwritten."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def style_of(stream: TextIO) -> Style:
    """Return what the stream can display. https://no-color.org"""
    coloured = live(stream) and not os.environ.get("NO_COLOR")
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    return Style(coloured, encoding.startswith("utf"))


class Screen:
    """The last lines of a terminal. Its state is unchanged between two frames, so that being killed does no harm."""

    def __init__(self, stream: TextIO | None = None, size: tuple[int, int] | None = None) -> None:
        self._stream = stream or sys.stdout
        self._size = size
        self._shown = 0
        self._columns = 0

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows available to a frame: a line that fills the last column may wrap, and the cursor needs a row
        of its own."""
        columns, rows = self._size or shutil.get_terminal_size()
        return max(columns - 1, 1), max(rows - 1, 1)

    def show(self, lines: list[str]) -> None:
        columns = self.size[0]
        if self._shown and columns < self._columns:
            begin = "\x1b[H\x1b[2J"  # the terminal has wrapped what was there: nobody knows over how many rows
        else:
            begin = f"\x1b[{self._shown}A\r" if self._shown else ""
        self._columns, self._shown = columns, len(lines)
        self._stream.write(begin + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self._stream.flush()

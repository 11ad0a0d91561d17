"""Progress in one line that is overwritten, shown at a terminal only."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

Opens = Callable[[Callable[[int], str]], AbstractContextManager[Callable[[int], None]]]
"""Signature of Progress: takes a function that puts a count into words."""

APART_S = 0.1
"""Faster updates cannot be read."""


class Progress:
    """A progress line. Call it with a count; the line disappears when the block ends. `words` describes the count."""

    def __init__(self, words: Callable[[int], str]) -> None:
        self._words = words
        self._shown_at = 0.0
        self._on = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> Self:
        return self

    def __call__(self, count: int) -> None:
        if self._on and time.monotonic() - self._shown_at >= APART_S:
            self._shown_at = time.monotonic()
            self._write(self._words(count))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._shown_at:
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def untold(words: Callable[[int], str]) -> AbstractContextManager[Callable[[int], None]]:
    """Replace Progress, printing nothing."""
    return nullcontext(lambda count: None)

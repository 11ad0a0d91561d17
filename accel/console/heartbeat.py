"""Progress of a wait while nothing happens: a line after QUIET_S, or a bar that is overwritten at a terminal."""

import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from .errors import say
from .screen import live, style_of
from .terminal_text import bar, clip

QUIET_S = 30.0
"""Longest time without output."""
TICK_S = 0.5
BAR = 24


@dataclass(frozen=True)
class SoFar:
    """The progress of a wait."""

    text: str
    short: str
    """Short form for a terminal, next to the bar and earlier messages."""
    fraction: float | None = None
    """Completed share, 0 to 1, if it can be counted."""


class Beat:
    """Progress lines on stderr. `so_far` is called in a thread, since the caller may wait for a response for minutes.
    Without `bar`, prints lines at a terminal too, for use while others write there."""

    def __init__(self, quiet_s: float = QUIET_S, *, bar: bool = True) -> None:
        self.live = bar and live(sys.stderr)
        self._quiet_s = quiet_s
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._said = time.monotonic()
        self._drawn = False
        self._so_far: Callable[[], SoFar] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def of(self, so_far: Callable[[], SoFar]) -> Self:
        self._so_far = so_far
        return self

    def tell(self, text: str) -> None:
        with self._lock:
            self._clear()
            say(text)
            self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        with self._lock:
            self._clear()

    def _run(self) -> None:
        while not self._over.wait(min(TICK_S, self._quiet_s / 2)):
            assert self._so_far
            now = self._so_far()
            if not self.live and time.monotonic() - self._said >= self._quiet_s - TICK_S:
                self.tell(now.text)
            with self._lock:
                if self.live and not self._over.is_set():
                    self._draw(now)

    def _draw(self, now: SoFar) -> None:
        style = style_of(sys.stderr)
        shown = "" if now.fraction is None else f"{bar(now.fraction, BAR, style)}  "
        line = clip(style.clean(f"{shown}{now.short}"), shutil.get_terminal_size().columns - 1, style)
        self._drawn = True
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

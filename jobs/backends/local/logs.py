"""Output of a local job's attempts, read while it is written: every line once, in order."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from ..base import LogLine
from .files import numbers

CHUNK = 2**20
"""Bytes read at once. A longer line comes in pieces of about this size."""
LOOK_AGAIN_S = 0.2


class Tail:
    """Output of one attempt, as far as it was read."""

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self._read = 0
        self._rest = b""

    def more(self, last: bool) -> Iterator[LogLine]:
        """Yield the lines written since the last call; on the last call also an unfinished one."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._read)
            written = datetime.fromtimestamp(self._path.stat().st_mtime, UTC)
            while part := file.read(CHUNK):
                self._read += len(part)
                *whole, self._rest = (self._rest + part).split(b"\n")
                for line in whole:
                    yield self._line(line, written)
                if len(self._rest) > CHUNK:
                    yield self._line(self._rest, written)
                    self._rest = b""
        if last and self._rest:
            yield self._line(self._rest, written)
            self._rest = b""

    def _line(self, line: bytes, at: datetime) -> LogLine:
        return LogLine(at, line.decode(errors="replace"), self._source)


def lines(
    folder: Path, tasks: int, task: int | None, ended: Callable[[], bool], count: int | None = None
) -> Iterator[LogLine]:
    """Yield lines until `ended` and all is read, tasks mixed by line; with `count`, only the last ones so far."""
    tails: dict[tuple[int, int], Tail] = {}
    while True:
        # Checked before the reading: output written before the end is read below, and nothing comes after.
        last = ended()
        read = _round(folder, tasks, task, tails, last)
        if count is not None:
            newest = deque(sorted(read, key=lambda line: line.at), count)
            read, count = iter(newest), None
        yield from read
        if last:
            return
        time.sleep(LOOK_AGAIN_S)


def _round(
    folder: Path, tasks: int, task: int | None, tails: dict[tuple[int, int], Tail], last: bool
) -> Iterator[LogLine]:
    for index in range(tasks) if task is None else (task,):
        attempts = numbers(folder / "tasks" / str(index))
        for attempt in attempts:
            path = folder / "tasks" / str(index) / str(attempt) / "output.log"
            tail = tails.setdefault((index, attempt), Tail(path, _source(tasks, index, attempt)))
            yield from tail.more(last or attempt != attempts[-1])


def _source(tasks: int, task: int, attempt: int) -> str:
    parts = [f"task {task}"] if tasks > 1 else []
    return " ".join([*parts, f"attempt {attempt}"] if attempt > 1 else parts)

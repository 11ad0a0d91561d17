"""The log lines of a job, or of several of its tasks at once."""

import heapq
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from accel.diagnostics.errors import BadInput

from ..backends.base import Backend, JobRef, LogLine, Logs
from .progress import place_of


def log_lines(
    backend: Backend, ref: JobRef, task: int | None, follow: bool, tail: int | None = None
) -> Iterator[LogLine]:
    """Raise BadInput for a job of a kind that keeps no log."""
    if not isinstance(backend, Logs):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} keep no log that can be read here")
    return backend.logs(ref, task=task, follow=follow, tail=tail)


def task_lines(
    ref: JobRef,
    backend_of: Callable[[JobRef], Backend],
    tasks: Sequence[int],
    word: str,
    follow: bool,
    tail: int | None,
) -> Iterator[LogLine]:
    """Yield the lines of several tasks, each with its task: with `follow` as they arrive, else ordered by time."""

    def read(task: int) -> Iterator[LogLine]:
        # One backend per task: two threads must not create one backend's clients at once.
        for line in log_lines(backend_of(ref), ref, task, follow, tail):
            # Some backends name the task although the log of only one was requested.
            named = place_of(line.source)[0] is not None
            yield line if named else replace(line, source=f"{word} {task} {line.source}".strip())

    if not follow:
        return heapq.merge(*map(read, tasks), key=lambda line: line.at)
    return merge_streams([read(task) for task in tasks])


def merge_streams(readers: Sequence[Iterator[LogLine]]) -> Iterator[LogLine]:
    """Read each stream in a thread of its own, and raise the first error."""
    arrivals: queue.SimpleQueue[LogLine | BaseException | None] = queue.SimpleQueue()

    def read(reader: Iterator[LogLine]) -> None:
        try:
            for line in reader:
                arrivals.put(line)
            arrivals.put(None)
        except BaseException as error:  # noqa: BLE001 - raised where it is read
            arrivals.put(error)

    for reader in readers:
        threading.Thread(target=read, args=(reader,), daemon=True).start()
    left = len(readers)
    while left:
        line = arrivals.get()
        if isinstance(line, BaseException):
            raise line
        if line is None:
            left -= 1
        else:
            yield line

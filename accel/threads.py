"""Calls at the same time, in threads that an interrupt does not wait for. A ThreadPoolExecutor waits for its calls at
the end of its block, and Python for its threads before it ends: minutes, where a cloud does not answer."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], items: Sequence[T], most: int) -> Iterator[R]:
    """Yield what `work` returns, in the order of the items, with at most so many calls at once. Raise the first error;
    calls that have not begun by then are left out."""
    todo: queue.SimpleQueue[tuple[int, T]] = queue.SimpleQueue()
    answers: list[queue.SimpleQueue[tuple[list[R], BaseException | None]]] = [queue.SimpleQueue() for _ in items]
    over = threading.Event()
    for each in enumerate(items):
        todo.put(each)

    def run() -> None:
        while not over.is_set():
            try:
                number, item = todo.get_nowait()
            except queue.Empty:
                return
            try:
                answers[number].put(([work(item)], None))
            except BaseException as error:  # noqa: BLE001, handed to the thread that asked
                over.set()
                answers[number].put(([], error))

    for _ in range(min(most, len(items))):
        threading.Thread(target=run, daemon=True).start()
    try:
        for answer in answers:
            told, error = answer.get()
            if error is not None:
                raise error
            yield from told
    finally:
        over.set()

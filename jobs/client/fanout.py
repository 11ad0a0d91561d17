"""The same work on several machines at once, for `jobs exec`."""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from accel.diagnostics.errors import JobsError

T = TypeVar("T")

AT_ONCE = 32
LINE_MAX = 1 << 16
"""Bytes; a longer line is passed on in pieces."""


def everywhere(numbers: Sequence[int], work: Callable[[int], T]) -> dict[int, T | JobsError]:
    """Return what `work` returns for each number, or its JobsError. Any other error is raised, and ends the call."""
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[int, T | BaseException]] = queue.SimpleQueue()
    for number in numbers:
        todo.put(number)

    def run() -> None:
        while True:
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            try:
                answers.put((number, work(number)))
            except BaseException as error:  # noqa: BLE001, handed to the thread that asked
                answers.put((number, error))

    # Daemon threads, since an interrupt must not wait for what runs on machines.
    for _ in range(min(AT_ONCE, len(numbers))):
        threading.Thread(target=run, daemon=True).start()
    found: dict[int, T | JobsError] = {}
    for _ in numbers:
        number, answer = answers.get()
        if isinstance(answer, BaseException) and not isinstance(answer, JobsError):
            raise answer
        found[number] = answer
    return {number: found[number] for number in numbers}


class Lines:
    """Merger of several writers' output into whole lines, each after its writer's name."""

    def __init__(self, write: Callable[[bool, bytes], None]) -> None:
        self._write = write
        self._lock = threading.Lock()
        self._begun: dict[tuple[str, bool], bytearray] = {}

    def write(self, name: str, is_error: bool, data: bytes) -> None:
        with self._lock:
            begun = self._begun.setdefault((name, is_error), bytearray())
            begun += data
            whole, newline, rest = bytes(begun).rpartition(b"\n")
            if newline:
                self._begun[name, is_error] = begun = bytearray(rest)
                self._out(name, is_error, whole)
            if len(begun) > LINE_MAX:
                self._out(name, is_error, bytes(begun))
                begun.clear()

    def end(self, name: str) -> None:
        """Pass on an incomplete last line."""
        with self._lock:
            for is_error in (False, True):
                if begun := self._begun.pop((name, is_error), None):
                    self._out(name, is_error, bytes(begun))

    def _out(self, name: str, is_error: bool, lines: bytes) -> None:
        prefix = f"[{name}] ".encode()
        self._write(is_error, b"".join(prefix + line + b"\n" for line in lines.split(b"\n")))

"""Submission of many requests at once: each as safe as alone, and reported in the order of the requests."""

import queue
import signal
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from accel.diagnostics.errors import Interrupted, JobsError, NotSent

from ..backends.base import Backend, Concurrent, JobRef, Request

Item = tuple[Backend, Request]
Answer = tuple[int, JobRef | BaseException]


@dataclass
class BulkResult:
    """Results of a bulk submission, keyed by the request's number."""

    refs: dict[int, JobRef] = field(default_factory=dict[int, JobRef])
    errors: dict[int, JobsError] = field(default_factory=dict[int, JobsError])
    """Errors of sent requests: whether a job was made is unknown, or no job was made."""
    interrupted: bool = False


def submit_all(
    items: Sequence[Item],
    *,
    submits_per_s: int | None = None,
    made: Callable[[int, JobRef], None],
    stopping: Callable[[int], None] = lambda count: None,
    send: Callable[[Backend, Request], JobRef] = lambda backend, request: backend.submit(request),
    stop: threading.Event | None = None,
) -> BulkResult:
    """Submit with as many threads as the backends allow, and call `made` for each job in request order. The first error
    or an interrupt (SIGINT) stops further submits. Submits under way are waited for, since each may have made a job;
    `stopping` gets their number, at most. A second interrupt raises Interrupted at once. To go on, submit the same
    requests again. Any of the threads calls `send`. With `stop` that event is the interrupt and SIGINT is left alone;
    any exception then stops further submits."""
    sent = BulkResult()
    backends = {id(backend): backend for backend, _ in items}.values()
    threads = min(
        len(items), *(each.threads(submits_per_s) if isinstance(each, Concurrent) else 1 for each in backends)
    )
    work = _Work(items, [each for each in backends if isinstance(each, Concurrent)], send)
    running = [threading.Thread(target=work.run, daemon=True) for _ in range(threads)]
    told = 0
    with _Interrupts(stop) as interrupts, _stopped_by_errors(work):
        for thread in running:
            thread.start()
        while any(thread.is_alive() for thread in running) or not work.answers.empty():
            _take(work, sent)
            while told in sent.refs:
                made(told, sent.refs[told])
                told += 1
            if interrupts.count > 1:
                raise Interrupted("interrupted twice; what was under way may have been made")
            if interrupts.count and not sent.interrupted:
                sent.interrupted = True
                stopping(work.stop())
    for number in sorted(number for number in sent.refs if number >= told):
        made(number, sent.refs[number])
    return sent


class _Interrupts:
    """Counter of SIGINT, since a KeyboardInterrupt could come between a job and its report; or of an event."""

    def __init__(self, stop: threading.Event | None) -> None:
        self._signals = 0
        self._stop = stop
        self._before: Any = None

    @property
    def count(self) -> int:
        return self._signals if self._stop is None else int(self._stop.is_set())

    def __enter__(self) -> Self:
        if self._stop is None and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: object) -> None:
        self._signals += 1


@contextmanager
def _stopped_by_errors(work: "_Work") -> Generator[None]:
    try:
        yield
    except BaseException:
        work.stop()
        raise


def _take(work: "_Work", sent: BulkResult) -> None:
    try:
        number, answer = work.answers.get(timeout=0.1)
    except queue.Empty:
        return
    if isinstance(answer, JobRef):
        sent.refs[number] = answer
        return
    if isinstance(answer, NotSent):
        return
    work.stop()
    if not isinstance(answer, JobsError):
        raise answer
    sent.errors[number] = answer


class _Work:
    def __init__(
        self, items: Sequence[Item], backends: Sequence[Concurrent], send: Callable[[Backend, Request], JobRef]
    ) -> None:
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._send = send
        self._backends = backends
        self._items = items
        self._next = 0
        self._under_way = 0
        self._stopped = False
        self._lock = threading.Lock()

    def stop(self) -> int:
        """Send nothing more. Return how many submits may be under way."""
        for backend in self._backends:
            backend.stop()
        with self._lock:
            self._stopped = True
            return self._under_way

    def run(self) -> None:
        while (number := self._begin()) is not None:
            backend, request = self._items[number]
            try:
                answer: JobRef | BaseException = self._send(backend, request)
            except BaseException as error:  # noqa: BLE001, handed to the thread that asked
                answer = error
            with self._lock:
                self._under_way -= 1
            self.answers.put((number, answer))

    def _begin(self) -> int | None:
        with self._lock:
            if self._stopped or self._next == len(self._items):
                return None
            self._next += 1
            self._under_way += 1
            return self._next - 1

"""Many submits at once: order, errors, interrupts."""

import signal
import threading
import time
from typing import Any, cast

import pytest

from accel.diagnostics.errors import CloudRefused, Interrupted, JobsError
from jobs.backends.base import Backend, JobRef, Request
from jobs.client.bulk import Item, submit_all


class Fake:
    """Takes its time, the later requests less; `faults` by request name."""

    def __init__(self, count: int = 8, *, seconds: float = 0.0, faults: dict[str, BaseException] | None = None) -> None:
        self.count = count
        self.seconds = seconds
        self.faults = faults or {}
        self.made: list[str] = []
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def threads(self, submits_per_s: int | None = None) -> int:
        self.asked = submits_per_s
        return self.count

    def stop(self) -> None:
        self.stopped = True

    def submit(self, request: Request) -> JobRef:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(self.seconds * (0.2 if int(request.name) % 2 else 1))
        with self.lock:
            self.at_once -= 1
            if request.name in self.faults:
                raise self.faults[request.name]
            self.made.append(request.name)
        return JobRef("fake", "", request.name)


def items(backend: Any, count: int) -> list[Item]:
    return [(cast(Backend, backend), Request("fake", "t", str(n), str(n), {})) for n in range(count)]


def test_they_run_side_by_side_and_are_told_in_order() -> None:
    backend, told = Fake(seconds=0.01), list[int]()
    sent = submit_all(items(backend, 60), submits_per_s=7, made=lambda number, ref: told.append(number))
    assert told == list(range(60)) and not sent.errors and not sent.interrupted
    assert [sent.refs[number].id for number in told] == [str(number) for number in told]
    assert backend.most == 8 and backend.asked == 7


def test_a_backend_that_says_nothing_gets_one_after_the_other() -> None:
    class Single:
        def __init__(self) -> None:
            self.inner = Fake(seconds=0.001)

        def submit(self, request: Request) -> JobRef:
            return self.inner.submit(request)

    backend = Single()
    submit_all(items(backend, 10), made=lambda number, ref: None)
    assert backend.inner.most == 1 and backend.inner.made == [str(number) for number in range(10)]


def test_an_error_stops_what_has_not_begun_and_what_was_made_is_told() -> None:
    backend = Fake(count=4, seconds=0.01, faults={"5": CloudRefused("no"), "6": CloudRefused("no")})
    told: list[int] = []
    sent = submit_all(items(backend, 500), made=lambda number, ref: told.append(number))
    assert isinstance(sent.errors[5], JobsError)
    assert len(backend.made) < 60
    assert sorted(told) == sorted(int(name) for name in backend.made) == sorted(sent.refs)


def test_a_fault_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        submit_all(items(Fake(faults={"0": ZeroDivisionError()}), 3), made=lambda number, ref: None)


def test_an_interrupt_waits_for_what_is_under_way_and_begins_no_more() -> None:
    backend, told, waited = Fake(count=4, seconds=0.02), list[int](), list[int]()

    def made(number: int, ref: JobRef) -> None:
        told.append(number)
        if number == 5:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    sent = submit_all(items(backend, 500), made=made, stopping=waited.append)
    assert sent.interrupted and len(waited) == 1 and 0 <= waited[0] <= 4
    assert len(backend.made) < 60 and sorted(told) == sorted(int(name) for name in backend.made)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_does_not_wait() -> None:
    backend = Fake(count=2, seconds=60)
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    threading.Timer(0.4, signal.raise_signal, [signal.SIGINT]).start()
    started = time.monotonic()
    with pytest.raises(Interrupted):
        submit_all(items(backend, 4), made=lambda number, ref: None)
    assert time.monotonic() - started < 30


def test_it_works_in_a_thread_that_gets_no_signals() -> None:
    backend = Fake()
    thread = threading.Thread(target=lambda: submit_all(items(backend, 5), made=lambda number, ref: None))
    thread.start()
    thread.join()
    assert len(backend.made) == 5

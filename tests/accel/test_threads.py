"""Calls at the same time: their order, their errors, and an interrupt."""

import signal
import subprocess
import sys
import time

import pytest

from accel.threads import in_threads
from tests.jobs.conftest import ROOT


def test_the_answers_are_in_the_order_of_the_items() -> None:
    def late(number: int) -> int:
        time.sleep(0.02 * (3 - number))
        return number * 10

    assert list(in_threads(late, [1, 2, 3], 2)) == [10, 20, 30]
    assert list(in_threads(late, [], 2)) == []


def test_the_first_error_is_raised_and_the_rest_is_left_out() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise KeyError(number)
        return number

    found = in_threads(work, list(range(1, 100)), 1)
    assert next(found) == 1
    with pytest.raises(KeyError):
        next(found)
    assert len(begun) < 99


PROGRAM = """
import time
from accel.threads import in_threads
print("begun", flush=True)
try:
    list(in_threads(time.sleep, [60, 60], 2))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_waits_for_no_call() -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "begun\n"
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=50)[0] == "interrupted\n"
    assert time.monotonic() - began < 30

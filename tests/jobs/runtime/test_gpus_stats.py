"""The thread that writes lines: what it says, and that nothing in it reaches the program."""

from __future__ import annotations

import os
import queue
import threading
from typing import Any

import pytest

from jobs.runtime import lines
from jobs.runtime.gpus import State, Unreadable
from jobs.runtime.gpus_stats import Stats

PATIENCE_S = 60
SHORT_S = 0.001


class Gpus:
    """A source by hand."""

    least_s = 0.0

    def __init__(self, *readings: dict[str, Any]) -> None:
        self.readings = list(readings)
        self.errors: dict[int, list[int]] = {}
        self.broken: Exception | None = None
        self.closed = threading.Event()

    def read(self) -> list[dict[str, Any]]:
        if self.broken:
            raise self.broken
        return [dict(each) for each in self.readings]

    def xids(self) -> dict[int, list[int]]:
        found, self.errors = self.errors, {}
        return found

    def states(self) -> list[State]:
        return []

    def driver(self) -> str:
        return ""

    def close(self) -> None:
        self.closed.set()


class Written:
    """Lines as they come; `next(key)` waits for one that has the key."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()

    def next(self, key: str) -> dict[str, Any]:
        while True:
            told = lines.read(self.lines.get(timeout=PATIENCE_S))
            assert told is not None
            if key in told:
                return told


GPU = {"index": 0, "use": 97, "memory_mib": 1, "memory_total_mib": 2, "temperature_c": 60}


def started(source: Any, written: Written, every_s: float = SHORT_S) -> Stats:
    stats = Stats(every_s=every_s, write=written.lines.put, open_source=lambda: source)
    stats.start()
    return stats


def test_lines_have_gpus_and_host_until_it_is_stopped() -> None:
    written, source = Written(), Gpus(GPU)
    with Stats(every_s=SHORT_S, write=written.lines.put, open_source=lambda: source) as stats:
        told = written.next("gpus")
        assert told["gpus"] == [GPU]
        assert told["host"]["memory_total_mib"] > 0
        stats.start()
        assert sum(each.name == "accel-stats" for each in threading.enumerate()) == 1
        written.next("gpus")
        assert 0 < stats.share < 1
    assert source.closed.is_set()
    assert not any(each.name == "accel-stats" for each in threading.enumerate())


def test_errors_are_told_once_and_stay_in_the_lines() -> None:
    written, source = Written(), Gpus(GPU, GPU | {"index": 1})
    stats = started(source, written)
    try:
        source.errors = {1: [79, 79], 0: [31]}
        said = {written.next("event")["said"] for _ in range(2)}
        assert said == {"XID 79 on GPU 1: GPU fell off the bus", "XID 31 on GPU 0: an error that programs can cause"}
        for _ in range(2):
            assert [each.get("xid") for each in written.next("gpus")["gpus"]] == [[31], [79]]
    finally:
        stats.stop()


def test_a_gpu_that_is_gone_is_said_once() -> None:
    written, source = Written(), Gpus(GPU, {"index": 1, "name": "NVIDIA H100 80GB HBM3"})
    stats = started(source, written)
    assert written.next("event")["said"] == "GPU 1 does not answer any more"
    written.next("gpus")
    written.next("gpus")
    stats.stop()
    rest = [lines.read(written.lines.get()) for _ in range(written.lines.qsize())]
    assert not [each for each in rest if each and "event" in each]


def test_a_driver_that_fails_is_said_and_the_host_goes_on() -> None:
    written, source = Written(), Gpus(GPU)
    source.broken = Unreadable("nvidia-smi ended with 15")
    stats = started(source, written)
    assert written.next("event")["said"] == "the GPUs do not answer: nvidia-smi ended with 15"
    assert "gpus" not in written.next("host")
    source.broken = None
    assert written.next("gpus")["gpus"] == [GPU]
    stats.stop()


def test_a_driver_that_does_not_start_is_said() -> None:
    def refuse() -> None:
        raise Unreadable("NVML: Driver/library version mismatch (error 18)")

    written = Written()
    with Stats(every_s=SHORT_S, write=written.lines.put, open_source=refuse):
        said = written.next("event")["said"]
        assert said == "no GPU can be read: NVML: Driver/library version mismatch (error 18)"
        assert "gpus" not in written.next("host")


def test_no_gpu_is_no_event() -> None:
    written = Written()
    with Stats(every_s=SHORT_S, write=written.lines.put, open_source=lambda: None):
        assert written.next("at").keys() == {"at", "host"}


def test_a_slow_source_is_asked_less_often() -> None:
    written, source = Written(), Gpus(GPU)
    source.least_s = 3600
    stats = started(source, written)
    stats.stop()
    assert written.lines.empty()


@pytest.mark.parametrize("error", [OSError("broken pipe"), ValueError("I/O operation on closed file")])
def test_a_closed_output_ends_it_quietly(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(line: str) -> None:
        raise error

    stats = Stats(every_s=SHORT_S, write=fail, open_source=lambda: Gpus(GPU))
    stats.start()
    for thread in [each for each in threading.enumerate() if each.name == "accel-stats"]:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
    stats.stop()
    assert capfd.readouterr().err == ""


def test_a_driver_that_hangs_does_not_stop_the_program() -> None:
    let_go = threading.Event()

    def hang() -> None:
        let_go.wait(PATIENCE_S)

    stats = Stats(every_s=SHORT_S, write=lambda line: None, open_source=hang)
    stats.start()
    stats.stop(timeout_s=0.01)
    let_go.set()


def test_a_forked_child_can_write(capfd: pytest.CaptureFixture[str]) -> None:
    stats = Stats(every_s=SHORT_S, open_source=lambda: Gpus(GPU))
    stats.start()
    for _ in range(20):
        child = os.fork()
        if child == 0:
            print("child", flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stats.stop()
    assert capfd.readouterr().out.count("child") == 20


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="every_s: must be above 0, is 0"):
        Stats(every_s=0)

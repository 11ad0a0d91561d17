"""Cost of accel_runtime to a job: its import, a question whether to stop, and a checkpoint of 1 GiB. The import is the
CPU time of fresh processes above that of ones that import nothing, in turn; the least of each counts, since other load
can only add to it, and adds far less than to the time on the clock. The checkpoint is held against a plain write and
fsync of the same bytes to the same disk, in turn, so that other load meets both alike."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from jobs.client import runtime_wheel
from jobs.runtime import checkpoints

from .measure import PYTHON, Failed, Line, run

IMPORT_LIMIT_MS = 30.0
STOP_LIMIT_NS = 1000.0
RATE_LIMIT = 1 / 0.9
"""Multiple of the plain write's time: 0.9 of its rate."""
GIB = 1 << 30
BLOCK = 16 << 20
ROUNDS = 5
STARTS = 20
"""Fresh processes of each kind."""

IMPORTED, BARE = "import accel_runtime", "pass"
ASKED = (
    "import accel_runtime, timeit; accel_runtime.watch(); count = 1_000_000;"
    " print(min(timeit.repeat(accel_runtime.should_stop, number=count, repeat=5)) / count * 1e9)"
)


def measure(scratch: Path) -> Iterator[Line]:
    """Measure the package as a job has it: from the file that is put on its path."""
    wheel = runtime_wheel.write(scratch)
    unpacked = scratch / "unpacked"
    shutil.unpack_archive(str(wheel), str(unpacked), "zip")
    for place, name in (unpacked, "import accel_runtime, installed"), (wheel, "import accel_runtime, from the file"):
        _cpu_ms(IMPORTED, place)  # it has its bytecode then
        rounds = [(_cpu_ms(BARE, place), _cpu_ms(IMPORTED, place)) for _ in range(STARTS)]
        bare, whole = map(min, zip(*rounds, strict=True))
        yield Line(f"{name}: processor's time above bare Python", whole - bare, "ms", limit=IMPORT_LIMIT_MS)
        yield Line(f"{name}: the whole process", whole, "ms", "bare Python", bare)
    asked = float(run((PYTHON, "-c", ASKED), environment={"PYTHONPATH": str(unpacked)}))
    yield Line("should_stop()", asked, "ns", limit=STOP_LIMIT_NS)
    yield from _checkpoint(scratch)


def _cpu_ms(program: str, path: Path) -> float:
    """Return the CPU time of a fresh process, in its own code and in the kernel for it. Raise Failed."""
    values = {**os.environ, "PYTHONPATH": str(path)}
    values.pop("PYTHONDONTWRITEBYTECODE", None)
    process = os.posix_spawn(PYTHON, [PYTHON, "-c", program], values)
    _, status, used = os.wait4(process, 0)
    if status:
        raise Failed(f"python -c {program!r}: exit code {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1000


def _checkpoint(scratch: Path) -> Iterator[Line]:
    block = os.urandom(BLOCK)
    ratios: dict[str, list[float]] = {"open": [], "folder": []}
    saves: dict[str, list[float]] = {"open": [], "folder": []}
    plain: list[float] = []
    kept = checkpoints.Checkpoints(scratch / "checkpoints", keep=1, writer=True)
    for step in range(ROUNDS + 1):
        for name in ratios:
            base = _plain_s(scratch / "plain", block)
            taken = _save_s(kept, 2 * step + (name == "open"), name, block)
            if step:  # the first round warms the disk
                plain.append(base)
                saves[name].append(taken)
                ratios[name].append(taken / base)
    wrote = "a plain write and fsync"
    for name, words in ("open", "checkpoint of 1 GiB, by into.open()"), ("folder", "the same, by a path in its folder"):
        limit = RATE_LIMIT if name == "open" else None
        yield Line(words, statistics.median(saves[name]), "s", wrote, statistics.median(plain))
        yield Line(f"{words}: time over that of {wrote}", statistics.median(ratios[name]), "", limit=limit)


def _plain_s(path: Path, block: bytes) -> float:
    os.sync()
    started = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(GIB // BLOCK):
            file.write(block)
        os.fsync(file.fileno())
    taken = time.perf_counter() - started
    path.unlink()
    return taken


def _save_s(kept: checkpoints.Checkpoints, step: int, way: str, block: bytes) -> float:
    def write(into: checkpoints.Writing) -> None:
        with into.open("state") if way == "open" else (into.folder / "state").open("wb", buffering=0) as file:
            for _ in range(GIB // BLOCK):
                file.write(block)

    for left in Path(kept.place).glob("step-*"):
        shutil.rmtree(left)
    os.sync()
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # it reports what it saved
        kept.save(step, write)
    return time.perf_counter() - started

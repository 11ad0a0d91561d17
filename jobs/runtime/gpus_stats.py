"""Lines about GPUs and the machine, written at an interval while the program runs: `with Stats(every_s=10): train()`. A
separate thread opens the driver, so that a driver that hangs does not stop the program. Whatever goes wrong in the
thread is reported in a line, and never raised into the program."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import lines
from .gpus import Source, Unreadable
from .gpus_nvml import open_source
from .gpus_xids import BAD

MIB = 2**20

_V2 = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "inactive_file")
_V1 = (
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.stat",
    "total_inactive_file",
)


class Host:
    """Readings of the machine; the first has the CPU use since creation. `root` is put before every path."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._before = self._ticks()

    def read(self) -> dict[str, Any]:
        """Return the form of a line of the log. CPU is the whole machine's, with all that runs beside this job."""
        told: dict[str, Any] = {}
        now, before = self._ticks(), self._before
        if now and before and now[1] > before[1]:
            told["cpu"] = round(100 * (now[0] - before[0]) / (now[1] - before[1]), 1)
        self._before = now
        used, total = self._memory()
        if total:
            told["memory_mib"], told["memory_total_mib"] = used // MIB, total // MIB
        return told

    def _ticks(self) -> tuple[int, int] | None:
        """Return the busy and the total ticks of all cores since the machine started, or None if they are unknown.
        https://docs.kernel.org/filesystems/proc.html#miscellaneous-kernel-statistics-in-proc-stat"""
        first = self._text("/proc/stat").partition("\n")[0].split()
        if len(first) < 5 or first[0] != "cpu":
            return None
        # The last two, of guests, are in the first two already.
        ticks = [int(tick) for tick in first[1:9]]
        idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0)
        return sum(ticks) - idle, sum(ticks)

    def _memory(self) -> tuple[int, int]:
        """Return the bytes in use, without files that the kernel would drop, and in total: the container's limit, else
        the machine's memory. Return zeros if both are unknown."""
        machine = {
            name: int(rest.split()[0]) * 1024
            for name, _, rest in (line.partition(":") for line in self._text("/proc/meminfo").splitlines())
            if rest.split()
        }
        total = machine.get("MemTotal", 0)
        for current, limit, stat, dropped in (_V2, _V1):
            used, most = self._text(current).strip(), self._text(limit).strip()
            # A group without a limit says max, or in the first version a number above any memory.
            if used.isdigit() and most.isdigit() and int(most) < total:
                counts = dict(line.split(" ", 1) for line in self._text(stat).splitlines() if " " in line)
                return max(int(used) - int(counts.get(dropped, "0")), 0), int(most)
        return total - machine.get("MemAvailable", 0), total

    def _text(self, path: str) -> str:
        try:
            with open(self._root + path, encoding="ascii", errors="replace") as stream:  # noqa: PTH123  pathlib is slow
                return stream.read()
        except OSError:
            return ""


_WRITING = threading.Lock()
# A process that is forked while the thread writes would have standard output locked for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_WRITING.acquire, after_in_parent=_WRITING.release, after_in_child=_WRITING.release)


class Stats:
    """Writer of one line every `every_s` seconds, from start() to stop() or within a `with`. With nvidia-smi it writes
    at most one in ten seconds, since each costs a process. It can be started again. A line's `xid` has the errors since
    start(). Each error is also reported by an event of its own, and so is a lost GPU. Errors come from NVML's events,
    so they are absent with nvidia-smi, and in MIG mode without privileges."""

    def __init__(
        self,
        every_s: float = 10.0,
        write: Callable[[str], Any] | None = None,
        open_source: Callable[[], Source | None] = open_source,
        host: Host | None = None,
    ) -> None:
        if not every_s > 0:
            raise ValueError(f"every_s: must be above 0, is {every_s}")
        self._every_s = every_s
        self._write = write or _to_stdout
        self._open = open_source
        self._host = host or Host()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._xids: dict[int, list[int]] = {}
        self._told: set[str] = set()
        self._cpu_s = 0.0
        self._since = 0.0

    def start(self) -> None:
        if self._thread is None:
            self._ended.clear()
            self._thread = threading.Thread(target=self._run, name="accel-stats", daemon=True)
            self._thread.start()

    def stop(self, timeout_s: float = 2.0) -> None:
        """Stop writing. After `timeout_s`, leave a thread that hangs in the driver behind."""
        if self._thread is not None:
            self._ended.set()
            self._thread.join(timeout_s)
            self._thread = None

    def __enter__(self) -> Stats:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def share(self) -> float:
        """Share of one core used since start(), 0 to 1, without the processes of nvidia-smi."""
        passed = time.monotonic() - self._since
        return self._cpu_s / passed if self._since and passed > 0 else 0.0

    def _run(self) -> None:
        self._since, began = time.monotonic(), time.thread_time()
        source = None
        try:
            try:
                source = self._open()
            except Unreadable as error:
                self._event(f"no GPU can be read: {error}")
            every_s = max(self._every_s, source.least_s if source else 0.0)
            while not self._ended.wait(every_s):
                self.line(source)
                self._cpu_s = time.thread_time() - began
            if source:
                source.close()
        except (OSError, ValueError):
            return  # standard output is gone or closed, and with it whoever reads the lines

    def line(self, source: Source | None) -> None:
        told: dict[str, Any] = {"host": self._host.read()}
        if source:
            try:
                told["gpus"] = self._gpus(source)
            except Unreadable as error:
                self._event(f"the GPUs do not answer: {error}")
        self._write(lines.format_line(**told))

    def _gpus(self, source: Source) -> list[dict[str, Any]]:
        readings = source.read()
        for index, numbers in source.xids().items():
            seen = self._xids.setdefault(index, [])
            for number in numbers:
                if number not in seen:
                    seen.append(number)
                    self._event(f"XID {number} on GPU {index}: {BAD.get(number, 'an error that programs can cause')}")
        for reading in readings:
            index = reading["index"]
            if index in self._xids:
                reading["xid"] = list(self._xids[index])
            if not {"temperature_c", "memory_mib"} & reading.keys():
                self._event(f"GPU {index} does not answer any more")
        return readings

    def _event(self, said: str) -> None:
        """Report a fault once, since a lost GPU stays lost."""
        if said not in self._told:
            self._told.add(said)
            self._write(lines.format_line(event="health", said=said))


def _to_stdout(line: str) -> None:
    with _WRITING:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

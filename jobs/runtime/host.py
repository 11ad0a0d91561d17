"""What this machine does: CPU over all cores, and the memory that this job may use. Of Linux; others tell nothing."""

from __future__ import annotations

from typing import Any

MIB = 2**20

_V2 = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.stat", "inactive_file")
_V1 = (
    "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory/memory.stat",
    "total_inactive_file",
)


class Host:
    """Readings of the machine; the first one tells the CPU since this was made. `root` is put before every path."""

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._before = self._ticks()

    def read(self) -> dict[str, Any]:
        """One object, as a line of the log has it. CPU is the machine's, with all that runs beside this job."""
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
        """Busy and all, over all cores since the machine started.
        https://docs.kernel.org/filesystems/proc.html#miscellaneous-kernel-statistics-in-proc-stat"""
        first = self._text("/proc/stat").partition("\n")[0].split()
        if len(first) < 5 or first[0] != "cpu":
            return None
        # The last two, of guests, are in the first two already.
        ticks = [int(tick) for tick in first[1:9]]
        idle = ticks[3] + (ticks[4] if len(ticks) > 4 else 0)
        return sum(ticks) - idle, sum(ticks)

    def _memory(self) -> tuple[int, int]:
        """Bytes in use, without files that the kernel would drop, and in all: the container's limit, else the
        machine's memory. Zeros where nothing tells."""
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

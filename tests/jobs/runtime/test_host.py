"""CPU and memory of the machine, or of the container, from the kernel's files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.runtime.gpus_stats import Host


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str, str], None]:
    """Writes a file of the machine: `machine("/proc/stat", "cpu ...")`."""

    def put(path: str, text: str) -> None:
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    put("/proc/stat", "cpu  100 0 100 800 0 0 0 0 50 0\ncpu0 1 2 3\n")
    put(
        "/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    4096 kB\nHugePages_Total:       0\n"
    )
    return put


def test_host_without_a_limit(machine: Callable[[str, str], None], tmp_path: Path) -> None:
    host = Host(str(tmp_path))
    machine("/proc/stat", "cpu  190 0 160 840 10 0 0 0 90 0\n")
    assert host.read() == {"cpu": 75.0, "memory_mib": 12, "memory_total_mib": 16}
    assert "cpu" not in host.read(), "no time has passed"


@pytest.mark.parametrize(
    ("folder", "names", "dropped"),
    [
        ("/sys/fs/cgroup", ("memory.current", "memory.max"), "inactive_file"),
        ("/sys/fs/cgroup/memory", ("memory.usage_in_bytes", "memory.limit_in_bytes"), "total_inactive_file"),
    ],
)
def test_host_with_a_limit(
    machine: Callable[[str, str], None], tmp_path: Path, folder: str, names: tuple[str, str], dropped: str
) -> None:
    machine(f"{folder}/{names[0]}", f"{6 * 2**20}\n")
    machine(f"{folder}/memory.stat", f"anon 5\n{dropped} {2 * 2**20}\n")
    machine(f"{folder}/{names[1]}", f"{8 * 2**20}\n")
    assert Host(str(tmp_path)).read() == {"memory_mib": 4, "memory_total_mib": 8}
    for none in ("max", str(2**63 - 4096)):
        machine(f"{folder}/{names[1]}", f"{none}\n")
        assert Host(str(tmp_path)).read() == {"memory_mib": 12, "memory_total_mib": 16}


def test_another_system_tells_nothing(tmp_path: Path) -> None:
    assert Host(str(tmp_path)).read() == {}

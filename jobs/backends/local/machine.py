"""What this machine has for local jobs: looked up when one is submitted, never when it is rendered."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accel.folders import state

_SHM = Path("/dev/shm")  # noqa: S108, looked at only


def shortfalls(body: dict[str, Any], devices: list[str], names: list[str]) -> list[str]:
    """What one task asks for and this machine does not have, a line each."""
    faults = [
        f"{field}: asks for {wanted}, this machine has {has}"
        for field, measure in _MEASURES.items()
        if (wanted := body[field]) is not None and wanted > (has := measure())
    ]
    accelerator: dict[str, Any] | None = body["accelerator"]
    if not accelerator:
        return faults
    if accelerator["count"] > len(devices):
        seen = f"{len(devices)} GPU(s) visible to nvidia-smi" if devices else "no GPU visible to nvidia-smi"
        faults.append(f"accelerator.count: asks for {accelerator['count']}, this machine has {seen}")
    elif accelerator["type"] and not any(_plain(accelerator["type"]) in _plain(name) for name in names):
        faults.append(f"accelerator.type: asks for {accelerator['type']}, this machine has {', '.join(names)}")
    return faults


def gpus() -> tuple[list[str], list[str]]:
    """Ids for CUDA_VISIBLE_DEVICES, as far as this process may use them, and the names of the kinds."""
    command = ["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return [], []
    if answer.returncode != 0:
        return [], []
    found = dict(line.split(", ", 1) for line in answer.stdout.splitlines() if ", " in line)
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    ids = list(found) if allowed is None else [one.strip() for one in allowed.split(",") if one.strip()]
    return ids, sorted(set(found.values()))


def cpus() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_mib() -> int:
    """All of it, in use or not."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20


def shm_mib() -> int:
    """Of the shared memory file system; 0 where there is none."""
    return shutil.disk_usage(_SHM).total // 2**20 if _SHM.exists() else 0


def disk_gib() -> int:
    """Free, where local jobs keep their output."""
    folder = state()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free // 2**30


_MEASURES: dict[str, Callable[[], int]] = {
    "cpus": cpus,
    "memory_mib": memory_mib,
    "shm_mib": shm_mib,
    "disk_gib": disk_gib,
}


def _plain(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())

"""Check whether a process recorded earlier still exists: yes, no, or unknown."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any, Literal

Presence = Literal["there", "gone", "unknown"]


def identity(pid: int) -> dict[str, Any]:
    """Return what distinguishes this process from every other, even after a reuse of its pid and after a reboot."""
    return {
        "pid": pid,
        "started": _started(pid),
        "boot": _text(Path("/proc/sys/kernel/random/boot_id")),
        "host": platform.node(),
        "namespace": _namespace(),
    }


def presence(noted: dict[str, Any]) -> Presence:
    """Return "gone" only on proof: another boot of the same machine, no such pid, or a pid that another process has. A
    process of another machine or container, whose record is seen over a shared folder, is unknown."""
    if noted["host"] != platform.node():
        return "unknown"
    boot = _text(Path("/proc/sys/kernel/random/boot_id"))
    if noted["boot"] and boot and noted["boot"] != boot:
        return "gone"
    if noted["namespace"] != _namespace():
        return "unknown"
    try:
        os.kill(noted["pid"], 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        pass
    started = _started(noted["pid"])
    if started is None or noted["started"] is None:
        return "unknown"
    return "there" if started == noted["started"] else "gone"


def _started(pid: int) -> str | None:
    """Return the process's start time in the system's own notation; None if it cannot be read."""
    stat = _text(Path(f"/proc/{pid}/stat"))
    if stat is not None:
        # The second field, the program's name, may hold spaces and brackets. State Z: ended, not yet reaped.
        fields = stat.rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    try:
        found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found.stdout.strip() or None


def _namespace() -> str | None:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None

"""Whose a stack's lock is, whether its holder can still be at work, and language hosts that outlive their engine: of a
killed one they end by themselves only after minutes. Source: https://github.com/pulumi/pulumi/pull/9735"""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from .engine import ATTRIBUTES

Holder = Literal["at work", "gone", "elsewhere"]

_HOST = re.compile(r"\s*(\d+) \S*/pulumi-language-\S+ .*\b127\.0\.0\.1:(\d+)")
"""The process, and where its engine listens."""
_ANSWER_S = 1


@dataclass(frozen=True)
class Lock:
    """A lock of Pulumi's file backend, which holds pid, user, host and time."""

    path: Path
    pid: int
    """0: the file does not say."""
    user: str
    host: str
    since: datetime

    @property
    def holder(self) -> Holder:
        """`elsewhere`: on another machine, where nobody here can look."""
        if self.host != socket.gethostname():
            return "elsewhere"
        return "at work" if _runs(self.pid) else "gone"

    def text(self, now: datetime) -> str:
        """In words."""
        minutes = (now - self.since).total_seconds() / 60
        age = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        state = {"at work": "is at work", "gone": "is gone", "elsewhere": "runs on another machine, if it still does"}
        who = f"process {self.pid}" if self.pid else "whoever wrote half of this lock"
        return f"locked {age} ago by {self.user} on {self.host}: {who} {state[self.holder]}"

    def remove(self) -> None:
        """Takes it away, with the file that the backend keeps beside each of its own."""
        self.path.unlink(missing_ok=True)
        self.path.with_name(f"{self.path.name}{ATTRIBUTES}").unlink(missing_ok=True)


def locks(paths: Sequence[Path]) -> list[Lock]:
    """What the files say; one that is gone meanwhile is left out."""
    found: list[Lock] = []
    for path in paths:
        try:
            told, written = path.read_text(), path.stat().st_mtime
        except FileNotFoundError:
            continue
        found.append(_lock(path, told, datetime.fromtimestamp(written, UTC)))
    return found


def _lock(path: Path, told: str, written: datetime) -> Lock:
    try:
        each = json.loads(told)
    except ValueError:  # its holder was killed while it wrote it
        return Lock(path, 0, "somebody", socket.gethostname(), written)
    since = datetime.fromisoformat(each["timestamp"]).astimezone(UTC)
    return Lock(path, int(each["pid"]), str(each["username"]), str(each["hostname"]), since)


def _runs(pid: int) -> bool:
    """Whether it is a pulumi: numbers of processes are used again, and one that nobody waited for has ended."""
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        return told.get("Name", "").startswith("pulumi") and not told.get("State", "").startswith("Z")
    asked = subprocess.run(
        ["/bin/ps", "-o", "stat=,comm=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, command = asked.stdout.strip().partition(" ")
    return "pulumi" in command and not state.startswith("Z")


def orphans() -> list[int]:
    """Language hosts of this user whose engine does not listen any more."""
    listed = subprocess.run(["ps", "-xwwo", "pid=,args="], capture_output=True, text=True, check=False).stdout
    found = [each for each in map(_HOST.match, listed.splitlines()) if each]
    return [int(each[1]) for each in found if not _listens(int(each[2]))]


def end(pid: int) -> None:
    """Asks one to end."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # that nothing was heard proves nothing
    return True

"""The pulumi command for one stack, the files that its file backend keeps beside the state, and the leftovers of a
killed engine: locks, and language hosts, which end by themselves only after minutes. Source:
https://github.com/pulumi/pulumi/pull/9735"""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from accel.diagnostics.errors import CloudRefused
from accel.json_values import mapping

from ..pulumi_command import ran

Json = dict[str, Any]
_REMEMBERED = 20
"""Number of last runs, including refreshes."""
_ATTRIBUTES = ".attrs"
"""Suffix of the file that the file backend keeps beside each of its own."""
_FOLDERS = ("locks/organization", "backups", "history")
"""Folders of the file backend beside that of the states."""

Holder = Literal["at work", "gone", "elsewhere"]

_HOST = re.compile(r"\s*(\d+) \S*/pulumi-language-\S+ .*\b127\.0\.0\.1:(\d+)")
"""The process, and the port of its engine."""
_ANSWER_S = 1


@dataclass(frozen=True)
class Engine:
    """`pulumi` in this folder, for one stack of its project."""

    stack: str

    def export(self) -> Json:
        """Raise NotFound where there is no such stack, CloudRefused where the state cannot be read."""
        return json.loads(self.run("stack", "export"))

    def replace(self, state: Json) -> None:
        """Write the whole state. Pulumi drops every pending operation in doing so."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "state.json")
            file.touch(mode=0o600)
            file.write_text(json.dumps(state))
            self.run("stack", "import", "--file", str(file))

    def planned(self) -> Json:
        """Return what an `up` would do after a refresh. Raise CloudRefused where the program cannot be run."""
        return json.loads(self.run("preview", "--refresh", "--json"))

    def history(self) -> list[Json]:
        """Return the last finished runs, the latest first."""
        return json.loads(self.run("stack", "history", "--json", "--page-size", str(_REMEMBERED)))

    def refresh(self, urns: Sequence[str] = ()) -> None:
        """Read these resources in the cloud, or all: the state then has their current values, or drops them."""
        targets = [part for urn in urns for part in ("--target", urn)]
        self.run("refresh", "--yes", "--skip-preview", *targets)

    def cancel(self) -> None:
        """Remove every lock of the stack."""
        self.run("cancel", "--yes", self.stack, named=False)

    def up(self) -> None:
        self.run("up", "--yes", "--skip-preview")

    def destroy(self) -> None:
        self.run("destroy", "--yes", "--skip-preview", "--run-program")  # which registers the hooks that it needs

    def unchanged(self) -> None:
        """Raise CloudRefused unless a preview is empty."""
        self.run("preview", "--expect-no-changes")

    def backend(self) -> str:
        return json.loads(self.run("whoami", "--json", named=False))["url"]

    def run(self, *arguments: str, named: bool = True) -> str:
        """Return its stdout. Raise NotFound or CloudRefused with its own first error."""
        done = ran(*arguments, *(["--stack", self.stack] if named else []))
        if done.returncode:
            # Errors of the engine are on stdout, among its output; those of the command on stderr.
            said = (done.stderr + "\n" + done.stdout).strip().splitlines()
            why = next((line.strip() for line in said if "error: " in line), f"ended with {done.returncode}")
            message = f"pulumi {' '.join(arguments[:2])}: {why.removeprefix('error: ')}"
            raise CloudRefused(message)
        return done.stdout


@dataclass(frozen=True)
class Files:
    """Files of a backend in a folder: the stack's state and its locks. Source:
    https://github.com/pulumi/pulumi/blob/master/pkg/backend/diy (lock.go, state.go, store.go)"""

    root: Path
    project: str
    stack: str

    @classmethod
    def of(cls, backend: str, project: str, stack: str) -> "Files | None":
        """Return None for a backend that is no folder."""
        if not backend.startswith("file://"):
            return None
        path = unquote(urlsplit(backend).path) if backend.startswith("file:///") else backend[len("file://") :]
        return cls(Path(path.partition("?")[0]).expanduser() / ".pulumi", project, stack)

    def locks(self) -> list[Path]:
        folder = self.root / "locks" / "organization" / self.project / self.stack
        return sorted(folder.glob("*.json"))

    def mark(self) -> Path:
        """Return a file that exists while recover is at work, so that after a kill the next one learns its purpose."""
        return self.root / "recover" / self.project / f"{self.stack}.json"

    def state(self) -> Path:
        """Return the path of the state, existing or not; it may be compressed."""
        folder = self.root / "stacks" / self.project
        kinds = [folder / f"{self.stack}.json{ending}" for ending in ("", ".gz", ".zst")]
        return next((path for path in kinds if path.exists()), kinds[0])

    def corrupt(self) -> Path | None:
        """Return the state's file if it is no JSON: cut off, or empty."""
        path = self.state()
        if path.suffix != ".json" or not path.exists() or _sound(path):
            return None
        return path

    def torn(self) -> Path | None:
        """Return the state's file of attributes if it is no JSON: the state is readable without it, but not with it. It
        is written before the state takes its name, and not atomically. Source:
        https://github.com/google/go-cloud/blob/master/blob/fileblob/attrs.go"""
        path = self.state()
        path = path.with_name(f"{path.name}{_ATTRIBUTES}")
        return path if path.exists() and _json_object(path) is None else None

    def unfinished(self) -> list[Path]:
        """Return files that a killed engine was about to rename."""
        own = f"{self.project}/{self.stack}"
        kinds = (f"stacks/{own}.json.*.tmp", *(f"{kind}/{own}/*.tmp" for kind in _FOLDERS))
        return sorted(path for kind in kinds for path in self.root.glob(kind))

    def backups(self) -> list[Path]:
        """Return readable earlier states, the latest first: that of the previous write, and those of whole runs."""
        path = self.state()
        kept = (self.root / "backups" / self.project / self.stack).glob(f"{self.stack}.*.json")
        found = [path.with_name(f"{path.name}.bak"), *kept]
        return sorted(filter(_sound, found), key=lambda each: -each.stat().st_mtime)


@dataclass(frozen=True)
class Lock:
    """A lock of Pulumi's file backend with pid, user, host and time."""

    path: Path
    pid: int
    """0 where the file has none."""
    user: str
    host: str
    since: datetime

    @property
    def holder(self) -> Holder:
        """Return the state of the holder; `elsewhere`: on another machine, where it cannot be checked."""
        if self.host != socket.gethostname():
            return "elsewhere"
        return "at work" if _runs(self.pid) else "gone"

    def text(self, now: datetime) -> str:
        minutes = (now - self.since).total_seconds() / 60
        age = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
        state = {"at work": "is at work", "gone": "is gone", "elsewhere": "runs on another machine, if it still does"}
        who = f"process {self.pid}" if self.pid else "whoever wrote half of this lock"
        return f"locked {age} ago by {self.user} on {self.host}: {who} {state[self.holder]}"

    def remove(self) -> None:
        """Remove it, with the file that the backend keeps beside each of its own."""
        self.path.unlink(missing_ok=True)
        self.path.with_name(f"{self.path.name}{_ATTRIBUTES}").unlink(missing_ok=True)


def read_locks(paths: Sequence[Path]) -> list[Lock]:
    """Omit a file that disappears meanwhile."""
    found: list[Lock] = []
    for path in paths:
        try:
            told, written = path.read_text(), path.stat().st_mtime
        except FileNotFoundError:
            continue
        found.append(_parse_lock(path, told, datetime.fromtimestamp(written, UTC)))
    return found


def orphan_hosts() -> list[int]:
    """Find language hosts of this user whose engine no longer listens."""
    listed = subprocess.run(["ps", "-xwwo", "pid=,args="], capture_output=True, text=True, check=False).stdout
    found = [each for each in map(_HOST.match, listed.splitlines()) if each]
    return [int(each[1]) for each in found if not _listens(int(each[2]))]


def end_process(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _sound(path: Path) -> bool:
    return "checkpoint" in (_json_object(path) or {})


def _json_object(path: Path) -> Json | None:
    try:
        return mapping(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):
        return None


def _parse_lock(path: Path, told: str, written: datetime) -> Lock:
    try:
        each = json.loads(told)
    except ValueError:  # its holder was killed while it wrote it
        return Lock(path, 0, "somebody", socket.gethostname(), written)
    since = datetime.fromisoformat(each["timestamp"]).astimezone(UTC)
    return Lock(path, int(each["pid"]), str(each["username"]), str(each["hostname"]), since)


def _runs(pid: int) -> bool:
    """Return whether it is a pulumi: pids are reused, and a zombie has ended."""
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


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=_ANSWER_S).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True  # that nothing was heard proves nothing
    return True

"""Processes of a sandbox: started once, found again, stopped without remains."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import psutil

from . import SandboxError, toolchain
from .environment import project
from .grants import GRANTS, grant
from .keys import bearer

AWS = ("cloud", "plugins")
GOOGLE = ("google", "kubernetes")
PARTS = ("cloud", *GOOGLE, "plugins")
_MODULES = {name: f"sandbox.{name}" for name in PARTS} | {"cloud": "sandbox.aws"}
_CONTROL_PLANE = frozenset(toolchain.COMMANDS)
HEADER = "header"
"""File with the header that curl sends to the control API, so that no command line shows it: curl -H @FILE."""
_START_S = 180
_STOP_S = 5


@dataclass(frozen=True)
class Part:
    """One running process of a sandbox, and what it wrote about itself."""

    name: str
    process: psutil.Process
    told: dict[str, Any]


def running(home: Path) -> dict[str, Part]:
    """Return the parts that run and answer for `home`, by name."""
    found: dict[str, Part] = {}
    for name in PARTS:
        try:
            path = home / f"{name}.json"
            told = json.loads(path.read_text())
            process = psutil.Process(told["pid"])
            # Pids are reused: the process has to be ours, and older than the file.
            if _part_of(process, home) == name and process.create_time() <= path.stat().st_mtime + 1:
                found[name] = Part(name, process, told)
        except (FileNotFoundError, json.JSONDecodeError, KeyError, psutil.Error):
            continue
    return found


def wanted_parts(home: Path) -> tuple[str, ...]:
    """Return the parts that the last start was asked for; all where it was never started."""
    path = home / "parts.json"
    return tuple(json.loads(path.read_text())) if path.exists() else PARTS


def start(home: Path, parts: Collection[str] = AWS, grants: Mapping[str, float] = GRANTS) -> dict[str, Part]:
    """Start those of these parts that do not run, and keep what runs; a newly started AWS is granted `grants`. Of two
    concurrent starts, the second waits, then finds everything running."""
    for folder in ("backend", "gcloud", "jobs", "logs", "pulumi"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    (home / HEADER).touch(mode=0o600)
    (home / HEADER).write_text("".join(f"{name}: {value}\n" for name, value in bearer(home).items()))
    for empty in ("aws-config", "google-credentials.json"):
        (home / empty).touch()
    with filelock.FileLock(home / "lock"):
        found = running(home)
        asked = [name for name in PARTS if name in parts or name in found]
        (home / "parts.json").write_text(json.dumps(asked))
        missing = _missing(asked, found)
        if missing:
            _end(_remains(home, missing))  # remains of a killed start or a crashed part
            try:
                _launch(home, missing, grants)
            except BaseException:
                _end(_remains(home, missing))
                raise
            found = running(home)
    return found


def _missing(asked: Collection[str], found: Collection[str]) -> list[str]:
    """Return the parts to start. A running cloud is kept, since its state is in memory only."""
    missing = {name for name in asked if name not in found}
    if missing & set(GOOGLE):
        missing.update(name for name in GOOGLE if name in asked)  # each has state about the other, and forgets it
    if missing:
        missing.add("plugins")  # they know the clouds that they were started with
    return [name for name in PARTS if name in missing]


def stop(home: Path, wipe: bool = False) -> list[str]:
    """End every process of `home`, jobs too, and return a line for each. `wipe`: delete the folder as well."""
    if not home.is_dir():
        return []
    with filelock.FileLock(home / "lock"):
        ended = _end(_remains(home))
        for name in PARTS:
            (home / f"{name}.json").unlink(missing_ok=True)
    if wipe:
        shutil.rmtree(home)
    return ended


def _launch(home: Path, missing: Collection[str], grants: Mapping[str, float]) -> None:
    """Start parts side by side, plugins once there are clouds, and wait until each has written its address."""
    for name in missing:
        (home / f"{name}.json").unlink(missing_ok=True)
    give_up = time.monotonic() + _START_S
    more = {"cloud": ["--port", "0", "--root", str(project())]}
    started = {name: _spawn(home, name, more.get(name, [])) for name in missing if name != "plugins"}
    for name in started.keys() & {"cloud", "google"}:
        _await(home, name, started[name], give_up)
    told = json.loads((home / "cloud.json").read_text())
    if "cloud" in missing:
        grant(home, told["url"], grants)
    started["plugins"] = _spawn(home, "plugins", ["--cloud-url", f"http://127.0.0.1:{told['port']}"])
    for name, process in started.items():
        _await(home, name, process, give_up)


def _spawn(home: Path, name: str, arguments: list[str]) -> subprocess.Popen[bytes]:
    with (home / "logs" / f"{name}.log").open("w") as log:
        return run_python(["-m", _MODULES[name], "--home", str(home), *arguments], log.fileno())


def run_python(arguments: list[str], log: int) -> subprocess.Popen[bytes]:
    """Start a Python with these arguments, which writes to `log`, a file descriptor."""
    command = [sys.executable, *arguments]
    return subprocess.Popen(
        command, cwd=project(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def _await(home: Path, name: str, process: subprocess.Popen[bytes], give_up: float) -> None:
    while not (home / f"{name}.json").exists():
        if process.poll() is not None or time.monotonic() > give_up:
            log = home / "logs" / f"{name}.log"
            how = "did not answer in time" if process.poll() is None else f"ended with {process.returncode}"
            last = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
            raise SandboxError(1, f"sandbox.{name} {how}: {last}", f"see {log}")
        time.sleep(0.02)


def _part_of(process: psutil.Process, home: Path) -> str | None:
    """Return the part that a process is, by its command line; None for a process of another home."""
    line = process.cmdline()
    if "--home" in line[:-1] and line[line.index("--home") + 1] == str(home):
        return next((name for name in PARTS if _MODULES[name] in line), None)
    return None


def _remains(home: Path, parts: Collection[str] = PARTS) -> Iterator[psutil.Process]:
    """Yield every process of these parts: the parts themselves, what they started, and what outlived them."""
    for process in psutil.process_iter():
        try:
            if (_left_of(process, home) or _part_of(process, home)) in parts:
                yield from process.children(recursive=True)
                yield process
        except psutil.Error:  # ended meanwhile, or another user's
            continue


def _left_of(process: psutil.Process, home: Path) -> str | None:
    """Return the part that started a process, or without which it is useless. Such a process is a job (a pod's ends by
    itself), a machine, a command of the control plane, or Pulumi's engine and its program."""
    line = process.cmdline() or [""]
    if process.environ().get("PULUMI_HOME") == str(home / "pulumi") and (
        process.name().startswith("pulumi") or any("pulumi-language" in part for part in line)
    ):
        return "plugins"
    if process.environ().get("HOME", "").startswith(f"{home / 'machines'}/"):
        return "google"
    if "python" in process.name():
        folders = {home / "jobs": "cloud", home / "machines": "google"}
        return next((folders[path] for path in folders if any(part.startswith(f"{path}/") for part in line)), None)
    ours = Path(line[0]).name in _CONTROL_PLANE and any(f"{home / 'kubernetes'}/" in part for part in line)
    return "kubernetes" if ours else None


def _end(processes: Iterable[psutil.Process]) -> list[str]:
    found = list(dict.fromkeys(processes))
    named: list[str] = []
    for process in found:
        try:
            named.append(f"{process.pid} {' '.join(process.cmdline())[:100]}")
            process.terminate()
        except psutil.Error:
            continue
    for process in psutil.wait_procs(found, timeout=_STOP_S)[1]:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(found, timeout=_STOP_S)
    return named

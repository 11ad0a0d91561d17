"""The processes of a sandbox: started once, found again, stopped without remains."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import psutil

from . import Fault
from .environment import project

PARTS = ("cloud", "plugins")
_START_S = 60
_STOP_S = 5


@dataclass(frozen=True)
class Part:
    """One running process of a sandbox and what it wrote about itself."""

    name: str
    process: psutil.Process
    told: dict[str, Any]


def running(home: Path) -> dict[str, Part]:
    """The parts that run and answer for `home`, by name."""
    found: dict[str, Part] = {}
    for name in PARTS:
        try:
            path = home / f"{name}.json"
            told = json.loads(path.read_text())
            process = psutil.Process(told["pid"])
            # A pid is used again: the process has to be ours, and older than the file.
            if _part_of(process, home) == name and process.create_time() <= path.stat().st_mtime + 1:
                found[name] = Part(name, process, told)
        except (FileNotFoundError, json.JSONDecodeError, KeyError, psutil.Error):
            continue
    return found


def start(home: Path) -> dict[str, Part]:
    """Start what does not run. Two at once: the second waits, then finds everything running."""
    for folder in ("backend", "jobs", "logs", "pulumi"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "aws-config").touch()
    with filelock.FileLock(home / "lock"):
        parts = running(home)
        # The plugins know one cloud only; a cloud that runs is kept, for its memory is all there is of it.
        missing = ("plugins",) if "cloud" in parts else PARTS
        if len(parts) < len(PARTS):
            _end(_remains(home, missing))  # what a killed start or a crashed part left
            try:
                if "cloud" in missing:
                    _launch(home, "cloud", "--port", "0", "--root", str(project()))
                told = json.loads((home / "cloud.json").read_text())
                _launch(home, "plugins", "--cloud-url", f"http://127.0.0.1:{told['port']}")
            except BaseException:
                _end(_remains(home, missing))
                raise
            parts = running(home)
    return parts


def stop(home: Path, wipe: bool = False) -> list[str]:
    """End every process of `home`, jobs too; returns a line for each. `wipe`: delete the folder as well."""
    if not home.is_dir():
        return []
    with filelock.FileLock(home / "lock"):
        ended = _end(_remains(home))
        for name in PARTS:
            (home / f"{name}.json").unlink(missing_ok=True)
    if wipe:
        shutil.rmtree(home)
    return ended


def _launch(home: Path, name: str, *arguments: str) -> None:
    told, log = home / f"{name}.json", home / "logs" / f"{name}.log"
    told.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"sandbox.{name}", "--home", str(home), *arguments]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, cwd=project(), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    give_up = time.monotonic() + _START_S
    while not told.exists():
        if process.poll() is not None or time.monotonic() > give_up:
            how = "did not answer in time" if process.poll() is None else f"ended with {process.returncode}"
            last = " | ".join(log.read_text(errors="replace").strip().splitlines()[-3:])
            raise Fault(1, f"sandbox.{name} {how}: {last}", f"see {log}")
        time.sleep(0.02)


def _part_of(process: psutil.Process, home: Path) -> str | None:
    """The part that a process is, by its command line; None: it is not one of this home."""
    line = process.cmdline()
    if "--home" in line[:-1] and line[line.index("--home") + 1] == str(home):
        return next((name for name in PARTS if f"sandbox.{name}" in line), None)
    return None


def _remains(home: Path, parts: tuple[str, ...] = PARTS) -> Iterator[psutil.Process]:
    """Every process of these parts: they themselves, what they started, jobs that outlived the cloud."""
    jobs = f"{home / 'jobs'}/"
    for process in psutil.process_iter():
        try:
            runner = "python" in process.name() and any(part.startswith(jobs) for part in process.cmdline())
            if ("cloud" if runner else _part_of(process, home)) in parts:
                yield from process.children(recursive=True)
                yield process
        except psutil.Error:  # gone meanwhile, or another user's
            continue


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

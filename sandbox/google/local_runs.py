"""The part of a job that really runs here: an image `local/<folder>`, whose output becomes log entries.

The image runs as a process of jobs/backends/local_programs/runner.py. `start()` returns a Run; `poll()` tells how it
ended. Put a resource's run into `World.runs` and call `World.watch()`, and operations advance even where no client
polls; what is left there ends with the sandbox.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..runner_process import RunnerProcess
from .stand_ins.docker import folder_of
from .world import Json, World

GRACE_S = float(os.environ.get("SANDBOX_GRACE_S", "30"))
# An entry may have 256 KiB, including the fields around the text: https://docs.cloud.google.com/logging/quotas
_TEXT_BYTES = 200_000
_KILLED = 137
_APIS = ("storage", "logging", "secretmanager")


class StartFailure(Exception):
    """Reason why a container would not have started."""


def is_local(image: str) -> bool:
    return image.startswith("local/")


def credentials(world: World, account: str) -> dict[str, str]:
    """Return the variables that lead to this Google and no other, with the token of the job's service account."""
    roots = {f"ACCEL_{api.upper()}_ROOT": f"{world.url}/{api}.googleapis.com/" for api in _APIS}
    return {**roots, "GOOGLE_OAUTH_ACCESS_TOKEN": world.token_of(account)}


class Run:
    """One process, from start to end. `why` says why it did not start, once `poll` returns an exit code."""

    def __init__(self, process: RunnerProcess) -> None:
        self.folder, self.why, self.timed_out = process.folder, "", False
        self._process = process
        self._kill_at: float | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs; 137 for a runner that was killed."""
        if self._kill_at is not None and time.monotonic() > self._kill_at:
            self.kill()
        if self._process.poll() is None:
            return None
        report = self._process.report()
        why = report.get("reason") or ""
        self.timed_out = why == "timeout"
        self.why = why.partition(": ")[2] if why.startswith("not-started") else ""
        code = report.get("exit_code")
        return _KILLED if code is None else int(code)

    def lines(self, last: bool) -> list[str]:
        """Return what it printed since the last call: whole lines, or with `last` all of it."""
        whole = self._process.lines(last)
        cut = (line[at : at + _TEXT_BYTES] for line in whole for at in range(0, len(line) or 1, _TEXT_BYTES))
        return [part.decode(errors="replace").removesuffix("\r") for part in cut]

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after the grace period. Does not wait."""
        if self._kill_at is None and self._process.poll() is None:
            self._kill_at = time.monotonic() + GRACE_S + 10
            self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def start(folder: Path, image: str, command: Sequence[str], env: Mapping[str, str]) -> Run:
    """Run a command in the folder of an image. `folder` is for the runner's files; it has to lie below the sandbox's
    machines/ for a `stop` of the sandbox to find it. Raise StartFailure, in the words of a container runtime."""
    workdir = folder_of(image)
    if workdir is None:
        raise StartFailure(f'failed to pull and unpack image "{image}": not found')
    if not command:
        raise StartFailure("failed to create containerd container: no command specified")
    return begin(folder, command, env, workdir)


def begin(
    folder: Path, command: Sequence[str], env: Mapping[str, str], workdir: Path, timeout_s: float | None = None
) -> Run:
    """Run a command in `workdir`. After timeout_s it is stopped, and Run.timed_out is set."""
    folder.mkdir(parents=True)
    spec = {"command": list(command), "workdir": str(workdir), "timeout_s": timeout_s, "grace_s": GRACE_S}
    spec["env"] = {"HOME": str(folder), **env}
    return Run(RunnerProcess(folder, spec))


def _text(line: str) -> Json:
    return {"textPayload": line}


def log_lines(
    world: World,
    log: str,
    resource: Json,
    lines: Sequence[str],
    labels: Mapping[str, str] | None = None,
    severity: str = "",
    chance: random.Random | None = None,
    payload: Callable[[str], Json] = _text,
) -> None:
    """Write entries of Cloud Logging as a service does, in the order of the lines. They can be read after
    World.log_lag_s, or with `chance` each at any time until then. `log` is the whole logName, `payload` makes the
    payload of a line."""
    ns = time.time_ns()
    stamp = f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09d}Z"
    more: dict[str, Any] = ({"labels": dict(labels)} if labels else {}) | ({"severity": severity} if severity else {})
    for line in lines:
        entry: Json = {
            "logName": log,
            "resource": resource,
            "timestamp": stamp,
            "receiveTimestamp": stamp,
            "insertId": f"{world.number():x}",
            **payload(line),
            **more,
        }
        world.logs.add({**entry, "__ns": ns}, world.log_lag_s * (chance.random() if chance else 1))

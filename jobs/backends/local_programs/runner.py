"""Program that runs one attempt of a job on this machine: `python runner.py FOLDER [--tied]`. Standard library only.

FOLDER/spec.json    {"command": [...], "env": {...}, "workdir": "...", "timeout_s": int|null, "grace_s": int}
                    and optionally "removal": [...], which ends what the command leaves behind when it is killed
FOLDER/output.log   stdout and stderr, raw, as they come
FOLDER/status.json  {"phase": "running"|"succeeded"|"failed", "pid": of this runner, "exit_code": int|null,
                     "reason": null|"exited"|"timeout"|"terminated"|"not-started: ...",
                     "started": iso time, "stopped": iso time|null}, replaced as a whole

SIGTERM (with --tied also the end of stdin) is passed to the job's process group; SIGKILL follows after grace_s. A job
that a signal ended has exit code 128 + signal, as in a shell. When the job's own process ends, the rest of its group is
killed, as it would be in a container. The job's environment is that of the spec, over a few defaults: nothing of the
caller's leaks into it.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NOT_FOUND = 127
NOT_EXECUTABLE = 126
REMOVAL_S = 60


class Stop:
    """Wait for events, and a record of whether the job was asked to stop."""

    def __init__(self, tied: bool) -> None:
        self.asked = False
        self._watched = [0] if tied else []
        self._woken, waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask)
        # Without a handler, SIGCHLD is discarded and would not wake the select below.
        signal.signal(signal.SIGCHLD, self._wake)

    def _wake(self, *_: object) -> None:
        pass

    def _ask(self, *_: object) -> None:
        self.asked = True

    def sleep(self, until: float | None) -> None:
        """Sleep until a signal, the end of stdin, or this monotonic time."""
        left = None if until is None else max(0.0, until - time.monotonic())
        ready, _, _ = select.select([self._woken, *self._watched], [], [], left)
        if self._woken in ready:
            os.read(self._woken, 4096)
        if 0 in ready and not os.read(0, 4096):
            self.asked = True
            self._watched = []


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0])
    spec: dict[str, Any] = json.loads((folder / "spec.json").read_text())
    guard = _guard(_removal(spec))
    stop = Stop(tied="--tied" in arguments[1:])
    status: dict[str, Any] = {
        "phase": "running",
        "pid": os.getpid(),
        "exit_code": None,
        "reason": None,
        "started": _now(),
        "stopped": None,
    }
    _write(folder, status)
    code, reason = _attempt(folder, spec, stop, guard)
    phase = "succeeded" if (code, reason) == (0, "exited") else "failed"
    _write(folder, status | {"phase": phase, "exit_code": code, "reason": reason, "stopped": _now()})


def _attempt(folder: Path, spec: dict[str, Any], stop: Stop, guard: int) -> tuple[int | None, str]:
    if stop.asked:
        return None, "terminated"

    def tell_guard() -> None:
        os.write(guard, b"%d" % os.getpid())

    with (folder / "output.log").open("ab", buffering=0) as output:
        try:
            process = subprocess.Popen(
                spec["command"],
                cwd=spec["workdir"],
                env=environment(spec["env"]),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=tell_guard,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            os.write(guard, b".")
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            return (NOT_FOUND if missing else NOT_EXECUTABLE), f"not-started: {error}"
    reason = _wait(process, spec, stop)
    _signal_group(process.pid, signal.SIGKILL)
    if reason != "exited" or process.returncode < 0:
        _removal(spec)()
    os.write(guard, b".")
    code = process.returncode
    return (code if code >= 0 else 128 - code), reason


def _wait(process: subprocess.Popen[bytes], spec: dict[str, Any], stop: Stop) -> str:
    timeout: int | None = spec["timeout_s"]
    alarm = None if timeout is None else time.monotonic() + timeout
    reason = "exited"
    while process.poll() is None:
        late = alarm is not None and time.monotonic() >= alarm
        if reason == "exited" and (stop.asked or late):
            reason = "terminated" if stop.asked else "timeout"
            _signal_group(process.pid, signal.SIGTERM)
            alarm = time.monotonic() + spec["grace_s"]
        elif late:
            _signal_group(process.pid, signal.SIGKILL)
            alarm = None
        stop.sleep(alarm)
    return reason


def environment(wanted: dict[str, str]) -> dict[str, str]:
    beside = str(Path(sys.executable).parent)
    defaults = {
        "PATH": os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]),
        "HOME": os.environ.get("HOME", "/"),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108, what programs take without it
        "PYTHONUNBUFFERED": "1",
    }
    return defaults | wanted


def _removal(spec: dict[str, Any]) -> Callable[[], None]:
    """Return a function that ends what outlives the command's processes: a container continues without its client."""

    def remove() -> None:
        if line := spec.get("removal"):
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(line, env=environment(spec["env"]), capture_output=True, check=False, timeout=REMOVAL_S)

    return remove


def _guard(remove: Callable[[], None]) -> int:
    """Start a process that kills the job's group if this runner is killed; return the pipe that it listens to.

    SIGKILL of a runner reaches neither the job nor what it started. (PR_SET_PDEATHSIG would reach the job's first
    process only: `bash -c "a && b"` would leave `b` running.) The job's process writes its id into the pipe before it
    becomes the job; the runner writes "." once the group is gone; a pipe that ends without it is a death. If the guard
    is killed as well, the job keeps running: nothing short of a container prevents that.
    """
    listening, telling = os.pipe()
    if os.fork():
        os.close(listening)
        return telling
    os.close(telling)
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    heard = _read_all(lambda: os.read(listening, 64))
    if heard and not heard.endswith(b"."):
        _signal_group(int(heard), signal.SIGKILL)
        remove()
    os._exit(0)


def _read_all(read: Callable[[], bytes]) -> bytes:
    heard = b""
    while part := read():
        heard += part
    return heard


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # the group is gone, or (macOS) holds only zombies
        os.killpg(group, number)


def _write(folder: Path, status: dict[str, Any]) -> None:
    draft = folder / f".status.{os.getpid()}"
    draft.write_text(json.dumps(status))
    draft.replace(folder / "status.json")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


if __name__ == "__main__":
    main(sys.argv[1:])

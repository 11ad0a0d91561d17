"""Run of the job's command as a process: on the machine itself, or by docker in a container."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Callable, NamedTuple, Sequence

from .lines import Splitter

NOT_FOUND, NOT_EXECUTABLE = 127, 126
DRAIN_S = 10.0
"""Seconds to wait for the end of the output, which a process that was left running may hold open."""


class Stop:
    """Request for the end of the job, which wakes sleeping threads. Its first reason counts."""

    def __init__(self) -> None:
        self.reason = ""
        self._event = threading.Event()
        self._lock = threading.Lock()

    def ask(self, reason: str) -> None:
        """Request the end of the job for this reason."""
        with self._lock:
            self.reason = self.reason or reason
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def sleep(self, seconds: float | None) -> bool:
        """Sleep for so many seconds, or until the end is requested. Return whether it was requested."""
        return self._event.wait(seconds)


class CommandEnd(NamedTuple):
    """End of a command: `exit_code` as in a shell, and the reason as in a result."""

    exit_code: int | None
    reason: str
    last: str = ""
    """Last line that it printed."""


class Output:
    """Reader of a process's output, to its end, in a thread of its own."""

    def __init__(self, stream: int, put: Callable[[str], None]) -> None:
        self.last = ""
        self._stream = stream
        self._put = put
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _line(self, text: str) -> None:
        self.last = text or self.last
        self._put(text)

    def _read(self) -> None:
        splitter = Splitter(self._line)
        with suppress(OSError):  # the other end is gone
            while True:
                data = os.read(self._stream, 65536)
                if not data:
                    break
                splitter.feed(data)
        splitter.end()

    def join(self) -> None:
        """Wait for the end of the output, at most DRAIN_S seconds."""
        self._thread.join(DRAIN_S)


def environment(wanted: dict[str, str]) -> dict[str, str]:
    """Return the job's own variables over the few that programs need. Of the agent's variables, keep only those that
    say where its metadata is."""
    kept = {name: os.environ[name] for name in ("GCE_METADATA_HOST", "NO_PROXY", "no_proxy") if name in os.environ}
    defaults = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.environ.get("HOME", "/root"),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108, what programs take without it
        "PYTHONUNBUFFERED": "1",
    }
    return {**defaults, **kept, **wanted}


def run(
    command: Sequence[str],
    env: dict[str, str],
    put: Callable[[str], None],
    stop: Stop,
    timeout_s: int | None,
    grace_s: float,
    kill: Callable[[], None] = lambda: None,
) -> CommandEnd:
    """Run the command to its end. When it has to stop, its process group gets SIGTERM, and SIGKILL after `grace_s`
    seconds; `kill` ends a container, which no signal to the group does."""
    try:
        process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        return CommandEnd(NOT_FOUND if missing else NOT_EXECUTABLE, f"not-started: {error}")
    assert process.stdout is not None
    output = Output(process.stdout.fileno(), put)
    late = threading.Timer(timeout_s, stop.ask, ["timeout"]) if timeout_s is not None else None
    if late:
        late.daemon = True
        late.start()
    # Waits for the process and not for its output, which may end before, or after it.
    over = threading.Thread(target=_wait, args=(process, stop), daemon=True)
    over.start()
    stop.sleep(None)
    reason = stop.reason
    if process.poll() is None:
        _signal(process, signal.SIGTERM)
        over.join(grace_s)
    if process.poll() is None:
        kill()
        _signal(process, signal.SIGKILL)
    over.join()
    if late:
        late.cancel()
    # What it left in its group would live on beside the next command.
    _signal(process, signal.SIGKILL)
    output.join()
    code = process.returncode
    return CommandEnd(code if code >= 0 else 128 - code, reason, output.last)


def _wait(process: subprocess.Popen[bytes], stop: Stop) -> None:
    process.wait()
    stop.ask("exited")


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def quietly(command: Sequence[str], env: dict[str, str], stop: Stop, given: str = "", attempts: int = 1) -> str:
    """Run one of the agent's own commands. Return its error in one line, "" for none. End early if a stop is
    requested."""
    said = ""
    for attempt in range(attempts):
        if attempt and stop.sleep(5.0 * attempt):
            return said
        try:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        except OSError as error:
            return str(error)
        text: list[bytes] = []
        talk = threading.Thread(target=_talk, args=(process, given, text), daemon=True)
        talk.start()
        while talk.is_alive():
            talk.join(0.2)
            if stop.requested:
                process.kill()
                talk.join(DRAIN_S)
                return "was stopped"
        if process.returncode == 0:
            return ""
        lines = b"".join(text).decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"]
        said = lines[-1][:400]
    return said


def _talk(process: subprocess.Popen[bytes], given: str, text: list[bytes]) -> None:
    text.append(process.communicate(given.encode())[0])


def now() -> str:
    """Return the current time in the format of results."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "+00:00"

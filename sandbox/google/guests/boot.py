"""A machine that runs: `python -m sandbox.google.guests.boot FOLDER LISTENER`, one process for each.

It starts the startup script, serves SSH on the listening socket whose descriptor it is given, and is the parent of all
that runs on the machine, also of what was left behind by its own parent. Commands on stdin, a line each: `stop SECONDS`
shuts down; the end of stdin, however it came, ends everything at once. SIGUSR1 is the machine switching itself off.

FOLDER/machine.json  {"environment": {...}, "metadata": host and port, "grace_s": s, "token": for docker's login}
FOLDER/startup-script, FOLDER/shutdown-script; FOLDER/serial.log: what they print; FOLDER/home: where they run
"""

import contextlib
import ctypes
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from .sshd import Sessions

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, of Linux
_TICK_S = 0.05
_KILL_S = 10


class Running:
    """A machine from boot to end."""

    def __init__(self, folder: Path, listener: socket.socket) -> None:
        self.folder, self._listener = folder, listener
        self._about = json.loads((folder / "machine.json").read_text())
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        # Containers end when its last writer, this process, has gone. Opened for both, it waits for no other end.
        self._life = os.open(folder / "life", os.O_RDWR)
        (folder / "pid").write_text(str(os.getpid()))
        for number, word in ((signal.SIGTERM, "end"), (signal.SIGINT, "end"), (signal.SIGHUP, "end")):
            signal.signal(number, lambda *_, word=word: self._said.put(word))
        signal.signal(signal.SIGUSR1, lambda *_: self._said.put(f"stop {self._about['grace_s']}"))
        self._scripts: list[subprocess.Popen[bytes]] = []
        self._groups = [self._script("startup-script")]
        self._sessions = Sessions(listener, folder, self._about["environment"], self._about["metadata"])
        threading.Thread(target=self._listen, daemon=True).start()

    def _script(self, name: str) -> int:
        """Start a script, if there is one, as a group of its own; by bash, as the guest agent is remembered to do."""
        script = self.folder / name
        if not script.exists():
            return 0
        with (self.folder / "serial.log").open("ab") as serial:
            process = subprocess.Popen(
                ["bash", "-c", str(script)],
                cwd=self.folder / "home", env=self._about["environment"], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=serial, stderr=serial,
            )  # fmt: skip
        self._scripts.append(process)  # never waited for: its number stays its group's
        return process.pid

    def _listen(self) -> None:
        for line in sys.stdin:
            self._said.put(line.strip())
        self._said.put("end")

    def run(self) -> None:
        """Until it is told to end."""
        word = self._said.get()
        if word.startswith("stop"):
            self._shut_down(float(word.split()[1]))
        self._listener.close()
        self._sessions.closed = True
        until = time.monotonic() + _KILL_S
        while (left := self._alive()) and time.monotonic() < until:
            for process in left:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(_TICK_S / 5)

    def _shut_down(self, grace_s: float) -> None:
        """The shutdown script and SIGTERM, until nothing runs any more or the time is over."""
        self._groups += [*self._sessions.groups(), *self._containers()]
        for group in filter(None, self._groups):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGTERM)
        self._script("shutdown-script")
        until = time.monotonic() + grace_s
        while self._alive() and time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                word = self._said.get(timeout=_TICK_S)
                until = min(until, time.monotonic() + float(word.partition(" ")[2] or 0))

    def _containers(self) -> list[int]:
        """The runners of containers, which docker's daemon would stop; each leads a group."""
        ours = {process.pid for process in self._alive()}
        noted = [int(path.read_text() or 0) for path in self.folder.glob("docker/*/pid")]
        return [pid for pid in noted if pid in ours]

    def _alive(self) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found


def main() -> None:
    folder, listener = Path(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
    Running(folder, listener).run()
    os._exit(0)  # threads of SSH connections wait for clients


if __name__ == "__main__":
    main()

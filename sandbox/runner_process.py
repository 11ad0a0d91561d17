"""A command that really runs here: the product's local runner as a process, its new lines, and its report."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .trees import kill_tree

PROJECT = Path(__file__).resolve().parents[1]
RUNNER = PROJECT / "jobs" / "backends" / "local_programs" / "runner.py"
# So that a command that prints without end does not hold up the others.
_READ_BYTES = 1 << 20


class RunnerProcess:
    """Process of jobs/backends/local_programs/runner.py, which writes its files into a folder. `spec` has what the
    runner reads: command, env, workdir, timeout_s, grace_s. Its environment may hold secrets."""

    def __init__(self, folder: Path, spec: Mapping[str, Any]) -> None:
        self.folder = folder
        self._offset, self._rest = 0, b""
        (folder / "spec.json").touch(mode=0o600)
        (folder / "spec.json").write_text(json.dumps(spec))
        with (folder / "runner.log").open("wb") as log:
            # --tied and the pipe: the runner stops the command when this process ends, in whatever way. A session of
            # its own: Ctrl-C in the server's terminal is for the server only.
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(folder), "--tied"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=PROJECT, start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """Return the runner's own exit code, None while it runs."""
        status = self._process.poll()
        if status is not None and self._process.stdin:
            self._process.stdin.close()
        return status

    def report(self) -> dict[str, Any]:
        """Return what the runner tells of the command so far; empty before it has started."""
        try:
            return json.loads((self.folder / "status.json").read_text())
        except FileNotFoundError:
            return {}

    def lines(self, last: bool) -> list[bytes]:
        """Return what the command printed since the last call: whole lines, or with `last` all of it."""
        try:
            with (self.folder / "output.log").open("rb") as file:
                file.seek(self._offset)
                read = file.read(_READ_BYTES)
                while last and (more := file.read(_READ_BYTES)):
                    read += more
        except FileNotFoundError:
            return []
        self._offset += len(read)
        *whole, self._rest = (self._rest + read).split(b"\n")
        if last and self._rest:
            whole.append(self._rest)
            self._rest = b""
        return whole

    def terminate(self) -> None:
        """Send SIGTERM, which the runner hands on."""
        self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the runner and all that it started, at once."""
        if self._process.poll() is None:
            kill_tree(self._process.pid)
            self._process.wait()

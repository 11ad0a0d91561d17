"""One run of a container: the local runner as a process, its lines with their times, and how it ended."""

import time
from datetime import UTC, datetime
from pathlib import Path

from ..runner_process import RunnerProcess
from ..trees import kill_below

_TERMINATION_BYTES = 2048  # of a log that stands for the message: https://pkg.go.dev/k8s.io/api/core/v1
_KILL_S = 10
_START_ERROR = 128  # containerd's exit code for a command that cannot be started


class Container:
    """Command that runs in a folder of the project until it ends or is stopped. `folder/log` has its lines, each after
    the time at which it was read, which differs from line to line."""

    def __init__(self, folder: Path, command: list[str], variables: dict[str, str], workdir: Path) -> None:
        folder.mkdir(parents=True)
        self.folder, self.log = folder, folder / "log"
        self.log.touch()
        self.started_at, self.ended_at = _now(), ""
        self.over_since = 0.0
        self.exit_code: int | None = None
        self.reason, self.message = "", ""
        self._last_ns = 0
        self._kill_at: float | None = None
        self._spec = {"command": command, "env": variables, "workdir": str(workdir), "timeout_s": None}
        self._process: RunnerProcess | None = None
        if not command:
            self._end(_START_ERROR, "StartError", "no command specified: the sandbox does not know an image's own")

    @property
    def over(self) -> bool:
        return self.exit_code is not None

    def start(self, grace_s: float) -> None:
        """Start the command. `grace_s`: its time between SIGTERM and SIGKILL."""
        if self.over:
            return
        self._process = RunnerProcess(self.folder, self._spec | {"grace_s": grace_s})

    def stop(self, grace_s: float) -> None:
        """Send SIGTERM, and SIGKILL after `grace_s`. In a repeated call, the shorter time counts."""
        if self._process is None or self.over:
            return
        if self._kill_at is None:
            self._process.terminate()
        self._kill_at = min(self._kill_at or float("inf"), time.monotonic() + grace_s)

    def kill(self) -> None:
        if self._process and not self.over:
            self._process.kill()

    def poll(self) -> None:
        if self.over or self._process is None:
            return
        status = self._process.poll()
        self._keep_lines(last=status is not None)
        if status is None:
            if self._kill_at and time.monotonic() > self._kill_at:
                # The runner's guard goes too; without it the runner goes on as well, and reports the end.
                kill_below(self._process.pid)
            if self._kill_at and time.monotonic() > self._kill_at + _KILL_S:
                self._process.kill()
            return
        report = self._process.report()
        self.started_at = report.get("started") or self.started_at
        code, why = report.get("exit_code"), report.get("reason") or ""
        if why.startswith("not-started"):
            self._end(_START_ERROR, "StartError", f"failed to create containerd task: {why[12:].strip()}")
        elif code is None:
            self._end(137, "Error", f"the local runner ended with {status}: see {self.folder}/runner.log")
        else:
            self._end(code, "Completed" if code == 0 else "Error", "", report.get("stopped") or "")

    def tail(self) -> str:
        """Return the end of the log, for a terminationMessagePolicy of FallbackToLogsOnError."""
        lines = self.log.read_text(errors="replace").splitlines()[-80:]
        return "".join(f"{line.partition(' ')[2]}\n" for line in lines)[-_TERMINATION_BYTES:]

    def _end(self, code: int, reason: str, message: str, at: str = "") -> None:
        self.reason, self.message, self.ended_at = reason, message, at or _now()
        self.over_since, self.exit_code = time.monotonic(), code

    def _keep_lines(self, last: bool) -> None:
        assert self._process
        if lines := self._process.lines(last):
            with self.log.open("ab") as log:
                log.writelines(f"{self._moment()} ".encode() + line + b"\n" for line in lines)

    def _moment(self) -> str:
        """Return the current time, later than at any call before, so that a reader can continue after a line."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1000)
        whole, rest = divmod(self._last_ns, 1_000_000_000)
        return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def seconds(moment: str) -> str:
    """Return a time as Kubernetes writes it in a status: whole seconds."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _now() -> str:
    return datetime.now(UTC).isoformat()

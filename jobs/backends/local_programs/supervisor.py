"""Program that runs a local job from its folder until it has ended: `python -m <package>.supervisor FOLDER`.

request.json      what to run, written by the client that claimed the folder
supervisor.json   the supervisor that runs it, or ran it: written once, before anything is run
status.json       the job as a whole
cancel.json       put there by a client that wants the job to stop
tasks/I/A/        attempt A of task I, in the format of runner.py

Any number of supervisors may be started for one folder, by clients at once or after a crash. A lock lets one of them
write supervisor.json; from then on no other ever runs the job. The command returns when that file exists.
"""

import fcntl
import json
import os
import signal
import sys
import time
from collections import Counter, deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from accel.folders import write_json
from accel.rules.jobs.exit_codes import CANNOT_RUN

from . import docker
from .process import identity

RUNNER = Path(__file__).with_name("runner.py")
PATIENCE_S = 10.0
DEVICES = "CUDA_VISIBLE_DEVICES"


def main(folder: Path) -> int:
    """Return 0 once the job has a supervisor, 1 if it gets none."""
    lock = os.open(folder / "supervisor.lock", os.O_CREAT | os.O_RDWR, 0o600)
    give_up = time.monotonic() + PATIENCE_S
    while not (folder / "supervisor.json").exists():
        if _locked(lock):
            # Checked again under the lock: its last holder may have written the file and ended.
            return 0 if (folder / "supervisor.json").exists() else _start(folder)
        if time.monotonic() > give_up:
            return 1
        time.sleep(0.02)
    return 0


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start(folder: Path) -> int:
    """Continue in a child that no terminal and no caller waits for. It holds the lock while it lives."""
    ready, telling = os.pipe()
    if os.fork():
        os.close(telling)
        return 0 if os.read(ready, 1) else 1
    _detach(folder)
    write_json(folder / "supervisor.json", identity(os.getpid()))
    os.write(telling, b".")
    os.close(telling)
    Supervisor(folder).run()
    sys.exit(0)


def _detach(folder: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    log = os.open(folder / "supervisor.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for source, standard in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, standard)


class Supervisor:
    """Runner of every task's attempts, in order, some at once, which also writes the job's status."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        request: dict[str, Any] = json.loads((folder / "request.json").read_text())
        self.body: dict[str, Any] = request["body"]
        self.tasks: int = self.body["tasks"]
        self.waiting = deque((task, 1) for task in range(self.tasks))
        self.running: dict[int, tuple[int, int]] = {}
        self.last: dict[int, dict[str, Any]] = {}
        self.attempts = 0
        self.stopping = False
        self.started: str | None = None
        self.shares = _shares(self.body, request["devices"])
        self.used: dict[int, list[str]] = {}
        # The runners' stdin: it ends with this process, however that ends, and so ends them.
        self.tie, self._held = os.pipe()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._stop)
        if (self.folder / "cancel.json").exists():
            self.stopping = True
        while True:
            while self.waiting and self.shares and not self.stopping:
                self._begin(*self.waiting.popleft())
            self._tell("running")
            if not self.running:
                break
            pid, _ = os.waitpid(-1, 0)
            self._ended(pid)
        done = not self.stopping and all(status["phase"] == "succeeded" for status in self.last.values())
        self._tell("succeeded" if done and len(self.last) == self.tasks else "failed")

    def _stop(self, *_: object) -> None:
        self.stopping = True
        for pid in self.running:
            os.kill(pid, signal.SIGTERM)

    def _begin(self, task: int, attempt: int) -> None:
        share = self.shares.pop()
        folder = self.folder / "tasks" / str(task) / str(attempt)
        folder.mkdir(parents=True)
        write_json(folder / "spec.json", self._spec(task, attempt, share))
        python = sys.executable
        pid = os.posix_spawn(
            python,
            [python, "-I", "-S", str(RUNNER), str(folder), "--tied"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, self.tie, 0)],
        )
        self.running[pid] = (task, attempt)
        self.used[pid] = share
        self.attempts += 1
        self.started = self.started or datetime.now(UTC).isoformat()
        if self.stopping:  # requested between the start and the record above: the handler did not see this runner
            os.kill(pid, signal.SIGTERM)

    def _spec(self, task: int, attempt: int, share: list[str]) -> dict[str, Any]:
        env = self.body["env"] | docker.task_variables(self.body, task, attempt)
        spec = {name: self.body[name] for name in ("command", "timeout_s", "grace_s")}
        spec["workdir"] = self.body["folder"]
        if "image" in self.body:
            name = f"accel-{self.folder.name}-{task}-{attempt}"
            line = docker.command(self.body, name, env, share)
            return spec | {"command": line, "env": docker.client(), "removal": docker.removal(name)}
        return spec | {"env": ({DEVICES: ",".join(share)} if share else {}) | env}

    def _ended(self, pid: int) -> None:
        task, attempt = self.running.pop(pid)
        self.shares.append(self.used.pop(pid))
        status = _attempt_status(self.folder / "tasks" / str(task) / str(attempt))
        self.last[task] = status
        if is_retried(status, attempt, self.body["retries"]) and not self.stopping:
            self.waiting.appendleft((task, attempt + 1))

    def _tell(self, phase: str) -> None:
        counts = Counter(status["phase"].upper() for status in self.last.values())
        for task in {task for task, _ in self.running.values()} | {task for task, _ in self.waiting}:
            if task in self.last:
                counts[self.last[task]["phase"].upper()] -= 1
        counts["RUNNING"] = len(self.running)
        counts["QUEUED"] = self.tasks - sum(counts.values())
        ended = phase != "running"
        write_json(
            self.folder / "status.json",
            {
                "phase": phase,
                "tasks": {word: count for word, count in counts.items() if count},
                "attempts": self.attempts,
                "started": self.started,
                "stopped": datetime.now(UTC).isoformat() if ended else None,
                **(self._outcome() if ended else {"exit_code": None, "reason": None}),
            },
        )

    def _outcome(self) -> dict[str, Any]:
        failed = [(task, status) for task, status in sorted(self.last.items()) if status["phase"] == "failed"]
        if self.stopping:
            code = failed[0][1]["exit_code"] if failed else None
            return {"exit_code": code, "reason": _stop_reason(self.folder)}
        if not failed:
            return {"exit_code": 0, "reason": None}
        task, status = failed[0]
        words = {
            "exited": f"exit code {status['exit_code']}",
            "timeout": f"ran longer than {self.body['timeout_s']} s",
        }
        reason = words.get(status["reason"], status["reason"])
        if self.tasks > 1:
            reason = f"{len(failed)} of {self.tasks} tasks failed; task {task}: {reason}"
        return {"exit_code": status["exit_code"], "reason": reason}


def is_retried(status: dict[str, Any], attempt: int, retries: int) -> bool:
    """Return False, as AWS Batch does, for an attempt that ran out of time or whose command cannot be run."""
    if status["phase"] != "failed" or status["reason"] == "timeout" or status["exit_code"] in CANNOT_RUN:
        return False
    return attempt <= retries


def _shares(body: dict[str, Any], devices: list[str]) -> list[list[str]]:
    """Return the devices of each task that may run at once."""
    each: int = body["accelerator"]["count"] if body["accelerator"] else 0
    cores = os.cpu_count() or 1
    fitting = len(devices) // each if each else max(1, cores // (body["cpus"] or 1))
    slots = min(body["tasks"], body["parallelism"] or fitting, fitting if each else body["tasks"])
    return [devices[slot * each : (slot + 1) * each] for slot in range(slots)][::-1]


def _attempt_status(folder: Path) -> dict[str, Any]:
    gone = {"phase": "failed", "exit_code": None, "reason": "its runner was killed"}
    try:
        status: Any = json.loads((folder / "status.json").read_bytes())
        known = {name: status[name] for name in gone}
    except (OSError, ValueError, LookupError, TypeError):
        return gone  # missing or unreadable
    return gone if known["phase"] not in ("succeeded", "failed") else known


def _stop_reason(folder: Path) -> str:
    try:
        return f"cancelled: {json.loads((folder / 'cancel.json').read_bytes())['reason']}"
    except (OSError, ValueError, LookupError, TypeError):
        return "terminated: the supervisor of the job was asked to stop"


def _run() -> NoReturn:
    sys.exit(main(Path(sys.argv[1])))


if __name__ == "__main__":
    _run()

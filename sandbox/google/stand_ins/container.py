"""A container of the docker stand-in: a folder of files, and the runner's process."""

import contextlib
import json
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

TICK_S = 0.02


@dataclass(frozen=True)
class Container:
    """What is known of a container, in its folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / name).read_text()
        return ""

    def status(self) -> Any:
        return json.loads(self.read("status.json") or "{}")

    def runner(self) -> psutil.Process | None:
        """The process that runs it; None: it is over."""
        with contextlib.suppress(psutil.Error, ValueError):
            process = psutil.Process(int(self.read("pid")))
            ours = str(self.folder) in process.cmdline()
            return process if ours and process.status() != psutil.STATUS_ZOMBIE else None
        return None

    def signal(self, number: signal.Signals) -> None:
        if runner := self.runner():
            with contextlib.suppress(psutil.Error):
                runner.send_signal(number)

    def kill(self) -> None:
        if runner := self.runner():
            for process in [*runner.children(recursive=True), runner]:
                with contextlib.suppress(psutil.Error):
                    process.kill()

    def over(self, within_s: float) -> bool:
        """Whether it is over within this time."""
        until = time.monotonic() + within_s
        while self.runner() is not None:
            if time.monotonic() > until:
                return False
            time.sleep(TICK_S)
        return True

    def exit_code(self) -> int:
        """As docker tells it; what was killed with its runner has 137."""
        code, why = self.status().get("exit_code"), self.status().get("reason") or ""
        if why.startswith("not-started"):
            said = f"failed to create task for container: {why[12:].strip()}"
            sys.stderr.write(f"docker: Error response from daemon: {said}\n")
        return 137 if code is None else code

"""Diagnosis of failed jobs on this machine: what ended them, or what they printed last."""

from pathlib import Path
from typing import Any

from ..base import Explanation, Phase, Status
from ..local.files import numbers, read_if_there
from ..local.logs import lines
from ..local.records import StatusRecord
from ..local_programs.docker import DAEMON_ERROR
from . import outcome
from .cause import RETRY
from .engine import Facts, diagnose, row

_PULL_WORDS = ("pull access denied", "not found", "manifest unknown", "unauthorized", "no such host")
_DOCKER = "check the image's name, and `docker login`; `docker run` tells more"

ENDINGS = (
    row("stopped", "cancelled", kind="reason"),
    row("stopped", "terminated", "the job was asked to stop", kind="reason"),
    row("timeout", "ran longer than", kind="reason"),
    row("command-not-found", "No such file or directory", "its command was not found", kind="reason"),
    row("command-not-executable", "not-started", "its command cannot be run", kind="reason"),
    row("host-lost", "runner", "its runner was killed, or the machine restarted", RETRY, "reason"),
)
"""Words of the reason that the job's runner leaves."""


class LocalFacts(Facts):
    """Facts about one job, from its folder. If several tasks failed, the first one is explained."""

    PLATFORM = "local"

    def __init__(self, folder: Path, status: Status, body: dict[str, Any]) -> None:
        self.status, self.body = status, body
        self._folder = folder

    def texts(self, kind: str) -> list[str]:
        return [self.status.reason or ""]

    def output(self) -> tuple[str, ...]:
        task = _failed(self._folder, self.body["tasks"])
        return tuple(line.text for line in lines(self._folder, self.body["tasks"], task, lambda: True))[-outcome.TAIL :]

    def unknown(self) -> Explanation:
        evidence = (self.status.reason or "", *outcome.last(self.output()))
        return self.explanation("unknown", "unknown: nothing that it left says why", evidence)


def explain(folder: Path, status: Status, body: dict[str, Any]) -> Explanation:
    """Take `body` from the job's request."""
    facts = LocalFacts(folder, status, body)
    if status.phase is Phase.QUEUED:
        return facts.explanation("not-started", status.reason or "", (), "submit the same file with the same --key")
    if status.phase is not Phase.FAILED:
        return facts.explanation("succeeded" if status.phase is Phase.SUCCEEDED else "running")
    return diagnose(facts, (*ENDINGS, _docker, _program))


def _docker(facts: LocalFacts) -> Explanation | None:
    if "image" not in facts.body or facts.status.exit_code != DAEMON_ERROR:
        return None
    last = next((line for line in reversed(facts.output()) if line.startswith("docker: ")), facts.status.reason or "")
    if any(word in last for word in _PULL_WORDS):
        return facts.explanation("image-pull", "docker could not pull the image", (last,), _DOCKER)
    return facts.explanation("unknown", "docker failed", (last,), _DOCKER)


def _program(facts: LocalFacts) -> Explanation | None:
    body = facts.body
    gpus = int(body["accelerator"]["count"]) if body["accelerator"] else 0
    ended = outcome.FailedAttempt(facts.status.exit_code, facts.output(), gpus, body["memory_mib"], body["shm_mib"])
    return outcome.program_failure(facts, ended)


def _failed(folder: Path, tasks: int) -> int:
    for task in range(tasks):
        attempts = folder / "tasks" / str(task)
        records = [read_if_there(attempts / str(number) / "status.json", StatusRecord) for number in numbers(attempts)]
        if (ended := [each for each in records if each]) and ended[-1]["phase"] == "failed":
            return task
    return 0

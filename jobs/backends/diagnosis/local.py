"""Diagnosis of failed jobs on this machine: what ended them, or what they printed last."""

from pathlib import Path
from typing import Any, ClassVar

from ..base import Explanation, Phase, Status
from ..local.files import numbers, read_if_there
from ..local.logs import lines
from ..local.records import StatusRecord
from ..local_programs.docker import DAEMON_ERROR
from . import outcome, words
from .cause import RETRY
from .engine import Facts, diagnose, match, row, within

_LOGIN = "check the image's name, and `docker login`; `docker run` tells more"

ENDINGS = (
    row("stopped", "cancelled", kind="reason"),
    row("stopped", "terminated", "the job was asked to stop", kind="reason"),
    row("timeout", "ran longer than", kind="reason"),
    row("command-not-found", "No such file or directory", "its command was not found", kind="reason"),
    row("command-not-executable", "not-started", "its command cannot be run", kind="reason"),
    row("host-lost", "runner", "its runner was killed, or the machine restarted", RETRY, "reason"),
)
"""Words of the reason that the job's runner leaves."""

DOCKER = (
    words.CONTAINER_GPU,
    words.IMAGE_PLATFORM,
    words.EXEC_FORMAT,
    words.PULL_DENIED,
    *within(r"manifest|pull|registry|https?://|image|repository|access|no space", words.PULL),
    row("image-pull", r"\bpull|manifest|registry"),
    row("not-started", r"", "docker did not start the container", "`docker run` with the same options tells more"),
)
"""Words of docker about a container that it did not start."""


class LocalFacts(Facts):
    """Facts about one job, from its folder. If several tasks failed, the first one is explained."""

    PLATFORM = "local"
    NEXT_STEPS: ClassVar = {
        "container-gpu": "install the NVIDIA driver and the NVIDIA Container Toolkit, and configure docker for them",
        "disk-full": "`docker system df` shows what images take, and `docker system prune` removes what is not used",
        "image-forbidden": _LOGIN,
        "image-missing": _LOGIN,
        "image-pull": _LOGIN,
        "image-unreachable": "is this machine online? a proxy is docker's own setting",
    }

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
    return match(facts, DOCKER, [last])


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

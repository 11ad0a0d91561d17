"""Why a job of this machine failed: what ended it, or what it printed last."""

from pathlib import Path
from typing import Any

from .. import outcome
from ..base import Explanation, Phase, Status
from .docker import DAEMON_ERROR
from .files import numbers, read_if_there
from .logs import lines
from .records import StatusRecord

PULL_WORDS = ("pull access denied", "not found", "manifest unknown", "unauthorized", "no such host")
WORDS = (
    ("stopped", "cancelled", "the job was cancelled", "`accel-jobs retry REF` runs it again"),
    ("stopped", "terminated", "the job was asked to stop", "`accel-jobs retry REF` runs it again"),
    ("timeout", "ran longer than", "it ran longer than its timeout", "raise timeout_s, or make checkpoints"),
    ("command-not-found", "No such file or directory", "its command was not found", "check its name and PATH"),
    ("command-not-executable", "not-started", "its command cannot be run", "give it execute permission"),
    ("host-lost", "runner", "its runner was killed, or the machine restarted",
     "`accel-jobs retry REF` runs it again"),
)  # fmt: skip
"""Cause, a word of the reason that local jobs leave, what it means, what to do."""


def explain(folder: Path, status: Status, body: dict[str, Any]) -> Explanation:
    """`body`: of its request. One task is explained where several failed: the first."""
    reason = status.reason or ""
    if status.phase is Phase.QUEUED:
        return Explanation("not-started", reason, (), "submit the same file with the same --key")
    if status.phase is not Phase.FAILED:
        cause = "succeeded" if status.phase is Phase.SUCCEEDED else "running"
        return Explanation(cause, f"the job is {status.phase}")
    for cause, word, told, next_step in WORDS:
        if word in reason:
            return Explanation(cause, told, (reason,), next_step)
    task = _failed(folder, body["tasks"])
    printed = tuple(line.text for line in lines(folder, body["tasks"], task, lambda: True))[-outcome.TAIL :]
    if "image" in body and status.exit_code == DAEMON_ERROR:
        last = next((line for line in reversed(printed) if line.startswith("docker: ")), reason)
        pulled = any(word in last for word in PULL_WORDS)
        cause, told = ("image-pull", "docker could not pull the image") if pulled else ("unknown", "docker failed")
        return Explanation(cause, told, (last,), "check the image's name, and `docker login`; `docker run` tells more")
    gpus = int(body["accelerator"]["count"]) if body["accelerator"] else 0
    found = outcome.explain(outcome.Ended(status.exit_code, printed, gpus, body["memory_mib"], body["shm_mib"]))
    if found is None:
        return Explanation("unknown", "unknown: nothing that it left says why", (reason, *outcome.last(printed)))
    return found


def _failed(folder: Path, tasks: int) -> int:
    """The first task whose last attempt failed."""
    for task in range(tasks):
        tries = folder / "tasks" / str(task)
        told = [read_if_there(tries / str(number) / "status.json", StatusRecord) for number in numbers(tries)]
        if (last := [each for each in told if each]) and last[-1]["phase"] == "failed":
            return task
    return 0

"""Tasks of a local job, from their runners' folders: states, attempts, retries, and reruns of some tasks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from accel.rules.jobs.exit_codes import CANNOT_RUN

from ...model import sweep_tasks
from ..base import Attempt, JobRef, Phase, Request, Status
from ..tasks import TaskStatus
from .files import numbers, read_if_there
from .records import StatusRecord

ATTEMPTED_MAX = 100
_WORDS = {"exited": None, "terminated": "it was asked to stop", "timeout": "ran longer than its timeout_s"}


def in_part(request: Request, tasks: Sequence[int], ref: JobRef) -> Request:
    """Turn a request that repeats the whole job of `ref` into one for these tasks alone."""
    env = sweep_tasks.narrow_environment(request.body["env"], tasks, ref)
    most = request.body["parallelism"]
    parallelism = None if most is None else min(most, len(tasks))
    return replace(request, body=request.body | {"env": env, "tasks": len(tasks), "parallelism": parallelism})


def states(folder: Path, job: Status, body: dict[str, Any]) -> list[TaskStatus]:
    """Return the state of each task; one without attempts waits, unless the job has ended."""
    return [_state(folder / "tasks" / str(index), index, job, body["retries"]) for index in range(body["tasks"])]


def attempts(folder: Path, request: dict[str, Any], time: Callable[[str | None], datetime | None]) -> list[Attempt]:
    """Return the attempts of the first ATTEMPTED_MAX tasks. What a killed runner did not write is unknown."""
    several: bool = request["body"]["tasks"] > 1
    found: list[Attempt] = []
    for task in range(min(request["body"]["tasks"], ATTEMPTED_MAX)):
        tries = folder / "tasks" / str(task)
        made = numbers(tries)
        for number in made:
            # None between the start of an attempt and its runner's first status.
            told = read_if_there(tries / str(number) / "status.json", StatusRecord) or {}
            gone = told.get("phase") == "running" and number != made[-1]
            reason: str | None = told.get("reason")
            found.append(
                Attempt(
                    number,
                    task if several else None,
                    created=time(request["created"]) if number == 1 else None,
                    started=time(told.get("started")),
                    stopped=time(told.get("stopped")),
                    exit_code=told.get("exit_code"),
                    reason="its runner was killed" if gone else _WORDS.get(reason or "", reason),
                    lost=gone,
                )
            )
    return found


def is_retried(status: dict[str, Any], attempt: int, retries: int) -> bool:
    """Return False, as AWS Batch does, for an attempt that ran out of time or whose command cannot be run."""
    if status["phase"] != "failed" or status["reason"] == "timeout" or status["exit_code"] in CANNOT_RUN:
        return False
    return attempt <= retries


def _state(folder: Path, index: int, job: Status, retries: int) -> TaskStatus:
    attempts = max(numbers(folder), default=0)
    if not attempts:
        if job.phase.ended:
            return TaskStatus(index, Phase.FAILED, "never started", reason=job.reason)
        return TaskStatus(index, Phase.QUEUED, "queued")
    told = read_if_there(folder / str(attempts) / "status.json", StatusRecord) or {"phase": "starting"}
    phase, reason, code = Phase[told["phase"].upper()], told.get("reason"), told.get("exit_code")
    if phase is Phase.FAILED and not job.phase.ended and is_retried(told, attempts, retries):
        phase = Phase.QUEUED  # the supervisor begins the next attempt
    elif job.phase.ended and not phase.ended:
        phase, reason = Phase.FAILED, job.reason  # its runner was killed
    if reason == "exited":
        reason = f"exit code {code}" if code else None
    return TaskStatus(index, phase, told["phase"], attempts, code, reason)

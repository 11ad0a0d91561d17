"""The tasks of a local job: the state of each, and some of a sweep's run again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...model import sweep_tasks
from ..base import JobRef, Phase, Request, Status
from ..tasks import TaskStatus
from .files import numbers, read_if_there
from .records import StatusRecord
from .supervisor import tried_again


def in_part(request: Request, tasks: Sequence[int], ref: JobRef) -> Request:
    """A request that runs the whole job of `ref` again, for these tasks alone."""
    env = sweep_tasks.narrowed(request.body["env"], tasks, ref)
    most = request.body["parallelism"]
    parallelism = None if most is None else min(most, len(tasks))
    return replace(request, body=request.body | {"env": env, "tasks": len(tasks), "parallelism": parallelism})


def states(folder: Path, job: Status, body: dict[str, Any]) -> list[TaskStatus]:
    """From the folders of their attempts. A task that has none yet waits, unless the job has ended."""
    return [_state(folder / "tasks" / str(index), index, job, body["retries"]) for index in range(body["tasks"])]


def _state(folder: Path, index: int, job: Status, retries: int) -> TaskStatus:
    attempts = max(numbers(folder), default=0)
    if not attempts:
        if job.phase.ended:
            return TaskStatus(index, Phase.FAILED, "never started", reason=job.reason)
        return TaskStatus(index, Phase.QUEUED, "queued")
    told = read_if_there(folder / str(attempts) / "status.json", StatusRecord) or {"phase": "starting"}
    phase, reason, code = Phase[told["phase"].upper()], told.get("reason"), told.get("exit_code")
    if phase is Phase.FAILED and not job.phase.ended and tried_again(told, attempts, retries):
        phase = Phase.QUEUED  # the supervisor begins the next attempt
    elif job.phase.ended and not phase.ended:
        phase, reason = Phase.FAILED, job.reason  # its runner was killed
    if reason == "exited":
        reason = f"exit code {code}" if code else None
    return TaskStatus(index, phase, told["phase"], attempts, code, reason)

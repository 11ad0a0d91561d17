"""Output of tasks, from Cloud Logging: the lines of all tasks by one query, each once. Batch's agent writes a task's
output to the log batch_task_logs, with the job's uid and the task among its labels, and its own actions to
batch_agent_logs. Source: https://docs.cloud.google.com/batch/docs/analyze-job-using-logs"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from accel.clouds.google.api import Google
from accel.diagnostics.errors import BadInput
from accel.json_values import object_at

from ..base import JobRef, LogLine
from ..google_logging import Entry, Tail, log_lines, newest, parse_time
from ..tasks import check_task
from . import labels
from .labels import Scope
from .lookup import BatchJob, look
from .status import job_time, phase, state_time

TASKS, AGENT = "batch_task_logs", "batch_agent_logs"
SKEW = timedelta(days=1)
"""Largest delay of a VM's clock."""

_TASK = re.compile(rf"-{labels.GROUP}-(\d+)(?:/(\d+))?")
"""Pattern for the label task_id: the task's index, and the number of earlier starts if the agent gives it. Sources:
https://docs.cloud.google.com/batch/docs/troubleshooting#vm_reporting_timeout_50002,
https://github.com/opentargets/gentropy"""


def logs(
    google: Google, scope: Scope, ref: JobRef, *, task: int | None, follow: bool, tail: int | None = None
) -> Iterator[LogLine]:
    """Yield the lines of every attempt, all tasks or nodes side by side, or of one. Raise NotFound, and BadInput for a
    task that does not exist, and for a job whose logs go elsewhere."""
    job = look(google, scope, ref.id)
    check_task(ref, task, job.several, job.count)
    if job.logs_path:
        raise BadInput(f"{ref}: its logs are not in Cloud Logging, they are in {job.logs_path} of a mount")
    entries = Tail(google, scope.project, query(scope, job.uid, TASKS, task), created_at(job) - SKEW)
    return log_lines(entries, _shown(job, task), _stopped(google, scope, job) if follow else None, tail)


def agent(google: Google, scope: Scope, job: BatchJob, count: int) -> list[str]:
    """Return the newest lines of Batch's agent on the job's VMs, oldest first."""
    return _newest(google, scope, job, query(scope, job.uid, AGENT), count)


def newest_lines(google: Google, scope: Scope, job: BatchJob, task: int | None, count: int) -> list[str]:
    """Return a task's newest lines, or those of all tasks, oldest first."""
    return _newest(google, scope, job, query(scope, job.uid, TASKS, task), count)


def _newest(google: Google, scope: Scope, job: BatchJob, asked: str, count: int) -> list[str]:
    since = f'timestamp>="{(created_at(job) - SKEW).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"'
    return [text(entry) for entry in newest(google, scope.project, f"{asked} AND {since}", count)]


def query(scope: Scope, uid: str, log: str, task: int | None = None) -> str:
    found = f'logName="projects/{scope.project}/logs/{log}" AND labels.job_uid="{uid}"'
    if task is None:
        return found
    name = f"{uid}-{labels.GROUP}-{task}"
    return f'{found} AND (labels.task_id="{name}" OR labels.task_id:"{name}/")'


def text(entry: Entry) -> str:
    """Return output that was JSON as JSON."""
    if "textPayload" in entry:
        return str(entry["textPayload"]).rstrip("\n")
    payload: dict[str, Any] = object_at(entry, "jsonPayload")
    return str(payload["message"]) if set(payload) == {"message"} else json.dumps(payload, sort_keys=True)


def created_at(job: BatchJob) -> datetime:
    return job_time(job, "createTime") or datetime(2022, 1, 1, tzinfo=UTC)


def _stopped(google: Google, scope: Scope, job: BatchJob) -> Callable[[], datetime | None]:
    def stopped() -> datetime | None:
        now = look(google, scope, job.name)
        if not phase(now).ended:
            return None
        return state_time(now, now.state) or job_time(now, "updateTime") or datetime.now(UTC)

    return stopped


def _shown(job: BatchJob, task: int | None) -> Callable[[Entry], LogLine | None]:
    def line(entry: Entry) -> LogLine | None:
        at = parse_time(entry.get("timestamp"))
        whose = _TASK.search(str(object_at(entry, "labels").get("task_id", "")))
        if at is None:
            return None
        place = f"{job.several} {whose[1]}" if whose and job.several and task is None else ""
        again = f"attempt {int(whose[2]) + 1}" if whose and int(whose[2] or 0) else ""
        return LogLine(at, text(entry), f"{place} {again}".strip())

    return line

"""The attempts of a job's tasks, from the events that Batch keeps of each.

Source of the events: https://docs.cloud.google.com/batch/docs/view-jobs-tasks
"""

import re
from datetime import datetime

from accel.clouds.google.api import Google
from accel.rules.batch.jobs import LOST

from ..base import Attempt, JobRef
from .labels import Scope
from .lookup import Event, Task, look, task, tasks
from .status import found_at, moved

TASKS_MAX = 100
_MOVED = re.compile(r"Task state is updated from \w+ to (\w+)")


def attempts(google: Google, scope: Scope, ref: JobRef) -> list[Attempt]:
    """Of the job's task, or of the first tasks of several. Raises NotFound."""
    job = look(google, scope, ref.id)
    queued = moved(job, "SCHEDULED") or found_at(job, "createTime")
    if job.state == "QUEUED":
        return [Attempt(1, created=found_at(job, "createTime"))]
    if job.count == 1:
        only = task(google, scope, job.name, 0)
        return _of(only, None, found_at(job, "createTime")) if only else []
    seen = sorted(tasks(google, scope, job.name, limit=TASKS_MAX), key=lambda each: each.index)
    return [attempt for each in seen for attempt in _of(each, each.index, queued)]


def _of(each: Task, place: int | None, asked: datetime | None) -> list[Attempt]:
    """A machine is found when the task is assigned to one; a task that has ended and moves again is tried again."""
    found: list[Attempt] = []
    placed = started = None
    begun = True
    for event in each.events:
        state = told[1] if (told := _MOVED.search(event.text)) else ""
        if state == "ASSIGNED":
            begun, placed = True, placed or event.at
        elif state == "RUNNING":
            begun, started = True, event.at
        elif state in ("FAILED", "SUCCEEDED"):
            found.append(_ended(event, len(found) + 1, place, (asked, placed, started), state))
            asked, placed, started, begun = event.at, None, None, False
    if each.state not in ("FAILED", "SUCCEEDED") and (begun or each.state in ("PENDING", "ASSIGNED", "RUNNING")):
        found.append(Attempt(len(found) + 1, place, asked, placed, started))
    return found


def _ended(
    event: Event,
    number: int,
    place: int | None,
    times: tuple[datetime | None, datetime | None, datetime | None],
    state: str,
) -> Attempt:
    code = 0 if state == "SUCCEEDED" else event.exit_code
    words = None if state == "SUCCEEDED" else event.text
    return Attempt(number, place, *times, event.at, code, words, lost=code in LOST)

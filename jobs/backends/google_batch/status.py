"""Status and listing of jobs, their tasks and their attempts, from the events that Batch keeps of each task. Source:
https://docs.cloud.google.com/batch/docs/view-jobs-tasks"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from accel.catalog import UnknownName, machine
from accel.clouds.google.api import Google
from accel.diagnostics.errors import NotFound
from accel.rules.batch.jobs import LOST
from accel.threads import in_threads

from ...model.owners import owner_of
from ..base import Attempt, JobRef, Phase, Status
from ..google_logging import parse_time
from ..tasks import TaskStatus
from . import labels
from .labels import Scope
from .lookup import GOING, BatchJob, Event, Task, first, first_task, look
from .lookup import tasks as list_tasks

PHASES = {
    "QUEUED": Phase.QUEUED,
    "SCHEDULED": Phase.STARTING,
    "RUNNING": Phase.RUNNING,
    "CANCELLATION_IN_PROGRESS": Phase.RUNNING,
    "SUCCEEDED": Phase.SUCCEEDED,
    "FAILED": Phase.FAILED,
    "CANCELLED": Phase.FAILED,
    GOING: Phase.FAILED,
}
LIVE = [state for state, phase in PHASES.items() if not phase.ended]

TAKEN, NO_ROOM = "its machine was taken away", "no zone had a machine for it"
STOCKOUT = re.compile(r"ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available", re.IGNORECASE)
"""Words of a job's event:
https://docs.cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability"""
_MOVED = re.compile(r"Job state is set from (\w+) to (\w+)")
"""Source: https://github.com/nextflow-io/nextflow/issues/4225"""
_BECAUSE = re.compile(r"^Job state is set from \w+ to \w+ for job \S+/jobs/[a-z0-9-]+\.?\s*")

FEW, THREADS = 50, 8
"""Most jobs that are read one by one, and how many of them at once. More are read with a list of all."""
PAGE = 500
NODES = 100
"""Nodes of a job that are read."""


def status(google: Google, scope: Scope, ref: JobRef) -> Status:
    """Read the job, with its tasks if it has one or has nodes. Raise NotFound."""
    job = look(google, scope, ref.id)
    return status_of(ref, job, representative_tasks(google, scope, job))


def representative_tasks(google: Google, scope: Scope, job: BatchJob) -> list[Task]:
    """Return the tasks that show how a job is doing: its only one, its nodes, or a failed one of a failed array."""
    if job.state == "QUEUED":
        return []
    if job.count == 1:
        only = first_task(google, scope, job.name)
        return [only] if only else []
    if job.several == "node":
        return list_tasks(google, scope, job.name, limit=NODES)
    return list_tasks(google, scope, job.name, state="FAILED", limit=1) if phase(job) is Phase.FAILED else []


def statuses(google: Google, scope: Scope, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
    left = {ref.id: ref for ref in refs}
    found: dict[JobRef, Status] = {}
    if len(left) > FEW:
        # Requested jobs are usually among the newest.
        for job in islice(_jobs(google, scope), 3 * len(left) + PAGE):
            if job.name in left:
                ref = left.pop(job.name)
                found[ref] = status_of(ref, job)
            if not left:
                return found

    def one(ref: JobRef) -> Status | None:
        try:
            return status(google, scope, ref)
        except NotFound:
            return None

    asked = list(left.values())
    looked = zip(asked, in_threads(one, asked, THREADS), strict=True)
    return found | {ref: seen for ref, seen in looked if seen is not None}


def list_jobs(
    google: Google, scope: Scope, *, limit: int, ended: bool, progress: Callable[[int], None]
) -> Iterator[Status]:
    """Omit what only tasks tell."""
    # In the order of a job's states: one that changes its state between two lists is seen twice rather than never.
    lists = [_ours(google, scope, None)] if ended else [_ours(google, scope, state) for state in LIVE]
    seen: dict[str, BatchJob] = {}
    for each in lists:
        for job in islice(each, limit):
            if ended or not phase(job).ended:
                seen[job.name] = job
                progress(len(seen))
    newest = sorted(seen.values(), key=lambda job: str(job.body.get("createTime")), reverse=True)
    yield from (status_of(scope.ref(job.name), job) for job in newest[:limit])


def _ours(google: Google, scope: Scope, state: str | None) -> Iterator[BatchJob]:
    return (job for job in _jobs(google, scope, state) if job.labels.get(labels.MAKER) == labels.JOBS)


def _jobs(google: Google, scope: Scope, state: str | None = None) -> Iterator[BatchJob]:
    """Yield jobs, newest first. Source: https://docs.cloud.google.com/batch/docs/view-jobs-tasks"""
    wanted = f'status.state="{state}"' if state else None
    query = {"orderBy": "create_time desc", "pageSize": PAGE, "filter": wanted}
    return (BatchJob(each) for each in google.pages("batch", f"v1/{scope.parent}/jobs", "jobs", **query))


def status_of(ref: JobRef, job: BatchJob, looked: Sequence[Task] | None = None) -> Status:
    """Convert the job, and the tasks that were read; `looked` is None if none were."""
    now, seen = phase(job), looked or ()
    counted = job.several != "task" and (looked is not None or job.state == "QUEUED")
    lost = [(each, event) for each in seen for event in each.failures if event.exit_code in LOST]
    decisive = deciding_task(job, seen)
    code = exit_code(job, decisive)
    return Status(
        ref=ref,
        name=str(job.labels.get(labels.NAME) or job.name),
        phase=now,
        native=job.state,
        reason=_reason(job, now, decisive),
        exit_code=code if now.ended else None,
        attempts=max((each.attempts for each in seen), default=0) if counted else None,
        lost=len(lost) if counted else None,
        lost_gpu_hours=_lost_gpu_hours(job, lost),
        taken=_taken(job, code) if now is Phase.FAILED else None,
        tasks=job.counts if job.several == "task" else {},
        created=job_time(job, "createTime"),
        started=state_time(job, "RUNNING", oldest=True),
        stopped=(state_time(job, job.state) or job_time(job, "updateTime")) if now.ended else None,
        target=job.labels.get(labels.TARGET),
        gpus=round(gpus(job) * (job.count if job.several == "node" else 1)),
        owner=owner_of(job.labels),
    )


def phase(job: BatchJob) -> Phase:
    """Return the phase of the job's state; if that is a failure and every task has succeeded in the end, SUCCEEDED."""
    now = PHASES.get(job.state, Phase.QUEUED)
    if job.state in ("FAILED", GOING) and job.counts.get("SUCCEEDED", 0) >= job.count:
        return Phase.SUCCEEDED
    return now


def deciding_task(job: BatchJob, seen: Sequence[Task]) -> Task | None:
    """Return the task that decided the end: the first that failed for a reason of its own, else any that failed."""
    if phase(job) is not Phase.FAILED:
        return next((each for each in seen if each.state == "SUCCEEDED"), None)
    failed = [each for each in seen if each.state == "FAILED"]
    return min(failed, key=lambda each: (each.exit_code in LOST, _end(each)), default=None)


def _end(each: Task) -> float:
    at = each.failures[-1].at if each.failures else None
    return at.timestamp() if at else 0.0


def exit_code(job: BatchJob, decisive: Task | None) -> int | None:
    if decisive is not None:
        return decisive.exit_code
    if phase(job) is Phase.SUCCEEDED:
        return 0
    last = _last(job, job.state)
    return last.exit_code if job.state == "FAILED" and last else None


def state_time(job: BatchJob, state: str, *, oldest: bool = False) -> datetime | None:
    event = _last(job, state, oldest=oldest)
    return event.at if event else None


def _last(job: BatchJob, state: str, *, oldest: bool = False) -> Event | None:
    there = [event for event in job.events if (told := _MOVED.search(event.text)) and told[2] == state]
    return (there[0] if oldest else there[-1]) if there else None


def job_time(job: BatchJob, field: str) -> datetime | None:
    return parse_time(job.body.get(field))


def _reason(job: BatchJob, now: Phase, decisive: Task | None) -> str | None:
    if job.state == "CANCELLATION_IN_PROGRESS":
        return "stopping: someone cancelled it"
    if job.state == "CANCELLED":
        return "cancelled"
    if job.state == GOING:
        return "it is being deleted"
    if now is Phase.FAILED:
        if decisive is not None and decisive.failures:
            return decisive.failures[-1].text
        last = _last(job, "FAILED")
        told = (_BECAUSE.sub("", last.text) or last.text) if last else None
        return told or next((event.text for event in reversed(job.events)), None)
    if now in (Phase.QUEUED, Phase.STARTING):
        return next((event.text for event in reversed(job.events) if not _MOVED.search(event.text)), None)
    return None


def _taken(job: BatchJob, code: int | None) -> str | None:
    if job.state != "FAILED":
        return None
    if code in LOST:
        return TAKEN
    began = state_time(job, "RUNNING") is not None
    return NO_ROOM if not began and any(STOCKOUT.search(event.text) for event in job.events) else None


def _lost_gpu_hours(job: BatchJob, lost: Sequence[tuple[Task, Event]]) -> float | None:
    count = gpus(job)
    if not count or not lost:
        return None
    seconds = 0.0
    for each, end in lost:
        began = [event.at for event in each.events if event.at and end.at and event.at <= end.at and _runs(event)]
        if began and end.at:
            seconds += (end.at - began[-1]).total_seconds()
    return round(count * seconds / 3600, 3)


def _runs(event: Event) -> bool:
    return "to RUNNING" in event.text


def gpus(job: BatchJob) -> float:
    """Return the GPUs of a task: those of its VM, divided by the tasks that are on it at once."""
    attached = first(job.policy.get("accelerators")).get("count")
    try:
        on_vm = int(attached or machine("gcp", str(job.policy.get("machineType"))).accelerator_count)
    except UnknownName:
        return 0
    return on_vm / int(job.group.get("taskCountPerNode") or 1)


TASKS_MAX = 100
_TASK_MOVED = re.compile(r"Task state is updated from \w+ to (\w+)")


def attempts(google: Google, scope: Scope, ref: JobRef) -> list[Attempt]:
    job = look(google, scope, ref.id)
    queued = state_time(job, "SCHEDULED") or job_time(job, "createTime")
    if job.state == "QUEUED":
        return [Attempt(1, created=job_time(job, "createTime"))]
    if job.count == 1:
        only = first_task(google, scope, job.name)
        return _of(only, None, job_time(job, "createTime")) if only else []
    seen = sorted(list_tasks(google, scope, job.name, limit=TASKS_MAX), key=lambda each: each.index)
    return [attempt for each in seen for attempt in _of(each, each.index, queued)]


def _of(each: Task, place: int | None, asked: datetime | None) -> list[Attempt]:
    """Return a task's attempts: any state after an end begins another, and ASSIGNED is when a machine was found."""
    found: list[Attempt] = []
    placed = started = None
    begun = True
    for event in each.events:
        state = told[1] if (told := _TASK_MOVED.search(event.text)) else ""
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


_TASK_PHASES = {
    "PENDING": Phase.QUEUED,
    "ASSIGNED": Phase.STARTING,
    "RUNNING": Phase.RUNNING,
    "SUCCEEDED": Phase.SUCCEEDED,
    "FAILED": Phase.FAILED,
    "UNEXECUTED": Phase.FAILED,
}
"""Phases by state. UNEXECUTED: the job ended before the task began. Source:
https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs.taskGroups.tasks"""


def tasks(google: Google, scope: Scope, ref: JobRef) -> list[TaskStatus]:
    """Return the tasks that Batch has created. One that had not ended when its job did has failed. Raise NotFound."""
    job = look(google, scope, ref.id)
    ended = phase(job).ended
    found = [_state(each, ended) for each in list_tasks(google, scope, ref.id, limit=job.count)]
    return sorted(found, key=lambda each: each.index)


def _state(task: Task, ended: bool) -> TaskStatus:
    now = _TASK_PHASES.get(task.state, Phase.QUEUED)
    last = task.failures[-1] if task.failures else None
    reason = TAKEN if last and last.exit_code in LOST else last.text if last else None
    if ended and not now.ended:
        now = Phase.FAILED
    return TaskStatus(
        task.index, now, task.state, task.attempts, task.exit_code, reason if now is Phase.FAILED else None
    )

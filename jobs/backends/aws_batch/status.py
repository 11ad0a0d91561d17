"""Status and listing of jobs, the tasks of an array, and the attempts in DescribeJobs.

Batch reports when an attempt's command began and ended, not when its instance was found. The time before an attempt
therefore covers the queue, the instance's start and the image's pull together. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_AttemptDetail.html
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from accel.clouds.aws.batch_jobs import DESCRIBED_AT_ONCE, describe, pages
from accel.clouds.aws.clients import Client, Clients
from accel.clouds.aws.responses import structure, structures
from accel.diagnostics.errors import CloudRefused, NotFound
from accel.rules.jobs import exit_codes
from accel.threads import in_threads

from ...model.owners import owner_of
from ..base import Attempt, JobRef, Phase, Status
from ..tasks import TaskStatus
from .labels import KIND

PHASES = {
    "SUBMITTED": Phase.QUEUED,
    "PENDING": Phase.QUEUED,
    "RUNNABLE": Phase.QUEUED,
    "STARTING": Phase.STARTING,
    "RUNNING": Phase.RUNNING,
    "SUCCEEDED": Phase.SUCCEEDED,
    "FAILED": Phase.FAILED,
}
LIVE = [native for native, phase in PHASES.items() if not phase.ended]

HOST_LOST = "Host EC2"
EXITED = "Essential container in task exited"
"""Status reason of a command that ended by itself, not of a job that was terminated or timed out."""
NO_CAPACITY = "Canceled by JobStateTimeLimit action due to reason: CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY"
"""Source: https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_capacity.html"""
FILTERED_PAGE = 100
"""Jobs per page of ListJobs with a filter; with a status it is 1,000. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_ListJobs.html"""
FEW = 10 * FILTERED_PAGE
"""Number of listed jobs that are described, a hundred a call."""


def status(clients: Clients, ref: JobRef, target_of: Callable[[str], str | None]) -> Status:
    job = detail(clients, ref)
    return status_of(ref, job, target_of(str(job.get("jobQueue", ""))))


def statuses(clients: Clients, refs: Sequence[JobRef], target_of: Callable[[str], str | None]) -> dict[JobRef, Status]:
    """Omit jobs that Batch does not know. Cost: a call per hundred."""
    found = {job["jobId"]: job for job in describe(clients.batch, dict.fromkeys(ref.id for ref in refs))}
    return {
        ref: status_of(ref, found[ref.id], target_of(str(found[ref.id].get("jobQueue", ""))))
        for ref in refs
        if ref.id in found
    }


def detail(clients: Clients, ref: JobRef) -> dict[str, Any]:
    found = describe(clients.batch, [ref.id])
    if not found:
        raise NotFound(
            f"{ref}: AWS Batch knows no such job", "an ended job is forgotten about seven days after its end"
        )
    return found[0]


def list_jobs(
    clients: Clients, target_name: str, queue: str, *, limit: int, ended: bool, progress: Callable[[int], None]
) -> Iterator[Status]:
    """Yield the newest first. Array tasks are part of their job."""
    batch = clients.batch  # created here: the creation of a client is not thread-safe
    jobs: list[dict[str, Any]] = []
    if ended and limit <= FEW:
        # With this filter Batch itself sorts by creation, newest first, so the first pages are enough.
        every = [{"name": "AFTER_CREATED_AT", "values": ["0"]}]
        for page in pages(batch, jobQueue=queue, filters=every, maxResults=FILTERED_PAGE):
            jobs += page
            progress(len(jobs))
            if len(jobs) >= limit:
                break
    else:
        listed = partial(_of_status, batch, queue, _Count(progress))
        found = in_threads(listed, [*(PHASES if ended else LIVE)], len(PHASES))
        # A job that changes its state between two of these calls is listed twice.
        jobs = list({job["jobId"]: job for each in found for job in each}.values())
    jobs = sorted(jobs, key=lambda job: -int(job.get("createdAt", 0)))[:limit]
    for start in range(0, len(jobs), DESCRIBED_AT_ONCE):
        some = jobs[start : start + DESCRIBED_AT_ONCE]
        details = _details(batch, [job["jobId"] for job in some if start < FEW or _hidden(job)])
        for job in some:
            told = status_of(JobRef(KIND, clients.region, job["jobId"]), details.get(job["jobId"], job), target_name)
            if ended or not told.phase.ended:
                yield told


def _hidden(summary: Mapping[str, Any]) -> bool:
    """Return whether the job's progress is hidden: an array's parent is PENDING while its tasks run."""
    return (
        summary["status"] == "PENDING" and "size" in structure(summary, "arrayProperties") and not task_counts(summary)
    )


def _details(batch: Client, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    try:
        return {job["jobId"]: job for job in describe(batch, ids)}
    except CloudRefused:
        return {}


class _Count:
    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._count = 0

    def add(self, count: int) -> None:
        with self._lock:
            self._count += count
            self._progress(self._count)


def _of_status(batch: Client, queue: str, seen: _Count, native: str) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = []
    for page in pages(batch, jobQueue=queue, jobStatus=native):
        jobs += page
        seen.add(len(page))
    return jobs


def phase(job: Mapping[str, Any]) -> Phase:
    """Derive the phase of an array's parent, which stays PENDING, from its tasks."""
    tasks = task_counts(job)
    own = PHASES[job["status"]]
    if own is not Phase.QUEUED or not tasks:
        return own
    phases = {PHASES[native] for native, count in tasks.items() if count}
    if Phase.RUNNING in phases or (Phase.QUEUED in phases and any(each.ended for each in phases)):
        return Phase.RUNNING
    return Phase.STARTING if Phase.STARTING in phases else own


def task_counts(job: Mapping[str, Any]) -> dict[str, int]:
    counts = structure(structure(job, "arrayProperties"), "statusSummary")
    return {native: counts[native] for native in PHASES if counts.get(native)}


def status_of(ref: JobRef, job: Mapping[str, Any], target: str | None) -> Status:
    """Convert a JobDetail or JobSummary."""
    container, attempts = structure(job, "container"), structures(job, "attempts")
    last = structure(attempts[-1], "container") if attempts else {}
    exit_code = container.get("exitCode", last.get("exitCode"))
    lost = [attempt for attempt in attempts if is_lost(attempt)]
    whole = "jobQueue" in job
    """False for a JobSummary, which has no queue and no attempts. Attempts of an array are those of its tasks."""
    single = whole and "size" not in structure(job, "arrayProperties")
    return Status(
        ref=ref,
        name=job["jobName"],
        phase=phase(job),
        native=job["status"],
        reason=_reason(job.get("statusReason"), container.get("reason") or last.get("reason")),
        exit_code=int(exit_code) if exit_code is not None else None,
        attempts=_attempt_count(job) if single else None,
        lost=len(lost) if single else None,
        lost_gpu_hours=_gpu_hours(container, lost),
        taken=_taken(job, attempts),
        tasks=task_counts(job),
        created=batch_time(job.get("createdAt")),
        started=batch_time(job.get("startedAt")),
        stopped=batch_time(job.get("stoppedAt")),
        target=target,
        gpus=_gpus(_node(job)) * max(1, node_count(job)) if whole else None,
        owner=owner_of(structure(job, "tags")),
    )


def is_lost(ended: Mapping[str, Any]) -> bool:
    """Return whether an attempt or a job lost its host, as with Spot instances, or stopped by itself just before.
    Source: https://aws.amazon.com/blogs/compute/introducing-retry-strategies-for-aws-batch/"""
    told = str(ended.get("statusReason") or "")
    stopped = told.startswith(EXITED) and structure(ended, "container").get("exitCode") == exit_codes.STOPPED
    return stopped or told.startswith(HOST_LOST)


def _gpu_hours(container: Mapping[str, Any], lost: Iterable[Mapping[str, Any]]) -> float | None:
    gpus = _gpus(container)
    spans = [attempt["stoppedAt"] - attempt["startedAt"] for attempt in lost if attempt.get("startedAt")]
    return round(gpus * sum(spans) / 3_600_000, 3) if gpus and spans else None


def _gpus(container: Mapping[str, Any]) -> int:
    return sum(int(each["value"]) for each in structures(container, "resourceRequirements") if each["type"] == "GPU")


def _node(job: Mapping[str, Any]) -> dict[str, Any]:
    ranges = structures(structure(job, "nodeProperties"), "nodeRangeProperties")
    return structure(ranges[0], "container") if ranges else structure(job, "container")


def _taken(job: Mapping[str, Any], attempts: Sequence[Mapping[str, Any]]) -> str | None:
    if PHASES[job["status"]] is not Phase.FAILED:
        return None
    # A job that is cancelled after a lost attempt has the user's reason.
    told = job if job.get("statusReason") or not attempts else attempts[-1]
    if is_lost(told):
        return "its host was taken away"
    return "there was no capacity" if told.get("statusReason") == NO_CAPACITY else None


def node_count(job: Mapping[str, Any]) -> int:
    """Return 0 for a job of one node, and for a single node of several."""
    return 0 if "#" in job["jobId"] else int(structure(job, "nodeProperties").get("numNodes", 0))


def streams(job: Mapping[str, Any]) -> list[str | None]:
    """Return the log stream of each attempt of a JobDetail, the present one last. None: an attempt that never started,
    or the present one of a multi-node job, whose nodes have the streams. Batch adds an attempt to `attempts` when it
    ends; until then `container` describes it."""
    found = [structure(attempt, "container").get("logStreamName") for attempt in structures(job, "attempts")]
    present = structure(job, "container").get("logStreamName")
    running = PHASES[job["status"]] in (Phase.STARTING, Phase.RUNNING)
    if (present and present not in found) or (running and not present and (not found or node_count(job))):
        found.append(present)
    return found


def _attempt_count(job: Mapping[str, Any]) -> int:
    """Count the present attempt too, which may not have a log stream yet."""
    known = len(streams(job))
    return known + (job["status"] == "STARTING" and known == len(structures(job, "attempts")))


def _reason(batch: str | None, container: str | None) -> str | None:
    told = [text for text in (batch, container) if text]
    return ": ".join(dict.fromkeys(told)) or None


def batch_time(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC) if milliseconds else None


def tasks(clients: Clients, ref: JobRef) -> list[TaskStatus]:
    """Omit tasks not created yet. A job that is no array is its only task. Raise NotFound. Cost: a call per hundred."""
    job = detail(clients, ref)
    size = structure(job, "arrayProperties").get("size")
    if not size:
        return [_state(ref, job, 0)]
    # A child's id is its parent's with its index: https://docs.aws.amazon.com/batch/latest/userguide/array_jobs.html
    children = describe(clients.batch, [f"{ref.id}:{index}" for index in range(size)])
    return [_state(ref, child, int(child["jobId"].rpartition(":")[2])) for child in children]


def _state(ref: JobRef, job: "dict[str, object]", index: int) -> TaskStatus:
    told = status_of(ref, job, None)
    return TaskStatus(index, told.phase, told.native, told.attempts or 0, told.exit_code, told.reason)


TASKS_MAX = 100
"""Tasks that one call describes: https://docs.aws.amazon.com/batch/latest/APIReference/API_DescribeJobs.html"""


def attempts(clients: Clients, ref: JobRef) -> list[Attempt]:
    """Return those of the first TASKS_MAX tasks of an array. Raise NotFound."""
    job = detail(clients, ref)
    size = structure(job, "arrayProperties").get("size")
    if not size:
        return of_job(job, None)
    known = {each["jobId"]: each for each in describe(clients.batch, [f"{ref.id}:{i}" for i in range(_first(size))])}
    return [attempt for i in range(_first(size)) if (task := known.get(f"{ref.id}:{i}")) for attempt in of_job(task, i)]


def _first(size: int) -> int:
    return min(size, TASKS_MAX)


def of_job(job: Mapping[str, Any], place: int | None) -> list[Attempt]:
    """Add the running attempt, which is not in `attempts` before its end."""
    found: list[Attempt] = []
    made = batch_time(job.get("createdAt"))
    for number, each in enumerate(structures(job, "attempts"), 1):
        container = structure(each, "container")
        code = container.get("exitCode")
        told = [str(text) for text in (each.get("statusReason"), container.get("reason")) if text]
        found.append(
            Attempt(
                number,
                place,
                # Batch does not report when a later attempt was requested; the end of the one before it stands for
                # that.
                created=made if number == 1 else found[-1].stopped,
                started=batch_time(each.get("startedAt")),
                stopped=batch_time(each.get("stoppedAt")),
                exit_code=int(code) if code is not None else None,
                reason=": ".join(dict.fromkeys(told)) or None,
                lost=is_lost(each),
            )
        )
    if not PHASES[job["status"]].ended:
        running = PHASES[job["status"]] is Phase.RUNNING
        started = batch_time(job.get("startedAt")) if running else None
        found.append(Attempt(len(found) + 1, place, found[-1].stopped if found else made, None, started))
    return found

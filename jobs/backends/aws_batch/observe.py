"""Status, listing and cancelling."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ...backend import JobRef, Phase, Status
from ...errors import NotFound
from .clients import Client, Clients
from .found import describe, pages, part, parts, terminate
from .render import KIND

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

FILTERED_PAGE = 100
"""Jobs a page of ListJobs with a filter; by status it is 1,000.
Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_ListJobs.html"""
FEW = 10 * FILTERED_PAGE


def status(clients: Clients, ref: JobRef, target_of: Callable[[str], str | None]) -> Status:
    """The job as DescribeJobs has it. Raises NotFound."""
    job = detail(clients, ref)
    return _status(ref, job, target_of(str(job.get("jobQueue", ""))))


def detail(clients: Clients, ref: JobRef) -> dict[str, Any]:
    """The JobDetail. Raises NotFound."""
    found = describe(clients.batch, [ref.id])
    if not found:
        raise NotFound(
            f"{ref}: AWS Batch knows no such job", "an ended job is forgotten about seven days after its end"
        )
    return found[0]


def cancel(clients: Clients, ref: JobRef, reason: str) -> None:
    """Terminates the job unless it has ended. Raises NotFound."""
    if not PHASES[detail(clients, ref)["status"]].ended:
        terminate(clients.batch, ref.id, reason or "cancelled")


def listed(clients: Clients, target_name: str, queue: str, *, limit: int, ended: bool) -> Iterator[Status]:
    """The jobs of a queue, newest first, at most `limit`."""
    batch = clients.batch  # made here: making a client is not thread-safe
    jobs: list[dict[str, Any]] = []
    if ended and limit <= FEW:
        # With this filter Batch sorts by creation itself, newest first, so the first pages are enough.
        every = [{"name": "AFTER_CREATED_AT", "values": ["0"]}]
        for page in pages(batch, jobQueue=queue, filters=every, maxResults=FILTERED_PAGE):
            jobs += page
            if len(jobs) >= limit:
                break
    else:
        with ThreadPoolExecutor(len(PHASES)) as pool:
            found = pool.map(partial(_of_status, batch, queue), PHASES if ended else LIVE)
            # A job that moves on between two of these calls is listed twice.
            jobs = list({job["jobId"]: job for each in found for job in each}.values())
    jobs.sort(key=lambda job: -int(job.get("createdAt", 0)))
    for job in jobs[:limit]:
        yield _status(JobRef(KIND, clients.region, job["jobId"]), job, target_name)


def _of_status(batch: Client, queue: str, native: str) -> list[dict[str, Any]]:
    return [job for page in pages(batch, jobQueue=queue, jobStatus=native) for job in page]


def phase(job: Mapping[str, Any]) -> Phase:
    """The phase of a JobDetail or JobSummary. An array's parent stays PENDING while its tasks run."""
    tasks = task_counts(job)
    own = PHASES[job["status"]]
    if own is not Phase.QUEUED or not tasks:
        return own
    phases = {PHASES[native] for native, count in tasks.items() if count}
    if Phase.RUNNING in phases or (Phase.QUEUED in phases and any(each.ended for each in phases)):
        return Phase.RUNNING
    return Phase.STARTING if Phase.STARTING in phases else own


def task_counts(job: Mapping[str, Any]) -> dict[str, int]:
    """Of an array's parent: how many tasks are in which state."""
    counts = part(part(job, "arrayProperties"), "statusSummary")
    return {native: counts[native] for native in PHASES if counts.get(native)}


def _status(ref: JobRef, job: Mapping[str, Any], target: str | None) -> Status:
    container, attempts = part(job, "container"), parts(job, "attempts")
    last = part(attempts[-1], "container") if attempts else {}
    exit_code = container.get("exitCode", last.get("exitCode"))
    return Status(
        ref=ref,
        name=job["jobName"],
        phase=phase(job),
        native=job["status"],
        reason=_reason(job.get("statusReason"), container.get("reason") or last.get("reason")),
        exit_code=int(exit_code) if exit_code is not None else None,
        attempts=len(streams(job)) if "attempts" in job else 0,
        tasks=task_counts(job),
        created=_at(job.get("createdAt")),
        started=_at(job.get("startedAt")),
        stopped=_at(job.get("stoppedAt")),
        target=target,
    )


def streams(job: Mapping[str, Any]) -> list[str | None]:
    """The log stream of each attempt of a JobDetail, the present one last; None for one that never started.

    Batch adds an attempt to `attempts` when it ends; until then `container` speaks of it.
    """
    found = [part(attempt, "container").get("logStreamName") for attempt in parts(job, "attempts")]
    present = part(job, "container").get("logStreamName")
    running = PHASES[job["status"]] in (Phase.STARTING, Phase.RUNNING)
    if (present and present not in found) or (running and not present and not found):
        found.append(present)
    return found


def _reason(batch: str | None, container: str | None) -> str | None:
    told = [text for text in (batch, container) if text]
    return ": ".join(dict.fromkeys(told)) or None


def _at(milliseconds: Any) -> datetime | None:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC) if milliseconds else None

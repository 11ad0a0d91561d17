"""Status and listing."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from accel.clouds.google.api import Google
from accel.diagnostics.errors import NotFound
from accel.rules.jobs import exit_codes

from ...model.owners import owner_of
from ..base import JobRef, Phase, Status
from . import labels
from .labels import Scope
from .lookup import LIVE, Job, look, query_jobs

TAKEN, NO_ROOM = "its machine was taken away", "the region had no machine for it"
STOCKOUT = re.compile(r"STOCKOUT|Resources are insufficient in region", re.IGNORECASE)
"""Words about a job for which there were no machines, and about one that lost its Spot machines once too often.
Sources:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/understanding-training-service,
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/use-spot-vms"""
FEW = 20
"""Most jobs that are read one by one; more are read with a list."""
OURS = f'labels.{labels.MAKER}="{labels.JOBS}"'
SPANS = [timedelta(days=days) for days in (1, 7, 31, 120)]
"""Time spans in which the newest jobs are searched, until there are enough, because a list has no order."""


def status(google: Google, scope: Scope, ref: JobRef) -> Status:
    return status_of(ref, look(google, scope, ref.id))


def statuses(google: Google, scope: Scope, refs: Sequence[JobRef]) -> dict[JobRef, Status]:
    left = {ref.id: ref for ref in refs}
    found: dict[JobRef, Status] = {}
    if len(refs) > FEW:
        for job in _newest(google, scope, OURS):
            if job.number in left:
                ref = left.pop(job.number)
                found[ref] = status_of(ref, job)
            if not left:
                break
    for ref in [*left.values()] if len(left) <= FEW else []:
        try:
            found[ref] = status(google, scope, ref)
        except NotFound:
            continue
    return found


def list_jobs(
    google: Google, scope: Scope, *, limit: int, ended: bool, progress: Callable[[int], None]
) -> Iterator[Status]:
    live = " OR ".join(f'state="{state}"' for state in LIVE)
    query = OURS if ended else f"{OURS} AND ({live})"
    shown = 0
    for job in _newest(google, scope, query):
        if shown == limit:
            return
        if ended or not job.phase.ended:
            shown += 1
            progress(shown)
            yield status_of(scope.ref(job.number), job)


def _newest(google: Google, scope: Scope, query: str) -> Iterator[Job]:
    until, now = "", datetime.now(UTC)
    for span in [*SPANS, None]:
        since = "" if span is None else f"{now - span:%Y-%m-%dT%H:%M:%SZ}"
        times = [f'create_time>="{since}"'] * bool(since) + [f'create_time<"{until}"'] * bool(until)
        found = [*query_jobs(google, scope, " AND ".join([query, *times]))]
        yield from sorted(found, key=lambda job: job.created_ms, reverse=True)
        until = since


def status_of(ref: JobRef, job: Job) -> Status:
    """Convert the job. Vertex restarts failed replicas by itself, and does not report how often."""
    return Status(
        ref=ref,
        name=str(job.labels.get(labels.NAME) or job.name),
        phase=job.phase,
        native=job.state.removeprefix("JOB_STATE_"),
        reason=_reason(job),
        exit_code=job.exit_code if job.phase.ended else None,
        attempts=0 if job.at("startTime") is None else None,
        lost=0 if job.at("startTime") is None else None,
        taken=loss_reason(job),
        created=job.at("createTime"),
        started=job.at("startTime"),
        stopped=job.at("endTime"),
        target=job.labels.get(labels.TARGET),
        gpus=job.gpus,
        owner=owner_of(job.labels),
    )


def _reason(job: Job) -> str | None:
    if job.state == "JOB_STATE_CANCELLING":
        return "stopping: someone cancelled it"
    if job.state == "JOB_STATE_CANCELLED":
        return "cancelled"
    if job.phase is Phase.FAILED:
        return job.error or None
    if job.state == "JOB_STATE_QUEUED":
        return "waits to be taken up"
    return "its machines are being made ready" if job.phase is Phase.STARTING else None


def loss_reason(job: Job) -> str | None:
    """Return why a job failed for want of a machine: preemption if it had run on Spot machines, else no capacity.
    Vertex does not restart a job for its exit code, so a job that reports the loss of its machine has failed."""
    if job.state == "JOB_STATE_FAILED" and job.exit_code in exit_codes.LOST:
        return TAKEN
    if job.state != "JOB_STATE_FAILED" or not STOCKOUT.search(job.error):
        return None
    return TAKEN if job.strategy == "SPOT" and job.at("startTime") else NO_ROOM

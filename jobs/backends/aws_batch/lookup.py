"""Jobs looked for by name, by id and by queue."""

from accel.clouds.aws.batch_jobs import DESCRIBED_AT_ONCE, describe, pages
from accel.clouds.aws.clients import Client
from accel.clouds.aws.errors import PERMISSION, asking
from accel.clouds.aws.responses import part, parts
from accel.diagnostics.errors import CloudRefused

from ..claims.platform import ClaimedJob
from . import labels

__all__ = ["DESCRIBED_AT_ONCE", "describe", "find_jobs", "pages", "part", "parts", "terminate"]

TASK_ALONE = (
    "the submit policy ends whole jobs only, since AWS has no tags of a single task: cancel the whole job, or ask for "
    "batch:TerminateJob on job/*:* (docs/security.md)"
)


def find_jobs(batch: Client, queue: str, name: str, key: str) -> list[ClaimedJob]:
    """The jobs of a queue with this name (ListJobs compares without case) and this key in their tags."""
    filters = [{"name": "JOB_NAME", "values": [name]}]
    summaries = (job for page in pages(batch, jobQueue=queue, filters=filters) for job in page)
    ids = [job["jobId"] for job in summaries if job.get("jobName") == name]
    details = describe(batch, ids) if ids else []
    return [
        ClaimedJob(int(job.get("createdAt", 0)), job["jobId"], part(job, "tags").get(labels.SPEC, ""))
        for job in details
        if part(job, "tags").get(labels.KEY) == key
    ]


def terminate(batch: Client, job_id: str, reason: str) -> None:
    """Stops a job in any state: TerminateJob cancels those that have not started.
    Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_TerminateJob.html"""
    try:
        with asking(f"TerminateJob {job_id}"):
            batch.terminate_job(jobId=job_id, reason=reason[:1024])
    except CloudRefused as refused:
        if ":" in job_id and refused.hint == PERMISSION:
            raise CloudRefused(refused.message, TASK_ALONE) from refused
        raise

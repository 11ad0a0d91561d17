"""Jobs looked for by name, by id and by queue."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from accel.clouds.aws.clients import Client
from accel.clouds.aws.errors import PERMISSION, asking
from accel.diagnostics.errors import CloudRefused, CloudSilent

from ..claims.platform import ClaimedJob
from . import labels

DESCRIBED_AT_ONCE = 100
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


def pages(batch: Client, **arguments: Any) -> Iterator[list[dict[str, Any]]]:
    """The JobSummaries of ListJobs, page by page."""
    token: dict[str, str] = {}
    while True:
        with asking("ListJobs"):
            answer = batch.list_jobs(**arguments, **token)
        if "jobSummaryList" not in answer:
            raise CloudSilent("ListJobs: the answer has no list of jobs")
        yield answer["jobSummaryList"]
        if not answer.get("nextToken"):
            return
        token = {"nextToken": answer["nextToken"]}


def describe(batch: Client, ids: Iterable[str]) -> list[dict[str, Any]]:
    """The JobDetail of each job that Batch still knows, in the order of the ids."""
    wanted = list(ids)
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
        with asking("DescribeJobs"):
            answer = batch.describe_jobs(jobs=wanted[start : start + DESCRIBED_AT_ONCE])
        if "jobs" not in answer:
            raise CloudSilent("DescribeJobs: the answer has no list of jobs")
        found.update((job["jobId"], job) for job in answer["jobs"])
    return [found[job_id] for job_id in wanted if job_id in found]


def part(job: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A structure of an answer; empty where it is left out."""
    return job.get(name) or {}


def parts(job: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of structures of an answer; empty where it is left out."""
    return job.get(name) or []


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

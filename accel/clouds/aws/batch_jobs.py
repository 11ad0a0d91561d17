"""Lists and descriptions of AWS Batch jobs."""

from collections.abc import Iterable, Iterator
from typing import Any

from ...diagnostics.errors import CloudSilent
from .clients import Client
from .errors import asking

DESCRIBED_AT_ONCE = 100


def pages(batch: Client, **arguments: Any) -> Iterator[list[dict[str, Any]]]:
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
    """Return the JobDetail of each job that Batch still knows, in the order of the ids."""
    wanted = list(ids)
    details: dict[str, dict[str, Any]] = {}
    for start in range(0, len(wanted), DESCRIBED_AT_ONCE):
        with asking("DescribeJobs"):
            answer = batch.describe_jobs(jobs=wanted[start : start + DESCRIBED_AT_ONCE])
        if "jobs" not in answer:
            raise CloudSilent("DescribeJobs: the answer has no list of jobs")
        details.update((job["jobId"], job) for job in answer["jobs"])
    return [details[job_id] for job_id in wanted if job_id in details]

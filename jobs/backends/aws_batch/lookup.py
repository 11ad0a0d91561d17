"""Jobs of a queue that are looked for by name and key."""

from accel.clouds.aws.batch_jobs import describe, pages
from accel.clouds.aws.clients import Client
from accel.clouds.aws.responses import part

from ..claims.platform import ClaimedJob
from . import labels


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

"""Why a job waits or failed: the facts are read as they are needed, cheapest first, and a table of causes judges them.

A cause is named only where what was read shows it; where none fits, the answer is "unknown", with what was looked at.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel.clouds.aws.clients import Clients
from accel.diagnostics.errors import CloudRefused, CloudSilent

from ...base import Explanation, JobRef
from .. import lookup as jobs
from ..lookup import part, parts
from ..status import task_counts
from . import ended, waiting
from .facts import Facts
from .gather import Gather
from .reader import Reader
from .table import CAUSES, because
from .times import ago

__all__ = ["CAUSES", "decide", "explain"]

# Which task of an array stands for all: while some run the array runs.
STANDS_FOR = ("RUNNING", "STARTING", "RUNNABLE", "PENDING", "SUBMITTED")
SHOWN = 3


def explain(
    clients: Clients,
    ref: JobRef,
    elsewhere: Callable[[], Sequence[str]] = tuple,
    now: float | None = None,
) -> Explanation:
    """The one cause that fits. `elsewhere`: gives regions in which to look for a job that is not in its reference's.

    Raises NoCredentials, CloudRefused or CloudSilent where DescribeJobs itself does not answer.
    """
    now = time.time() if now is None else now
    found = jobs.describe(clients.batch, [ref.id])
    if not found:
        return _missing(clients, ref, elsewhere())
    reader = Reader(clients)
    reader.looked["batch:DescribeJobs"] = None
    job, told = _representative(reader, found[0])
    facts = Gather(reader, job, now).facts()
    explained = decide(facts) or _unknown(facts, reader)
    return replace(explained, evidence=(*told, *explained.evidence, *_earlier(facts)), unread=reader.unread_lines())


def decide(facts: Facts) -> Explanation | None:
    """The first cause whose facts are there. Pure but for what the facts read."""
    if facts.status in ("RUNNING", "SUCCEEDED"):
        return _well(facts)
    causes = ended.CAUSES if facts.status == "FAILED" else waiting.CAUSES
    return next((told for cause in causes if (told := cause(facts))), None)


def _well(facts: Facts) -> Explanation:
    began = int(facts.job.get("startedAt") or 0) / 1000
    if facts.status == "SUCCEEDED":
        return because("succeeded", "the job has succeeded: there is nothing to explain", (), "")
    since = (f"since {ago(facts.now, began)}",) if began else ()
    return because("running", "the job runs: it neither waits nor has it failed", since, "`accel-jobs logs -f REF`")


def _representative(reader: Reader, job: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The job itself, or the task of an array or the main node that tells why it is as it is; and which one that is."""
    counts = task_counts(job)
    size = part(job, "arrayProperties").get("size")
    if size and counts and job["status"] in ("PENDING", "FAILED"):
        failed = job["status"] == "FAILED"
        status = "FAILED" if failed else next((each for each in STANDS_FOR if counts.get(each)), "")
        if status and counts.get(status):
            rows = reader.ask(
                "batch:ListJobs",
                lambda batch: batch.list_jobs(arrayJobId=job["jobId"], jobStatus=status)["jobSummaryList"],
            )
            # The array itself is PENDING for as long as its tasks wait and run.
            task = _one(reader, min((row["jobId"] for row in rows), key=_index)) if rows else None
            if task:
                told = f"{counts[status]} of {size} tasks are {status}; this is task {_index(task['jobId'])}"
                return task, (told,)
    main = part(job, "nodeProperties").get("mainNode")
    if main is not None and job["status"] == "FAILED" and not parts(job, "attempts"):
        node = _one(reader, f"{job['jobId']}#{main}")
        if node:
            return node, (f"of its nodes this is the main one, {main}",)
    return job, ()


def _index(job_id: str) -> int:
    return int(job_id.rpartition(":")[2])


def _one(reader: Reader, job_id: str) -> Mapping[str, Any] | None:
    answer = reader.ask("batch:DescribeJobs", lambda batch: batch.describe_jobs(jobs=[job_id]))
    rows = parts(answer or {}, "jobs")
    return rows[0] if rows else None


def _earlier(facts: Facts) -> tuple[str, ...]:
    """The attempts before the one that is explained."""
    before = facts.attempts[:-1] if facts.status in ("FAILED", "SUCCEEDED") else facts.attempts
    if not before:
        return ()
    rows = [f"{each.reason or each.status_reason}{_code(each.exit_code)}" for each in before[-SHOWN:]]
    return (f"{len(before)} earlier attempts; the last: {' | '.join(rows)}",)


def _code(exit_code: int | None) -> str:
    return "" if exit_code is None else f", exit code {exit_code}"


def _missing(clients: Clients, ref: JobRef, elsewhere: Sequence[str]) -> Explanation:
    asked: list[str] = []
    unread: list[str] = []
    for region in dict.fromkeys(each for each in elsewhere if each != clients.region):
        other = Clients(region, clients.timing)
        try:
            found = jobs.describe(other.batch, [ref.id])
        except (CloudRefused, CloudSilent) as error:
            unread.append(f"batch:DescribeJobs in {region}: {error.message}")
            continue
        asked.append(region)
        if found:
            right = JobRef(ref.kind, region, ref.id)
            told = (f"{clients.region}: no such job", f"{region}: {found[0]['jobName']}, {found[0]['status']}")
            step = f"`accel-jobs explain {right}`"
            return because("wrong-region", f"the job is in {region}, not in {clients.region}", told, step)
    told = tuple(f"{region}: no such job" for region in (clients.region, *asked))
    explained = because(
        "unknown-job",
        f"AWS Batch in {clients.region} knows no job {ref.id}",
        told,
        "check the reference and AWS_PROFILE (another account has other jobs); Batch forgets a job about seven days "
        "after its end",
    )
    return replace(explained, unread=tuple(unread))


def _unknown(facts: Facts, reader: Reader) -> Explanation:
    status = f"the job is {facts.status}, {facts.reason or 'without a reason'}"
    last = facts.attempts[-1:]
    attempt = tuple(f"last attempt: {each.status_reason}, {each.reason}{_code(each.exit_code)}" for each in last)
    queue = facts.queue()
    state = (f"the queue {queue.name} is {queue.state}, {queue.status}",) if queue else ()
    looked = f"looked at: {', '.join(reader.looked)}"
    return because(
        "unknown",
        "unknown: no known cause fits what could be read",
        (status, *attempt, *state, looked),
        "https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html lists what AWS knows of"
        if facts.status in waiting.STATES
        else "`accel-jobs logs REF` and `accel-jobs get REF` show all that the job left",
    )

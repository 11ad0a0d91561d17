"""Why a job waits or failed: the facts are read as they are needed, cheapest first, and a table of causes judges them.
Causes of a failed job are here, those of one that waits in waiting.py.

A cause is named only where what was read shows it; where none fits, the answer is "unknown", with what was looked at.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel.clouds.aws.batch_jobs import describe
from accel.clouds.aws.clients import Clients
from accel.clouds.aws.responses import part, parts
from accel.diagnostics.errors import CloudRefused, CloudSilent

from ... import outcome
from ...base import Explanation, JobRef
from ..status import task_counts
from . import waiting
from .facts import Attempt, Facts
from .gather import Gather
from .reader import Reader
from .size import OVER_MAX, TOO_BIG, max_vcpus, too_large
from .table import CAUSES, ago, because

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
    found = describe(clients.batch, [ref.id])
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
    causes = FAILURE_CAUSES if facts.status == "FAILED" else waiting.CAUSES
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
            found = describe(other.batch, [ref.id])
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


# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_time_limit_actions.html
TIME_LIMIT = re.compile(r"Canceled by JobStateTimeLimit action due to reason: *(\S+)")
TIMED_OUT = "Job attempt duration exceeded timeout"
HOST = "Host EC2"
_OTHERS_SHOWN = 5

MEANINGS = {
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY": (
        "EC2 had no capacity of the instance types",
        "submit it again later, or to a queue with more instance types, zones or on-demand capacity",
    ),
    OVER_MAX: ("max_vcpus has no room for an instance that holds it", "raise max_vcpus, or ask for less"),
    TOO_BIG: ("no instance type of the queue holds it", "ask for less, or use a queue with larger types"),
    "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS": (
        "Batch lacks a permission in its service role",
        "attach AWSBatchServiceRole to the role, or leave service_role out",
    ),
}


def time_limit(facts: Facts) -> Explanation | None:
    """Cancelled by the queue's own rule."""
    found = TIME_LIMIT.search(facts.reason)
    if not found:
        return None
    code = found[1]
    why, next_step = MEANINGS.get(code, (code, "docs/explain.md has the reasons"))
    queue = facts.queue()
    limit = queue.limits.get(code) if queue else None
    told = (f"queue {queue.name} cancels for this reason after {limit} s",) if queue and limit else ()
    same = too_large(facts) if code == TOO_BIG else max_vcpus(facts) if code == OVER_MAX else None
    more = same.evidence if same else ()
    next_step = same.next_step if same else next_step
    return because("time-limit", f"the queue cancelled the job: {why}", (facts.reason, *told, *more), next_step)


def stopped(facts: Facts) -> Explanation | None:
    """Cancelled or terminated by a person or a program."""
    word = "terminated" if facts.job.get("isTerminated") else "cancelled" if facts.job.get("isCancelled") else ""
    if not word:
        return None
    reason = facts.reason or "no reason was given"
    return because("stopped", f"the job was {word}: {reason}", (facts.reason,), "`accel-jobs retry` runs it again")


def dependency_failed(facts: Facts) -> Explanation | None:
    """A job that it depends on failed first."""
    if not facts.reason.startswith("Dependent Job failed"):
        return None
    failed = [one for one in facts.depends_on() or () if one.status == "FAILED"]
    rows = tuple(f"{facts.called(one.id, one.name)}: FAILED" for one in failed[:_OTHERS_SHOWN])
    first = facts.called(failed[0].id) if failed else "REF"
    return because(
        "dependency-failed",
        "a job that it depends on has failed",
        rows or (facts.reason,),
        f"`accel-jobs explain {first}` says why; then submit both again",
    )


def refused(facts: Facts) -> Explanation | None:
    """No attempt was made."""
    if facts.attempts or not facts.reason or part(facts.job, "arrayProperties").get("size"):
        return None
    if _SECRETS.search(facts.reason):
        return _secrets(facts.reason)
    return because("refused", "ECS refused the task", (facts.reason,), "the reason is AWS's own and names the field")


_SECRETS = re.compile(
    r"pull secrets or registry auth|[Ff]etching secret data|retrieve secrets? from|must also specify a value for "
    r"'executionRoleArn'|can't find the specified secret|invalid ssm parameters|[Ii]nvalid parameters: "
)


def _secrets(reason: str) -> Explanation:
    denied = re.search(r"AccessDenied|not authorized|executionRoleArn", reason)
    missing = re.search(r"ResourceNotFound|can't find|[Ii]nvalid (ssm )?parameters|not exist", reason)
    how = (
        (
            "the execution role may not read it",
            "give the execution role secretsmanager:GetSecretValue, ssm:GetParameters",
        )
        if denied
        else ("there is none of that name", "create the secret, or correct its name in the job")
        if missing
        else ("AWS gives another reason", "the reason names the secret and what went wrong with it")
    )
    return because("secrets", f"a secret of the job cannot be read: {how[0]}", (reason,), how[1])


_PULLS = (
    ("image-rate-limit", r"toomanyrequests|pull rate limit|Too Many Requests",
     "the registry allows no more pulls from this address just now",
     "log in to the registry, or copy the image to ECR"),
    ("image-platform", r"descriptor matching platform|no matching manifest for|exec format error",
     "the image is not for this CPU", "build it with `docker build --platform linux/amd64`"),
    ("disk-full", r"no space left on device", "the instance's disk has no room for the image",
     "a larger disk_gib in the environment, or a smaller image"),
    ("image-forbidden",
     r"AccessDenied|not authorized|no basic auth credentials|403 Forbidden|unauthorized|authorization failed",
     "the instance or the execution role may not read the image",
     "let the instance role and the execution role read ECR; another account's repository has to allow this one"),
    ("image-unreachable",
     r"i/o timeout|connection refused|Client\.Timeout|request canceled|context deadline|no such host|network is "
     r"unreachable|TLS handshake timeout|RequestError",
     "the registry cannot be reached from the instance",
     "a NAT gateway, or VPC endpoints for ecr.api, ecr.dkr and S3; a public registry needs a way to the internet"),
    ("image-missing", r"manifest unknown|manifest for .* not found|: not found|RepositoryNotFound|ImageNotFound"
     r"|name unknown|invalid reference format",
     "the registry has no such image or tag", "correct the image's name and tag, or push it"),
)  # fmt: skip
"""Cause, ECS's words, reason, next step.
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_cannot_pull_image.html"""


def image(facts: Facts) -> Explanation | None:
    """The image could not be pulled."""
    last = _last(facts)
    if last is None or "CannotPull" not in last.reason:
        return None
    told = (f"image {facts.container.get('image')}", last.reason)
    for cause, words, reason, next_step in _PULLS:
        if re.search(words, last.reason):
            return because(cause, reason, told, next_step)
    if facts.image_exists() is False:
        return because("image-missing", "ECR has no such image or tag", told, "correct its name and tag, or push it")
    there = ("ECR has it",) if facts.image_exists() else ()
    return because(
        "image-pull",
        "the image cannot be pulled",
        (*told, *there),
        "the reason is the registry's own; is the name right, and may the instance's role read it?",
    )


_STARTS = (
    ("log-group-missing", r"log group does not exist|log stream.*ResourceNotFoundException",
     "the job's log group does not exist", "`pulumi up` makes the stack's log group again"),
    ("log-group-forbidden", r"log(ging driver| stream).*(AccessDenied|not authorized)",
     "the job's log group may not be written to",
     "give the instance role (or the execution role) logs:CreateLogStream and logs:PutLogEvents"),
    ("gpu-driver", r"nvidia-container-cli|nvml|could not select device driver|libnvidia",
     "the instance has no working NVIDIA driver",
     "image_type: ECS_AL2023_NVIDIA, or an AMI of your own with a driver as new as the image's CUDA needs"),
    ("out-of-memory", r"OOM-killed", "the container had no memory to start in", "raise memory_mib"),
    ("command-not-executable", r"permission denied|exec format error", "the command cannot be run",
     "give it execute permission in the image; a binary must be for the instance's CPU"),
    ("command-not-found", r"executable file not found|no such file or directory|No such file or directory"
     r"|no command specified",
     "the command is not in the image", "check the command's name, and that the image has it on its PATH"),
)  # fmt: skip


def container(facts: Facts) -> Explanation | None:
    """The container was not made or not started."""
    last = _last(facts)
    if last is None or last.exit_code is not None or not last.reason or "OutOfMemory" in last.reason:
        return None
    if _SECRETS.search(last.reason):
        return _secrets(last.reason)
    for cause, words, reason, next_step in _STARTS:
        if re.search(words, last.reason):
            return because(cause, reason, (last.reason,), next_step)
    return because(
        "not-started", "the container was not started", (last.reason,), "the reason is ECS's own and says what failed"
    )


def host(facts: Facts) -> Explanation | None:
    """The instance went away under the job."""
    last = _last(facts)
    if last is None or not last.status_reason.startswith(HOST):
        return None
    lost = [each for each in facts.attempts if each.status_reason.startswith(HOST)]
    place = next((each for each in facts.environments() or () if last.cluster and each.cluster == last.cluster), None)
    rows = (f"{len(lost)} of {len(facts.attempts)} attempts ended so", last.status_reason)
    if place and place.spot:
        return because(
            "spot-reclaim",
            f"EC2 took the Spot instance back, {_times(len(lost))}, and it was not tried again",
            rows,
            "more retries, checkpoints, or a queue with on-demand capacity; `accel-jobs retry` runs it again",
        )
    return because(
        "host-lost",
        f"the instance under the job went away, {_times(len(lost))}, and it was not tried again",
        rows,
        "`accel-jobs retry` runs it again; retries: n in the job file does so by itself",
    )


def timeout(facts: Facts) -> Explanation | None:
    """An attempt took too long."""
    if TIMED_OUT not in facts.reason and not any(TIMED_OUT in each.status_reason for each in facts.attempts[-1:]):
        return None
    limit = part(facts.job, "timeout").get("attemptDurationSeconds")
    evidence = (f"timeout_s is {limit}" if limit else TIMED_OUT, *outcome.last(facts.lines()))
    return because(
        "timeout", "an attempt ran longer than its timeout", evidence, "raise timeout_s, or make checkpoints"
    )


def out_of_memory(facts: Facts) -> Explanation | None:
    """The kernel ended the container for its memory, as ECS tells."""
    last = _last(facts)
    if last is None or "OutOfMemory" not in last.reason:
        return None
    code = f"exit code {last.exit_code}" if last.exit_code is not None else "no exit code"
    return because(
        "out-of-memory",
        f"the container used more than the {facts.size.memory_mib} MiB of the host's memory that the job asks for",
        (last.reason, code),
        "raise memory_mib, or use fewer data loader workers; the GPU's memory has nothing to do with it",
    )


def command(facts: Facts) -> Explanation | None:
    """The command ended by itself."""
    last = _last(facts)
    if last is None or last.exit_code is None:
        return None
    size = facts.size
    shm = part(facts.container, "linuxParameters").get("sharedMemorySize")
    found = outcome.explain(outcome.Ended(last.exit_code, facts.lines(), size.gpus, size.memory_mib, shm))
    return because(found.cause, found.reason, found.evidence, found.next_step) if found else None


def _last(facts: Facts) -> Attempt | None:
    return facts.attempts[-1] if facts.attempts else None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


FAILURE_CAUSES = (
    time_limit, dependency_failed, stopped, refused, timeout, host, image, container, out_of_memory, command,
)  # fmt: skip
"""In the order in which they are looked for; the first that fits is told."""

"""Diagnosis of AWS Batch jobs: rules for failed ones; waiting.py has those for waiting ones. It reads AWS as needed,
cheapest calls first, and changes nothing."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accel.clouds.aws.batch_jobs import describe
from accel.clouds.aws.clients import Clients
from accel.clouds.aws.reader import Reader
from accel.clouds.aws.responses import structure, structures
from accel.diagnostics.errors import CloudRefused, CloudSilent

from ...aws_batch.status import task_counts
from ...base import Explanation, JobRef
from .. import outcome, words
from ..cause import RETRY
from ..engine import Rule, diagnose, judge, of_kind, row
from . import waiting
from .environments import OVER_MAX, TOO_BIG, max_vcpus, too_large
from .facts import PULL, WAITING, AwsFacts
from .gather import Gather

__all__ = ["decide", "explain"]

# Tasks of which state represent an array: while some run, the array runs.
STANDS_FOR = ("RUNNING", "STARTING", "RUNNABLE", "PENDING", "SUBMITTED")
_ATTEMPTS_SHOWN = 3


def explain(
    clients: Clients,
    ref: JobRef,
    elsewhere: Callable[[], Sequence[str]] = tuple,
    now: float | None = None,
) -> Explanation:
    """Look for a missing job in the regions that `elsewhere` returns."""
    now = time.time() if now is None else now
    rows = describe(clients.batch, [ref.id])
    if not rows:
        return _missing(clients, ref, elsewhere())
    reader = Reader(clients)
    reader.looked["batch:DescribeJobs"] = None
    job, place = _representative(reader, rows[0])
    facts = Gather(reader, job, now).facts()
    explained = diagnose(facts, RULES[facts.status])
    return replace(explained, evidence=(*place, *explained.evidence, *_earlier(facts)))


def decide(facts: AwsFacts) -> Explanation | None:
    return judge(facts, RULES[facts.status])


def _well(facts: AwsFacts) -> Explanation:
    if facts.status == "SUCCEEDED":
        return facts.explanation("succeeded")
    start = int(facts.job.get("startedAt") or 0) / 1000
    return facts.explanation("running", evidence=(f"since {facts.ago(start)}",) if start else ())


def _representative(reader: Reader, job: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the job, or the task of an array or the main node that represents it, and a line that says which."""
    counts = task_counts(job)
    size = structure(job, "arrayProperties").get("size")
    if size and counts and job["status"] in ("PENDING", "FAILED"):
        failed = job["status"] == "FAILED"
        status = "FAILED" if failed else next((each for each in STANDS_FOR if counts.get(each)), "")
        if status and counts.get(status):
            rows = reader.ask(
                "batch:ListJobs",
                lambda batch: batch.list_jobs(arrayJobId=job["jobId"], jobStatus=status)["jobSummaryList"],
            )
            # The array itself is PENDING while its tasks wait and run.
            task = _one(reader, min((row["jobId"] for row in rows), key=_index)) if rows else None
            if task:
                place = f"{counts[status]} of {size} tasks are {status}; this is task {_index(task['jobId'])}"
                return task, (place,)
    main = structure(job, "nodeProperties").get("mainNode")
    if main is not None and job["status"] == "FAILED" and not structures(job, "attempts"):
        node = _one(reader, f"{job['jobId']}#{main}")
        if node:
            return node, (f"of its nodes this is the main one, {main}",)
    return job, ()


def _index(job_id: str) -> int:
    return int(job_id.rpartition(":")[2])


def _one(reader: Reader, job_id: str) -> Mapping[str, Any] | None:
    answer = reader.ask("batch:DescribeJobs", lambda batch: batch.describe_jobs(jobs=[job_id]))
    rows = structures(answer or {}, "jobs")
    return rows[0] if rows else None


def _earlier(facts: AwsFacts) -> tuple[str, ...]:
    before = facts.attempts[:-1] if facts.status in ("FAILED", "SUCCEEDED") else facts.attempts
    if not before:
        return ()
    rows = [f"{each.reason or each.status_reason}{each.code_text}" for each in before[-_ATTEMPTS_SHOWN:]]
    return (f"{len(before)} earlier attempts; the last: {' | '.join(rows)}",)


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
            evidence = (f"{clients.region}: no such job", f"{region}: {found[0]['jobName']}, {found[0]['status']}")
            step = f"`accel-jobs explain {right}`"
            return AwsFacts.explanation(
                "wrong-region", f"the job is in {region}, not in {clients.region}", evidence, step
            )
    evidence = tuple(f"{region}: no such job" for region in (clients.region, *asked))
    explained = AwsFacts.explanation(
        "unknown-job",
        f"AWS Batch in {clients.region} knows no job {ref.id}",
        evidence,
        "check the reference and AWS_PROFILE (another account has other jobs); Batch forgets a job about seven days "
        "after its end",
    )
    return replace(explained, unread=tuple(unread))


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

# https://github.com/nextflow-io/nextflow/pull/2146
ROLE = row(
    "service-account",
    r"unable to assume the role",
    "ECS may not use the role that the job runs as",
    "the role must be there, and its trust policy must name ecs-tasks.amazonaws.com; then submit it again",
    "start",
)

# https://docs.aws.amazon.com/AmazonECS/latest/developerguide/cannot-start-container.html
STARTS = (
    ROLE,
    row(
        "log-group-missing",
        r"log group does not exist|log stream.*ResourceNotFoundException",
        "the job's log group does not exist",
        "`pulumi up` makes the stack's log group again",
        "start",
    ),
    row(
        "log-group-forbidden",
        r"log(ging driver| stream).*(AccessDenied|not authorized)",
        "the job's log group may not be written to",
        "give the instance role (or the execution role) logs:CreateLogStream and logs:PutLogEvents",
        "start",
    ),
    # https://github.com/seqeralabs/nf-tower/issues/305
    row(
        "no-egress",
        r"log stream.*(RequestError|time-?out|no such host|context deadline|connection re)",
        "the instance cannot reach CloudWatch Logs from its subnet",
        "a NAT gateway, or a VPC endpoint for logs",
        "start",
    ),
    # https://github.com/moby/moby/issues/42088
    row(
        "not-started",
        r"log stream.*(Throttling|Rate exceeded)",
        "CloudWatch Logs allowed no more log streams just now, so the container was not started",
        RETRY,
        "start",
    ),
    # https://github.com/aws/amazon-ecs-cli/issues/1083, https://github.com/ydamni/cloud-is-free/issues/3
    row("mount", r"EFS utils|CannotCreateVolume|mount\.nfs", kind="start"),
    *of_kind("start", words.MOUNT),
    *of_kind("start", *words.START),
    row("not-started", r"", kind="start"),
)
"""Words about a container that was not created or not started."""

_SECRETS = re.compile(
    r"pull secrets or registry auth|[Ff]etching secret data|retrieve secrets? from|must also specify a value for "
    r"'executionRoleArn'|can't find the specified secret|invalid ssm parameters|[Ii]nvalid parameters: "
)


def _time_limit(facts: AwsFacts) -> Explanation | None:
    limited = TIME_LIMIT.search(facts.reason)
    if not limited:
        return None
    code = limited[1]
    why, next_step = MEANINGS.get(code, (code, "docs/explain.md has the reasons"))
    queue = facts.queue()
    limit = queue.limits.get(code) if queue else None
    setting = (f"queue {queue.name} cancels for this reason after {limit} s",) if queue and limit else ()
    same = too_large(facts) if code == TOO_BIG else max_vcpus(facts) if code == OVER_MAX else None
    more = same.evidence if same else ()
    next_step = same.next_step if same else next_step
    evidence = (facts.reason, *setting, *more)
    return facts.explanation("time-limit", f"the queue cancelled the job: {why}", evidence, next_step)


def _stopped(facts: AwsFacts) -> Explanation | None:
    word = "terminated" if facts.job.get("isTerminated") else "cancelled" if facts.job.get("isCancelled") else ""
    if not word:
        return None
    return facts.explanation("stopped", f"the job was {word}: {facts.reason or 'no reason was given'}", (facts.reason,))


def _dependency_failed(facts: AwsFacts) -> Explanation | None:
    if not facts.reason.startswith("Dependent Job failed"):
        return None
    failed = [one for one in facts.depends_on() or () if one.status == "FAILED"]
    rows = tuple(f"{facts.reference(one.id, one.name)}: FAILED" for one in failed[:_OTHERS_SHOWN])
    first = facts.reference(failed[0].id) if failed else "REF"
    return facts.explanation(
        "dependency-failed",
        "a job that it depends on has failed",
        rows or (facts.reason,),
        f"`accel-jobs explain {first}` says why; then submit both again",
    )


def _refused(facts: AwsFacts) -> Explanation | None:
    if facts.attempts or not facts.reason or structure(facts.job, "arrayProperties").get("size"):
        return None
    if PULL.search(facts.reason):
        return _pull(facts, facts.reason)
    if _SECRETS.search(facts.reason):
        return _secret(facts, facts.reason)
    if ROLE.fits(facts.reason):
        return ROLE.explanation(facts, facts.reason)
    step = "the reason is AWS's own and names the field"
    return facts.explanation("refused", "ECS refused the task", (facts.reason,), step)


def _timeout(facts: AwsFacts) -> Explanation | None:
    if TIMED_OUT not in facts.reason and (facts.last is None or TIMED_OUT not in facts.last.status_reason):
        return None
    limit = structure(facts.job, "timeout").get("attemptDurationSeconds")
    evidence = (f"timeout_s is {limit}" if limit else TIMED_OUT, *outcome.last(facts.lines()))
    return facts.explanation("timeout", "an attempt ran longer than its timeout", evidence)


def _host(facts: AwsFacts) -> Explanation | None:
    last = facts.last
    if last is None or not last.status_reason.startswith(HOST):
        return None
    lost = [each for each in facts.attempts if each.status_reason.startswith(HOST)]
    place = next((each for each in facts.environments() or () if last.cluster and each.cluster == last.cluster), None)
    rows = (f"{len(lost)} of {len(facts.attempts)} attempts ended so", last.status_reason)
    if place and place.spot:
        reason = f"EC2 took the Spot instance back, {_times(len(lost))}, and it was not tried again"
        step = f"more retries, checkpoints, or a queue with on-demand capacity; {RETRY}"
        return facts.explanation("preempted", reason, rows, step)
    reason = f"the instance under the job went away, {_times(len(lost))}, and it was not tried again"
    return facts.explanation("host-lost", reason, rows, f"{RETRY}; retries: n in the job file does so by itself")


def _image(facts: AwsFacts) -> Explanation | None:
    return next((_pull(facts, reason) for reason in facts.texts("pull")), None)


def _pull(facts: AwsFacts, reason: str) -> Explanation:
    evidence = (f"image {facts.container.get('image')}", reason)
    for each in words.PULL:
        if each.fits(reason):
            return facts.explanation(each.cause, each.reason, evidence, each.next_step)
    if facts.image_exists() is False:
        return facts.explanation("image-missing", "ECR has no such image or tag", evidence)
    there = "ECR has it" if facts.image_exists() else ""
    if words.PULL_DENIED.fits(reason):
        return facts.explanation("image-forbidden", "" if there else words.PULL_DENIED.reason, (*evidence, there))
    return facts.explanation("image-pull", evidence=(*evidence, there))


def _secret_of_attempt(facts: AwsFacts) -> Explanation | None:
    return next((_secret(facts, reason) for reason in facts.texts("start") if _SECRETS.search(reason)), None)


def _secret(facts: AwsFacts, reason: str) -> Explanation:
    denied = re.search(r"AccessDenied|not authorized|executionRoleArn", reason)
    missing = re.search(r"ResourceNotFound|can't find|[Ii]nvalid (ssm )?parameters|not exist", reason)
    how, step = (
        (
            "the execution role may not read it",
            "give the execution role secretsmanager:GetSecretValue, ssm:GetParameters",
        )
        if denied
        else ("there is none of that name", "create the secret, or correct its name in the job")
        if missing
        else ("AWS gives another reason", "the reason names the secret and what went wrong with it")
    )
    return facts.explanation("secret-unreadable", f"a secret of the job cannot be read: {how}", (reason,), step)


def _out_of_memory(facts: AwsFacts) -> Explanation | None:
    last = facts.last
    if last is None or "OutOfMemory" not in last.reason:
        return None
    code = f"exit code {last.exit_code}" if last.exit_code is not None else "no exit code"
    return facts.explanation(
        "out-of-memory",
        f"the container used more than the {facts.size.memory_mib} MiB of the host's memory that the job asks for",
        (last.reason, code),
        "raise memory_mib, or use fewer data loader workers; the GPU's memory has nothing to do with it",
    )


def _program(facts: AwsFacts) -> Explanation | None:
    last = facts.last
    if last is None or last.exit_code is None:
        return None
    size = facts.size
    shm = structure(facts.container, "linuxParameters").get("sharedMemorySize")
    ended = outcome.FailedAttempt(last.exit_code, facts.lines(), size.gpus, size.memory_mib, shm)
    return outcome.program_failure(facts, ended)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


FAILED: tuple[Rule[AwsFacts], ...] = (
    _time_limit, _dependency_failed, _stopped, _refused, _timeout, _host, _image, _secret_of_attempt, *STARTS,
    _out_of_memory, _program,
)  # fmt: skip

RULES: dict[str, Sequence[Rule[AwsFacts]]] = {
    **dict.fromkeys(WAITING, waiting.RULES),
    "RUNNING": (_well,),
    "SUCCEEDED": (_well,),
    "FAILED": FAILED,
}

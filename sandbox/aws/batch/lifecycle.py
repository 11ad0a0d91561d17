"""Transitions of a job between states, and what they do to its array and to the jobs that depend on it."""

from .. import events
from .capacity import terminate
from .instances import Instance
from .state import Batch, Document, Job, Outcome, require

STATES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")


def move(batch: Batch, job: Job, status: str, reason: str | None = None) -> None:
    """Set the job's `status` and statusReason, count it in its array, and move its nodes along."""
    if job.parent:
        summary = job.parent.document["arrayProperties"]["statusSummary"]
        summary[job.status] -= 1
        summary[status] += 1
    job.document["status"] = status
    job.document.pop("statusReason", None)
    if reason:
        job.document["statusReason"] = reason
    job.queue.runnable.pop(job.id, None)
    job.blocked_since = None
    if status == "RUNNABLE" and job.whole is None:
        job.queue.runnable[job.id] = job
    for node in job.nodes:
        if status in STATES[:3] or (job.ended and not node.ended):
            move(batch, node, status, reason)
    if job.ended:
        job.document["stoppedAt"] = batch.world.ms()
        batch.just_ended.append(job)
    events.send_job_change(batch.account_id, batch.region_name, job.document)
    batch.world.lock.notify_all()


def admit(batch: Batch, job: Job) -> None:
    """Let a job whose dependencies are met proceed. An array spawns its children."""
    size = job.document.get("arrayProperties", {}).get("size")
    if size is None:
        move(batch, job, "RUNNABLE")
        return
    move(batch, job, "PENDING")
    sequential = any(row.get("type") == "SEQUENTIAL" for row in job.document["dependsOn"])
    pairs = [row["jobId"] for row in job.document["dependsOn"] if row.get("type") == "N_TO_N"]
    job.document["arrayProperties"]["statusSummary"] |= {"SUBMITTED": size}
    for index in range(size):
        document = {
            **job.document,
            "jobId": f"{job.id}:{index}",
            "jobArn": f"{job.document['jobArn']}:{index}",
            "arrayProperties": {"index": index},
            "attempts": [],
            "status": "SUBMITTED",
            "createdAt": batch.world.ms(),
        }
        child = Job(job.queue, document, job.container, job.needs, job.overrides, parent=job)
        job.children.append(child)
        batch.jobs[child.id] = child
        waits = [f"{other}:{index}" for other in pairs]
        if sequential and index:
            waits.append(f"{job.id}:{index - 1}")
        wait_for(batch, child, waits)


def wait_for(batch: Batch, job: Job, job_ids: list[str]) -> None:
    for job_id in job_ids:
        other = batch.jobs.get(job_id)
        if other is not None and other.status == "FAILED":
            move(batch, job, "FAILED", "Dependent Job failed")
            return
        if other is None or not other.ended:
            job.waiting_on.add(job_id)
            batch.dependents.setdefault(job_id, []).append(job)
    if job.waiting_on:
        move(batch, job, "PENDING")
    else:
        admit(batch, job)


def settle(batch: Batch) -> None:
    """Report ended jobs to their arrays and dependents. A loop, since a chain can be 10,000 jobs long."""
    while batch.submitted:
        job = batch.submitted.popleft()
        # SEQUENTIAL and N_TO_N hold each child, see admit; the others hold the whole job.
        whole = [row["jobId"] for row in job.document["dependsOn"] if "type" not in row]
        if not job.ended:
            wait_for(batch, job, whole)
    while batch.just_ended:
        job = batch.just_ended.pop()
        for other in batch.dependents.pop(job.id, []):
            if other.ended:
                continue
            other.waiting_on.discard(job.id)
            if other.cancelled is not None:
                if not other.waiting_on:
                    move(batch, other, "FAILED", other.cancelled)
            elif job.status == "FAILED":
                move(batch, other, "FAILED", "Dependent Job failed")
            elif not other.waiting_on:
                admit(batch, other)
        if (parent := job.parent) and not parent.ended:
            summary = parent.document["arrayProperties"]["statusSummary"]
            if summary["SUCCEEDED"] + summary["FAILED"] == len(parent.children):
                if summary["FAILED"]:
                    move(batch, parent, "FAILED", "Array Child Job failed")
                else:
                    move(batch, parent, "SUCCEEDED")


def stop(batch: Batch, job: Job, reason: str, flag: str) -> None:
    """Cancel or terminate a job, as `flag` says. Cancelling does not affect STARTING and RUNNING jobs."""
    if job.ended:
        return
    if job.children:
        job.document[flag] = True
        for child in job.children:
            stop(batch, child, reason, flag)
    elif job.waiting_on and job.queue.document["status"] != "DELETING":
        # https://docs.aws.amazon.com/batch/latest/APIReference/API_CancelJob.html: after its dependencies.
        job.document[flag] = True
        job.cancelled = reason
    elif not job.active:
        job.document[flag] = True
        move(batch, job, "FAILED", reason)
    elif flag == "isTerminated":
        job.document[flag] = True
        for one in job.nodes or [job]:
            if one.run:
                one.run.stop(reason, retry=False)


def finish(batch: Batch, job: Job) -> None:
    """Record the end of an attempt, and retry the job or end it."""
    run = job.run
    assert run and run.outcome
    attempt: Document = {"container": run.container, "statusReason": run.outcome.status_reason}
    attempt |= {"startedAt": run.started_at} if run.started_at else {}
    attempt |= {"stoppedAt": batch.world.ms(), "taskProperties": []}
    job.document["attempts"].append(attempt)
    if share := job.document.get("shareIdentifier"):
        job.queue.used.append((share, job.needs.vcpus, run.placed_at, batch.world.now()))
    run.instance.release(job.id, job.needs, run.gpus)
    if not run.instance.jobs:
        terminate(batch, run.environment, run.instance)
    del batch.running[job.id]
    job.run = None
    if job.whole is None:
        _end(batch, job, run.outcome)
        return
    move(batch, job, "SUCCEEDED" if run.outcome.succeeded else "FAILED", run.outcome.status_reason)
    whole = job.whole
    if job is whole.main:
        whole.outcome = run.outcome
        whole.document["attempts"].append(attempt)
        for node in whole.nodes:
            if node.run:
                node.run.stop("Main node has ended", retry=False)
    # AWS starts the next attempt on instances that are free again.
    if whole.outcome and not whole.active:
        outcome, whole.outcome = whole.outcome, None
        _end(batch, whole, outcome)


def _end(batch: Batch, job: Job, outcome: Outcome) -> None:
    if outcome.succeeded:
        move(batch, job, "SUCCEEDED", outcome.status_reason)
    elif outcome.retry and not job.document.get("isTerminated") and _retried(job):
        move(batch, job, "RUNNABLE")
    else:
        move(batch, job, "FAILED", outcome.status_reason)


def _retried(job: Job) -> bool:
    strategy = job.document.get("retryStrategy", {})
    if len(job.document["attempts"]) >= strategy.get("attempts", 1):
        return False
    last = job.document["attempts"][-1]
    seen = {
        "onExitCode": str(last["container"].get("exitCode", "")),
        "onReason": last["container"].get("reason", ""),
        "onStatusReason": last["statusReason"],
    }
    for rule in strategy.get("evaluateOnExit", []):
        if all(_matches(rule[key], text) for key, text in seen.items() if key in rule):
            return rule["action"].upper() == "RETRY"
    # https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html: without a match, the job is retried.
    return True


def _matches(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def reclaim(batch: Batch, job_id: str) -> str:
    job = batch.running.get(job_id)
    require(job, f"{job_id} is not running")
    assert job and job.run
    lose(batch, job.run.instance)
    return job.run.instance.id


def lose(batch: Batch, instance: Instance) -> None:
    for job in [batch.running[job_id] for job_id in instance.jobs if job_id in batch.running]:
        if job.run:
            job.run.stop(f"Host EC2 (instance {instance.id}) terminated.", retry=True)

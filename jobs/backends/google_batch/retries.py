"""Retry policies: which failures of a task are retried.

Batch has one count for each task, and one list of exit codes that it retries, or does not retry; codes of its own
report what happened to the VM. Sources: https://docs.cloud.google.com/batch/docs/automate-task-retries,
https://docs.cloud.google.com/batch/docs/troubleshooting#reserved-exit-codes

retries   lost_retries   what is retried
none, 0   none           lost tasks, three times; none with several nodes
none, 0   m              m lost tasks; a failure is final
n         none           n of both kinds
n         0              n failures; a lost task is final
n         m              n + m of both kinds

A task that ran out of its time is never retried, nor is a command that cannot be run. A task is also lost if it ends
with an exit code that says so (accel/rules/jobs/exit_codes.py), unless the job file uses that code otherwise.
"""

from typing import Any

from accel.rules.batch.jobs import LOST, OUT_OF_TIME, lifecycle
from accel.rules.jobs.exit_codes import CANNOT_RUN

from ...model.blocks_google import GoogleBatch
from ...model.job import Job
from ..vm.agent_spec import LOST_RETRIES


def lost_retries(job: Job) -> int | None:
    """Return our default if a job file sets no retries: none for several nodes, as one cannot go on alone."""
    if job.lost_retries is None and not job.retries:
        return LOST_RETRIES if job.nodes == 1 else 0
    return job.lost_retries


def exit_codes(block: GoogleBatch) -> tuple[list[int], list[int]]:
    """Return the exit codes that the job file retries, and those that it treats as final."""
    retried = [code for each in block.exit_codes if each.action == "retry" for code in each.codes]
    return retried, [code for each in block.exit_codes if each.action == "fail" for code in each.codes]


def of_job(job: Job, block: GoogleBatch) -> dict[str, Any]:
    lost = lost_retries(job)
    count = (job.retries or 0) + (lost or 0)
    if not count:
        return {"maxRetryCount": 0}
    retried, failed = exit_codes(block)
    if lost != 0 and (retried or not job.retries):
        retried += [code for code in LOST if code not in failed]
    failed += [OUT_OF_TIME, *CANNOT_RUN, *(LOST if lost == 0 else ())]
    return {"maxRetryCount": count, "lifecyclePolicies": [lifecycle(retried, failed)]}

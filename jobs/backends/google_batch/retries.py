"""Which failures of a task are tried again.

Batch has one count for each task, and one list of exit codes that it retries, or does not retry; codes of its own tell
what became of the VM. Sources: https://docs.cloud.google.com/batch/docs/automate-task-retries,
https://docs.cloud.google.com/batch/docs/troubleshooting#reserved-exit-codes

retries   lost_retries   what is tried again
none, 0   none           the lost, three times; of several nodes none
none, 0   m              m of the lost; a failure is final
n         none           n of both kinds
n         0              n failures; a lost task is final
n         m              n + m of both kinds
A task that ran out of its time is never tried again, nor a command that cannot be run. Lost is also a task that ends
with an exit code which says so (accel/rules/jobs/exit_codes.py), unless the job file has another use for it.
"""

from typing import Any

from accel.rules.batch.jobs import LOST, OUT_OF_TIME, lifecycle
from accel.rules.jobs.exit_codes import CANNOT_RUN

from ...model.blocks_google import GoogleBatch
from ...model.job import Job
from ..vm.agent_spec import LOST_RETRIES


def lost_retries(job: Job) -> int | None:
    """The job file's, or ours where it says nothing of retries: one of several nodes cannot go on alone."""
    if job.lost_retries is None and not job.retries:
        return LOST_RETRIES if job.nodes == 1 else 0
    return job.lost_retries


def exit_codes(block: GoogleBatch) -> tuple[list[int], list[int]]:
    """Those that the job file has retried, and those that it has final."""
    retried = [code for each in block.exit_codes if each.action == "retry" for code in each.codes]
    return retried, [code for each in block.exit_codes if each.action == "fail" for code in each.codes]


def of_job(job: Job, block: GoogleBatch) -> dict[str, Any]:
    """The part of a task's spec that says so."""
    lost = lost_retries(job)
    count = (job.retries or 0) + (lost or 0)
    if not count:
        return {"maxRetryCount": 0}
    retried, failed = exit_codes(block)
    if lost != 0 and (retried or not job.retries):
        retried += [code for code in LOST if code not in failed]
    failed += [OUT_OF_TIME, *CANNOT_RUN, *(LOST if lost == 0 else ())]
    return {"maxRetryCount": count, "lifecyclePolicies": [lifecycle(retried, failed)]}

"""`jobs submit --then-to`: a job that its target preempted continues on another target, once. The second job's key is
derived from the first job's reference. So there is one second job, however many clients wait for the first, and however
often the command is given again with the same --key."""

from typing import TYPE_CHECKING

from accel.console.errors import say, warn
from accel.console.options import Settings
from accel.diagnostics.errors import BadInput, Interrupted, WaitedTooLong

from ..backends.registry import of_target
from ..model import keys
from . import waiting
from .accrued_cost import size_of
from .allowances.submitter import reserve
from .deadline.follow import tries
from .dispatch import submit_one
from .waiting import describe_status, wait_for, wait_to_end

if TYPE_CHECKING:
    from ..backends.base import Backend, JobRef, Request
    from ..model.job import Job
    from .dispatch import Receipts
    from .targets import Targets
    from .waiting import FollowLog

WORD = "then"
"""Text that derives the second job's key, with the reference of the preempted job."""


def check(job: "Job", known: "Targets", then_to: str, first: str) -> None:
    """Raise BadInput where the job could not run on the second target, before anything is submitted."""
    if then_to == first:
        raise BadInput(f"--then-to: {then_to} is where the job is submitted to; name another target")
    if job.tasks > 1:
        raise BadInput(f"--then-to: is for a job of one task, and {job.name} has {job.tasks}")
    _request(job, known, then_to, "0" * 64)


def run(
    job: "Job",
    ref: "JobRef",
    backend: "Backend",
    known: "Targets",
    then_to: str,
    caller: str,
    follow_log: "FollowLog | None",
    timeout: int | None,
    settings: Settings,
    receipts: "Receipts",
) -> None:
    """Wait for the job, and for its successor. Raises JobFailed; Interrupted and WaitedTooLong say how to go on."""
    try:
        if follow_log:
            follow_log(backend, ref)
        (status,) = wait_for([(ref, backend)], timeout)
    except (Interrupted, WaitedTooLong) as stopped:
        stopped.hint = f"the same command with --key {caller} continues to wait, and falls back to {then_to} if needed"
        raise
    if status.taken is None:
        waiting.end([status])
        return
    say(f"{ref}: {describe_status(status)}: {status.taken}{tries(status)}")
    elsewhere, request = _request(job, known, then_to, keys.submission_key(str(ref), WORD))
    for warning in request.warnings:
        warn(warning, settings)
    with reserve([(job, (elsewhere, request))], known, settings) as submitter:
        submitter.sizes = {request.key: size_of(job)}
        again = submit_one(elsewhere, request, caller, settings, submitter, receipts)
    wait_to_end([(again, elsewhere)], follow_log, timeout)


def _request(job: "Job", known: "Targets", then_to: str, key: str) -> "tuple[Backend, Request]":
    backend = of_target(*known.choose(then_to))
    return backend, backend.render(job, keys.platform_name(job.name, key), key)

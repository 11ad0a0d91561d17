"""Which failures are tried again.

Batch looks at the rules in order and, when none matches, tries again; the last rule therefore says EXIT where only some
failures shall be tried again. A cancelled or terminated job and a timed-out attempt are never tried again.
Source: https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
"""

from typing import Any

from accel.rules.aws.retries import INFRASTRUCTURE, MAX_RETRY_RULES
from accel.rules.jobs.exit_codes import CANNOT_RUN

DEFAULT_ATTEMPTS = 3
"""Of a definition of the job's own. Lost hosts and failed pulls cost no result, so two more are worth it."""

NOT_EXECUTABLE, NOT_FOUND = ({"action": "EXIT", "onExitCode": str(code)} for code in CANNOT_RUN)

NOT_PULLED = {"action": "RETRY", "onReason": "CannotPullContainer*"}
"""What others write beside "Task failed to start", of which a failed pull is one."""

_API = {"on_status_reason": "onStatusReason", "on_reason": "onReason", "on_exit_code": "onExitCode"}


def infrastructure_only(attempts: int = DEFAULT_ATTEMPTS) -> dict[str, Any]:
    """A lost host, a failed pull, a failed agent and a command that stopped since its host goes are tried again;
    whatever else the command does is final."""
    rules = [{_API.get(key, key): value for key, value in rule.items()} for rule in INFRASTRUCTURE]
    return {"attempts": attempts, "evaluateOnExit": rules}


def of_job(failures: int | None, lost: int | None) -> dict[str, Any] | None:
    """The strategy for `retries` and `lost_retries`; None where a job has neither, so that the definition's stands.

    Batch has one count. Where only one of the two is asked for, the rules make it that one's. Where both are, they are
    added up: none takes from the other, and what one leaves the other may use.
    """
    if lost is None:
        return None if failures is None else any_failure(failures)
    if not failures:
        return infrastructure_only(1 + lost)
    return any_failure(failures + lost) if lost else failures_only(failures)


def failures_only(retries: int) -> dict[str, Any]:
    """n more attempts after a command that failed, and none after what the cloud took away."""
    taken = [{**rule, "action": "EXIT"} for rule in infrastructure_only()["evaluateOnExit"][:-1]]
    return {"attempts": 1 + retries, "evaluateOnExit": [*taken, NOT_FOUND][:MAX_RETRY_RULES]}


def any_failure(retries: int) -> dict[str, Any]:
    """`retries: n` of a job file: n more attempts after whatever failure, except a command that cannot be run."""
    if retries == 0:
        return {"attempts": 1}
    return {"attempts": 1 + retries, "evaluateOnExit": [NOT_EXECUTABLE, NOT_FOUND]}

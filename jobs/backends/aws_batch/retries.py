"""Retry strategies: which failures are retried.

Batch evaluates the rules in order and, if none matches, retries. The last rule therefore says EXIT where only some
failures are to be retried. A cancelled or terminated job and a timed-out attempt are never retried. Source:
https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
"""

from typing import Any

from accel.rules.aws.retries import INFRASTRUCTURE, MAX_RETRY_RULES
from accel.rules.jobs.exit_codes import CANNOT_RUN

DEFAULT_ATTEMPTS = 3
"""Attempts of a definition of the job's own. Lost hosts and failed pulls cost no result, so two more are worth it."""

NOT_EXECUTABLE, NOT_FOUND = ({"action": "EXIT", "onExitCode": str(code)} for code in CANNOT_RUN)

NOT_PULLED = {"action": "RETRY", "onReason": "CannotPullContainer*"}
"""Rule for failed pulls that report something other than "Task failed to start"."""

_API = {"on_status_reason": "onStatusReason", "on_reason": "onReason", "on_exit_code": "onExitCode"}


def infrastructure_only(attempts: int = DEFAULT_ATTEMPTS) -> dict[str, Any]:
    """Retry after a lost host, a failed pull, a failed agent and a command that stopped because its host goes away. Any
    other end of the command is final."""
    rules = [{_API.get(key, key): value for key, value in rule.items()} for rule in INFRASTRUCTURE]
    return {"attempts": attempts, "evaluateOnExit": rules}


def of_job(failures: int | None, lost: int | None) -> dict[str, Any] | None:
    """Return the strategy for `retries` and `lost_retries`; None if a job has neither, so that the definition's
    applies.

    Batch has one count. If only one of the two is given, the rules reserve the count for it. If both are, the count is
    their sum: neither takes from the other, and either may use what the other leaves.
    """
    if lost is None:
        return None if failures is None else any_failure(failures)
    if not failures:
        return infrastructure_only(1 + lost)
    return any_failure(failures + lost) if lost else failures_only(failures)


def failures_only(retries: int) -> dict[str, Any]:
    """Allow that many more attempts after a failed command, and none after preemption."""
    taken = [{**rule, "action": "EXIT"} for rule in infrastructure_only()["evaluateOnExit"][:-1]]
    return {"attempts": 1 + retries, "evaluateOnExit": [*taken, NOT_FOUND][:MAX_RETRY_RULES]}


def any_failure(retries: int) -> dict[str, Any]:
    """Allow that many more attempts after any failure, except a command that cannot be run: `retries: n` of a job
    file."""
    if retries == 0:
        return {"attempts": 1}
    return {"attempts": 1 + retries, "evaluateOnExit": [NOT_EXECUTABLE, NOT_FOUND]}

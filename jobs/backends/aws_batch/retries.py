"""Retry strategies: which failures are retried.

Batch evaluates the rules in order and, if none matches, retries: the last rule says EXIT where only some failures are
to be retried. It never retries a cancelled or terminated job, or a timed-out attempt. Source:
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
    """Retry lost hosts, failed pulls or agents, and commands that stopped because the host goes away; no other end."""
    rules = [{_API.get(key, key): value for key, value in rule.items()} for rule in INFRASTRUCTURE]
    return {"attempts": attempts, "evaluateOnExit": rules}


def of_job(failures: int | None, lost: int | None) -> dict[str, Any] | None:
    """Return None if a job has neither `retries` nor `lost_retries`, so that the definition's strategy applies. Batch
    has one count. For one of the two alone, the rules reserve it; for both it is their sum: neither takes from the
    other, and either may use what the other leaves."""
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
    """Allow that many more attempts after any failure but a command that cannot be run: `retries: n` of a job file."""
    if retries == 0:
        return {"attempts": 1}
    return {"attempts": 1 + retries, "evaluateOnExit": [NOT_EXECUTABLE, NOT_FOUND]}

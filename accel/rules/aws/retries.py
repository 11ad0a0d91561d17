"""Attempts, retry rules and timeout of a job definition or of one job."""

import re
from collections.abc import Mapping, Sequence

from accel.diagnostics.findings import Finding
from accel.rules.jobs import exit_codes
from accel.rules.table import rule

ATTEMPTS = rule("aws.retry.attempts")
RULE_COUNT = rule("aws.retry.rule-count")
NEEDS_ATTEMPTS = rule("aws.retry.needs-attempts")
CONDITION = rule("aws.retry.condition")
NO_CATCH_ALL = rule("aws.retry.no-catch-all")
ONE_COUNT = rule("aws.retry.one-count")
TIMEOUT = rule("aws.retry.timeout")

MAX_ATTEMPTS = 10
MAX_RETRY_RULES = 5
MIN_TIMEOUT_S = 60
INFRASTRUCTURE: tuple[Mapping[str, str], ...] = (
    # Reclaimed Spot instances and lost hosts say "Host EC2 (instance i-...) terminated.".
    {"action": "RETRY", "on_status_reason": "Host EC2*"},
    # Also for an image that could not be pulled: https://github.com/nextflow-io/nextflow/issues/5099
    {"action": "RETRY", "on_status_reason": "Task failed to start"},
    {"action": "RETRY", "on_reason": "AGENT"},
    # A command that was notified of the reclaim has ended by itself before its host is gone.
    {"action": "RETRY", "on_exit_code": str(exit_codes.STOPPED)},
    {"action": "EXIT", "on_reason": "*"},
)
"""Rules that retry failures of the infrastructure, but never of the command: all five that a strategy may have.
Sources: https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html
https://aws.amazon.com/blogs/compute/introducing-retry-strategies-for-aws-batch/"""

CONDITIONS = ("on_status_reason", "on_reason", "on_exit_code")
_PATTERN = re.compile(r"[A-Za-z0-9.:\s]*\*?")
_EXIT_PATTERN = re.compile(r"[0-9]*\*?")
_PATTERN_MAX = 512


def retries(
    attempts: int | None,
    evaluate_on_exit: Sequence[Mapping[str, str]] = (),
    *,
    attempts_field: str = "attempts",
    field: str = "evaluate_on_exit",
) -> list[Finding]:
    """Check attempts and rules of `action` (RETRY, EXIT) and on_status_reason, on_reason, on_exit_code."""
    found: list[Finding] = []
    if attempts is not None and not 1 <= attempts <= MAX_ATTEMPTS:
        fix = f"write {1 if attempts < 1 else MAX_ATTEMPTS}"
        message = f"must be 1 to {MAX_ATTEMPTS}, is {attempts}"
        found.append(ATTEMPTS.finding(attempts_field, message, fix))
    if not evaluate_on_exit:
        return found
    if attempts is None:
        message = "is missing, and retry rules need it"
        found.append(NEEDS_ATTEMPTS.finding(attempts_field, message, "write the number of attempts, such as 3"))
    if len(evaluate_on_exit) > MAX_RETRY_RULES:
        message = f"has {len(evaluate_on_exit)} rules, of which AWS takes {MAX_RETRY_RULES}"
        found.append(RULE_COUNT.finding(field, message, "join patterns with a trailing *, or drop rules"))
    for i, each in enumerate(evaluate_on_exit):
        found += _rule(f"{field}[{i}]", each)
    last = {key: text for key, text in evaluate_on_exit[-1].items() if text}
    if last.get("on_reason") != "*" or last.get("action", "").upper() != "EXIT" or len(last) != 2:
        message = "has no last rule for the rest, and what no rule matches is retried"
        fix = 'end with {on_reason: "*", action: EXIT}'
        found.append(NO_CATCH_ALL.finding(field, message, fix))
    return found


def counts(failures: int | None, lost: int | None) -> list[Finding]:
    """Check further attempts: after failures of the job itself, and after losses to the cloud."""
    most = MAX_ATTEMPTS - 1
    own, taken = failures or 0, lost or 0
    if own + taken > most:
        field, value = ("retries", own) if lost is None else ("lost_retries", taken)
        beside = f" with {own} retries" if lost is not None and own else ""
        message = f"must be 0 to {max(0, most - (own if beside else 0))}{beside}, is {value}"
        return [ATTEMPTS.finding(field, message, f"AWS Batch makes at most {MAX_ATTEMPTS} attempts")]
    if own and taken:
        message = f"{taken} and {own} retries are one count to AWS Batch: at most {own + taken} more of either"
        fix = "retries: 0 keeps failures of the command from being tried again"
        return [ONE_COUNT.finding("lost_retries", message, fix)]
    return []


def _rule(field: str, condition: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    action = condition.get("action", "")
    if action.upper() not in ("RETRY", "EXIT"):
        found.append(CONDITION.finding(f"{field}.action", f'is "{action}"', "use RETRY or EXIT"))
    given = {key: condition[key] for key in CONDITIONS if condition.get(key)}
    if not given:
        fix = f"give one of {', '.join(CONDITIONS)}"
        found.append(CONDITION.finding(field, "has no condition", fix))
    for key, pattern in given.items():
        allowed = _EXIT_PATTERN if key == "on_exit_code" else _PATTERN
        if len(pattern) > _PATTERN_MAX or not allowed.fullmatch(pattern):
            takes = "digits" if key == "on_exit_code" else "letters, digits, period, colon and space"
            message = f'is "{pattern[:80]}"; AWS takes {_PATTERN_MAX} of {takes}, and * at the end'
            found.append(CONDITION.finding(f"{field}.{key}", message, "cut it before the first other sign, with a *"))
    return found


def timeout(timeout_s: int | None, field: str = "timeout_s") -> list[Finding]:
    """Check the timeout of one attempt; None: none."""
    if timeout_s is None or timeout_s >= MIN_TIMEOUT_S:
        return []
    message = f"must be at least {MIN_TIMEOUT_S} seconds, is {timeout_s}"
    return [TIMEOUT.finding(field, message, f"write {MIN_TIMEOUT_S}")]

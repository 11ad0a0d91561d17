"""Names that AWS Batch accepts."""

import re

from accel.diagnostics.findings import API, Finding, Rule

ENVIRONMENT = Rule(
    "aws.name.environment",
    "reject",
    "A compute environment's name has at most 128 letters, digits, - and _",
    f"{API}API_CreateComputeEnvironment.html",
)
QUEUE = Rule(
    "aws.name.queue",
    "reject",
    "A queue's name has at most 128 letters, digits, - and _",
    f"{API}API_CreateJobQueue.html",
)
DEFINITION = Rule(
    "aws.name.definition",
    "reject",
    "A job definition's name has at most 128 letters, digits, - and _",
    f"{API}API_RegisterJobDefinition.html",
)
JOB = Rule(
    "aws.name.job",
    "reject",
    "A job's name has at most 128 letters, digits, - and _, the first a letter or digit",
    f"{API}API_SubmitJob.html",
)

RULES = (ENVIRONMENT, QUEUE, DEFINITION, JOB)

NAME_MAX = 128
_ANY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def environment(name: str, field: str = "name") -> list[Finding]:
    """Check the name of a compute environment."""
    return _check(ENVIRONMENT, field, name)


def queue(name: str, field: str = "name") -> list[Finding]:
    """Check the name of a job queue."""
    return _check(QUEUE, field, name)


def definition(name: str, field: str = "name") -> list[Finding]:
    """Check the name of a job definition."""
    return _check(DEFINITION, field, name)


def job(name: str, field: str = "name") -> list[Finding]:
    """Check the name of a job."""
    return _check(JOB, field, name)


def _check(rule: Rule, field: str, name: str) -> list[Finding]:
    if (_JOB if rule is JOB else _ANY).fullmatch(name):
        return []
    if len(name) > NAME_MAX:
        return [rule.finding(field, f"has {len(name)} characters, of which AWS takes {NAME_MAX}", "shorten it")]
    better = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "a name"
    first = ", the first a letter or digit" if rule is JOB else ""
    return [rule.finding(field, f'is "{name}"; AWS takes letters, digits, - and _{first}', f"write {better}")]

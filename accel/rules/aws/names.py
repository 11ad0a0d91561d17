"""Names that AWS Batch accepts."""

import re

from accel.diagnostics.findings import Finding, Rule
from accel.rules.table import rule

ENVIRONMENT = rule("aws.name.environment")
DEFINITION = rule("aws.name.definition")
JOB = rule("aws.name.job")

NAME_MAX = 128
_ANY = re.compile(r"[A-Za-z0-9_-]{1,128}")
_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def environment(name: str, field: str = "name") -> list[Finding]:
    return _check(ENVIRONMENT, field, name)


def definition(name: str, field: str = "name") -> list[Finding]:
    return _check(DEFINITION, field, name)


def job(name: str, field: str = "name") -> list[Finding]:
    return _check(JOB, field, name)


def _check(broken: Rule, field: str, name: str) -> list[Finding]:
    if (_JOB if broken is JOB else _ANY).fullmatch(name):
        return []
    if len(name) > NAME_MAX:
        return [broken.finding(field, f"has {len(name)} characters, of which AWS takes {NAME_MAX}", "shorten it")]
    better = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "a name"
    first = ", the first a letter or digit" if broken is JOB else ""
    return [broken.finding(field, f'is "{name}"; AWS takes letters, digits, - and _{first}', f"write {better}")]

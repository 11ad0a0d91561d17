"""Rules, and the findings they make about a value."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from .messages import SHOWN_MAX

Severity = Literal["reject", "translate", "warn"]
_LONG = re.compile(r"\S{200,}")


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken by one value. `field` is relative to what the caller checks (`image_type`, `instance_types[2]`);
    the caller prepends its own path. `message` continues from the field ("is 300; ..."), `fix` says what to write
    instead. `replacement` is the value that a `translate` substitutes; None removes the field."""

    rule: str
    severity: Severity
    field: str
    message: str
    fix: str
    source: str
    replacement: object = None

    @property
    def text(self) -> str:
        return f"{self.message}; {self.fix}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A restriction of a cloud or of this project, and the page that documents it."""

    id: str
    severity: Severity
    summary: str
    source: str

    def finding(self, field: str, message: str, fix: str, replacement: object = None) -> Finding:
        """Cut a value of hundreds of characters in its message."""
        short = _LONG.sub(lambda value: f"{value[0][:SHOWN_MAX]}...", message)
        return Finding(self.id, self.severity, field, short, fix, self.source, replacement)


class AppliedFindings(NamedTuple):
    """Findings sorted by consequence. `replacements` is by field; None means "leave it out"."""

    errors: list[Finding]
    warnings: list[Finding]
    replacements: dict[str, object]


def apply(findings: Iterable[Finding]) -> AppliedFindings:
    """Sort findings: a `reject` is an error, a `translate` has the value to use."""
    applied = AppliedFindings([], [], {})
    for finding in findings:
        if finding.severity == "reject":
            applied.errors.append(finding)
        else:
            applied.warnings.append(finding)
            if finding.severity == "translate":
                applied.replacements[finding.field] = finding.replacement
    return applied


def under(path: str, findings: Iterable[Finding]) -> list[Finding]:
    return [replace(finding, field=f"{path}.{finding.field}") for finding in findings]


def did_you_mean(candidates: list[str], known: Iterable[str]) -> str:
    return f"use {' or '.join(candidates)}" if candidates else f"use one of {', '.join(known)}"

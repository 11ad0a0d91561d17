"""What a rule is, and what it says about a value."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

Severity = Literal["reject", "translate", "warn"]

API = "https://docs.aws.amazon.com/batch/latest/APIReference/"
GUIDE = "https://docs.aws.amazon.com/batch/latest/userguide/"
COMPUTE = "https://docs.cloud.google.com/compute/docs/"
TPU = "https://docs.cloud.google.com/tpu/docs/"
GKE = "https://docs.cloud.google.com/kubernetes-engine/docs/"
VERTEX_TRAINING = (
    "https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/"  # Vertex AI's new name
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule broken by one value.

    `field` is relative to what the caller checks (`image_type`, `instance_types[2]`); the caller puts its own
    path in front. `message` goes on from the field ("is 300; ..."), `fix` says what to write instead.
    `replacement` is the value that a `translate` puts in place; None there leaves the field out.
    """

    rule: str
    severity: Severity
    field: str
    message: str
    fix: str
    source: str
    replacement: object = None

    @property
    def text(self) -> str:
        """Message and fix in one line."""
        return f"{self.message}; {self.fix}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A thing that a cloud (or this house) does not take as written, and the page that says so."""

    id: str
    severity: Severity
    summary: str
    source: str

    def finding(self, field: str, message: str, fix: str, replacement: object = None) -> Finding:
        """This rule, broken by the value of `field`."""
        return Finding(self.id, self.severity, field, message, fix, self.source, replacement)


class AppliedFindings(NamedTuple):
    """Findings sorted by what follows from them. `replacements` is by field, None means "leave it out"."""

    errors: list[Finding]
    warnings: list[Finding]
    replacements: dict[str, object]


def apply(findings: Iterable[Finding], strict: bool = False) -> AppliedFindings:
    """Sorts findings: a `reject` is an error, the others are warnings, and a `translate` gives the value to
    use. `strict` makes everything an error."""
    applied = AppliedFindings([], [], {})
    for finding in findings:
        if strict or finding.severity == "reject":
            applied.errors.append(finding)
        else:
            applied.warnings.append(finding)
            if finding.severity == "translate":
                applied.replacements[finding.field] = finding.replacement
    return applied


def under(path: str, findings: Iterable[Finding]) -> list[Finding]:
    """The findings with `path` in front of their fields."""
    return [replace(finding, field=f"{path}.{finding.field}") for finding in findings]


def did_you_mean(candidates: list[str], known: Iterable[str]) -> str:
    """The fix for a name out of a closed list: the nearest ones, else all of them."""
    return f"use {' or '.join(candidates)}" if candidates else f"use one of {', '.join(known)}"

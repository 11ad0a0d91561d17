"""Rules about a spec together with values from other components."""

from collections.abc import Iterable

import pulumi

from accel.diagnostics.findings import Finding, apply


def enforce(findings: Iterable[Finding]) -> None:
    """Log warnings; raise ValueError with a line per rejected value. Constructors call it before they register."""
    applied = apply(findings)
    if applied.errors:
        raise ValueError("\n".join(f"{finding.field}: {finding.text}" for finding in applied.errors))
    for finding in applied.warnings:
        pulumi.log.warn(f"{finding.field}: {finding.text} [{finding.rule}]")

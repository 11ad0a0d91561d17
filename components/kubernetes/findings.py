"""Rules about a spec together with values from other components."""

from collections.abc import Iterable

import pulumi

from accel.diagnostics.findings import Finding, apply


def enforce(findings: Iterable[Finding]) -> None:
    """Log warnings, and raise ValueError with one line per rejected value. A constructor calls it before it registers
    anything."""
    applied = apply(findings)
    if applied.errors:
        raise ValueError("\n".join(f"{finding.field}: {finding.text}" for finding in applied.errors))
    for finding in applied.warnings:
        pulumi.log.warn(f"{finding.field}: {finding.text} [{finding.rule}]")

"""Rules about what a spec cannot know: they judge it together with what other components hand over."""

from collections.abc import Iterable

import pulumi

from accel.diagnostics.findings import Finding, apply


def enforce(findings: Iterable[Finding]) -> None:
    """Raises ValueError with one line a fault where a rule rejects; logs what it warns of.

    A constructor calls it before it registers anything.
    """
    applied = apply(findings)
    if applied.errors:
        raise ValueError("\n".join(f"{finding.field}: {finding.text}" for finding in applied.errors))
    for finding in applied.warnings:
        pulumi.log.warn(f"{finding.field}: {finding.text} [{finding.rule}]")

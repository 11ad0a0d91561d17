"""Rules of the clouds, each one once, as a pure function of plain values that returns Findings; apply() sorts them.
Callers prepend their own path to a finding's field. rules.csv lists every rule."""

from accel.diagnostics.findings import AppliedFindings, Finding, Rule, Severity, apply, under

__all__ = ["AppliedFindings", "Finding", "Rule", "Severity", "apply", "under"]

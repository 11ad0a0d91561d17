"""What the clouds allow: each rule once, as a pure function of plain values.

A function takes names, numbers and lists and gives the Findings; apply() sorts them. Callers put their own
path in front of a finding's field. table.py lists every rule.
"""

from accel.diagnostics.findings import AppliedFindings, Finding, Rule, Severity, apply, under

__all__ = ["AppliedFindings", "Finding", "Rule", "Severity", "apply", "under"]

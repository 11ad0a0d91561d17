"""Variables of a job that its platform sets itself."""

from collections.abc import Iterable

from accel.diagnostics.findings import Finding, Rule


def of_platform(
    rule: Rule, names: Iterable[str], field: str, fix: str = "give the variable another name"
) -> list[Finding]:
    """Return a finding for each of the names, which the job sets too."""
    return [rule.finding(f"{field}.{name}", "is set by the platform", fix) for name in names]

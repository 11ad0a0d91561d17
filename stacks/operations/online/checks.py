"""Result of an online check of one environment."""

from collections.abc import Sequence
from dataclasses import dataclass

from accel.diagnostics.findings import Finding, under


@dataclass(frozen=True)
class CheckResult:
    """Findings with their paths in the environment, what was read, and what could not be, with the reason."""

    findings: tuple[Finding, ...] = ()
    looked_at: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def within(self, path: str) -> "CheckResult":
        return CheckResult(tuple(under(path, self.findings)), self.looked_at, self.unread)


def together(parts: Sequence[CheckResult]) -> CheckResult:
    return CheckResult(
        tuple(finding for part in parts for finding in part.findings),
        tuple(line for part in parts for line in part.looked_at),
        tuple(line for part in parts for line in part.unread),
    )

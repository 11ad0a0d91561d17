"""The account's quotas before a job is submitted."""

from typing import TYPE_CHECKING

from accel.diagnostics.errors import OverLimit

from ..backends.base import Quotas

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from ..backends.base import Backend
    from ..model.job import Job


def check(backend: "Backend", job: "Job", reporter: "Reporter", where: str = "quota") -> list[str]:
    """Warn where the job cannot start, or raise OverLimit under --strict. Return a line per unreadable quota."""
    if not isinstance(backend, Quotas):
        return []
    answer = backend.quota(job)
    if answer.over and reporter.strict:
        hint = "ask for more (`stacks quota --request` writes the request), or use another target"
        raise OverLimit("; ".join(f"{where}: {text}" for text in answer.over), hint)
    for text in answer.over:
        reporter.warn(f"{where}: {text}")
    return [f"{where} unknown: {text}" for text in answer.unknown]

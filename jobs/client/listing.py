"""Lists of the jobs of several targets, and of the targets that could not be listed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from accel.console.progress import Opens
from accel.diagnostics.errors import JobsError

from ..backends.base import Listing, Status
from ..backends.listing import list_statuses, once
from ..backends.registry import of_target
from .allowances.submitter import settle_ended_jobs
from .selection import SCANNED, Choice
from .targets import known_targets

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from .targets import Targets

MISSING = "its jobs are missing here"


@dataclass
class JobListing:
    """Jobs, newest first, each once. `faults` has the error of each target that could not be listed, by name."""

    statuses: list[Status] = field(default_factory=list[Status])
    faults: dict[str, JobsError] = field(default_factory=dict[str, JobsError])
    asked: int = 0
    """Number of targets, including those that could not be listed."""

    @property
    def incomplete(self) -> JobsError | None:
        """Error for the targets that could not be listed, with the first one's exit code and hint; None without any."""
        if not self.faults:
            return None
        first = next(iter(self.faults.values()))
        error = JobsError(f"incomplete: {len(self.faults)} of {self.asked} targets could not be read", first.hint)
        error.exit_code = first.exit_code
        return error


def names_of(known: "Targets", to: str | None) -> Sequence[str]:
    return [to] if to else [entry.name for entry in known.entries.values() if entry.target]


def gather(
    known: "Targets", choice: Choice, ended: bool, limit: int, reporter: "Reporter", progress: Opens
) -> JobListing:
    """Warn of a target that cannot be listed; raise its error if it was named."""
    names = names_of(known, choice.to)
    found = JobListing(asked=len(names))
    seen: dict[str, Status] = {}
    tell = once(reporter.warn)  # several targets may list the same jobs
    scanned = max(limit, SCANNED) if choice.narrow else limit
    for name in names:
        backend = of_target(*known.choose(name))
        if not isinstance(backend, Listing):
            reporter.warn(f"target {name}: its jobs cannot be listed")
            continue
        try:
            with progress(lambda count, name=name: f"{name}: {count:,} jobs") as told:
                every = list_statuses(backend, tell, limit=scanned, ended=ended or choice.ended, progress=told)
                meant = [*islice((status for status in every if choice.keeps(status)), limit)]
            seen |= {str(status.ref): status for status in meant}
        except JobsError as error:
            if choice.to:
                raise
            found.faults[name] = error
            reporter.warn(f"target {name}: {MISSING}: {error.message}")
    newest = sorted(seen.values(), key=lambda status: status.created.timestamp() if status.created else 0, reverse=True)
    found.statuses = newest[:limit]
    return found


def list_jobs(to: str | None, ended: bool, limit: int, reporter: "Reporter", progress: Opens) -> list[Status]:
    """Return jobs newest first. Raises the first error where no target could be listed."""
    found = gather(known_targets(reporter), Choice(to), ended, limit, reporter, progress)
    if found.faults and len(found.faults) == found.asked:
        raise next(iter(found.faults.values()))
    settle_ended_jobs(found.statuses, reporter.say)
    return found.statuses

"""A job that was submitted, as an object for Python."""

import inspect
import logging
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from accel.console.progress import untold
from accel.diagnostics.errors import BadInput, JobWarning

from .backends.base import Backend, Explanation, JobRef, LogLine, Status
from .backends.registry import of_ref
from .client import resolve
from .client.allowances.submitter import settle_ended_jobs
from .client.dispatch import submit_one
from .client.explain import explanation
from .client.logs import log_lines
from .client.results import Row, ranking
from .client.retry import prepare_retry
from .client.waiting import Waiting, end
from .model import keys

PACKAGE = __name__.rpartition(".")[0]
CANCELLED = "cancelled by the user"

log = logging.getLogger("accel.jobs")


@dataclass
class QuietReporter:
    """A Reporter that prints nothing: warnings are Python's and kept, all else is logged."""

    targets: str | None = None
    strict: bool = False
    warnings: list[str] = field(default_factory=list[str])

    def say(self, message: str) -> None:
        """As Reporter."""
        log.info("%s", message)

    def warn(self, message: str) -> None:
        """As Reporter. Where the user has made errors of JobWarning, it is raised."""
        if self.strict:
            raise BadInput(message, "it is a warning without strict=True")
        self.note(message)

    def note(self, message: str) -> None:
        """A warning that is no reason to refuse anything."""
        self.warnings.append(message)
        warnings.warn(message, JobWarning, stacklevel=_level())

    def resubmission(self, key: str) -> str:
        """As Reporter."""
        return f"the same submit with key={key!r}"


def _level() -> int:
    """Of the frame that called this package, as warnings.warn counts them."""
    frame, level, found = inspect.currentframe(), 0, 0
    while frame:
        if str(frame.f_globals.get("__name__")).startswith(f"{PACKAGE}."):
            found = level
        frame, level = frame.f_back, level + 1
    return found + 1


@dataclass(frozen=True)
class Run:
    """A job on its platform. Every method asks the platform anew, and raises the errors of `errors`."""

    ref: JobRef
    key: str | None = None
    """With it the same submit finds this job. None where it was not submitted by this object's maker."""
    target: str | None = None
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.ref)

    def __repr__(self) -> str:
        told = [f"{name}={value!r}" for name, value in (("target", self.target), ("key", self.key)) if value]
        return f"Run({', '.join([repr(str(self.ref)), *told])})"

    def status(self) -> Status:
        """As it is now."""
        status = of_ref(self.ref).status(self.ref)
        settle_ended_jobs([status], QuietReporter().say)
        return status

    def logs(self, *, follow: bool = False, task: int | None = None, tail: int | None = None) -> Iterator[LogLine]:
        """What it printed, in order; with `follow` until it has ended. `task`: of one task or node only. `tail`: of the
        lines so far at most so many, the last ones. Raises BadInput for a `tail` below 1."""
        if tail is not None and tail < 1:
            raise BadInput(f"tail: must be at least 1, is {tail}")
        return log_lines(of_ref(self.ref), self.ref, task, follow, tail)

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Status:
        """Its status once it has ended. `timeout` in seconds.

        Raises WaitedTooLong, and with `check` JobFailed where it failed.
        """
        return wait_for([self.ref], timeout, check)[0]

    def cancel(self, reason: str = CANCELLED) -> None:
        """Asks it to stop; one that has ended stays as it is."""
        of_ref(self.ref).cancel(self.ref, reason)

    def explain(self) -> Explanation:
        """Why it waits or failed: one cause, what shows it, and the next step."""
        return explanation(self.ref, of_ref(self.ref), QuietReporter())

    def results(self, by: str | None = None, best: Literal["max", "min"] | None = None) -> list[Row]:
        """What its tasks came to, the best first: parameters, state, and the metrics that each told last."""
        return ranking([self.ref], by, best, QuietReporter(), untold)[0]

    def retry(self, *, key: str | None = None, every: bool = False) -> "Run":
        """It once more, as a new job; of a sweep the tasks that did not succeed, or with `every` all."""
        reporter, caller = QuietReporter(), key if key is not None else keys.random_key()
        with prepare_retry(self.ref, None, caller, every, reporter) as (backend, request, submitter):
            ref = submit_one(backend, request, caller, reporter, submitter)
        return Run(ref, caller, request.target, tuple(reporter.warnings))


AnyJob = Run | JobRef | Status | str
"""A job: an object of one, its reference, its name, a short id as ls shows it, or the beginning of one."""


def reference(job: AnyJob) -> JobRef:
    """Raises NotFound, or BadInput for what could be several jobs; see docs/cli.md for which a name means."""
    if isinstance(job, str):
        return resolve.reference(job, QuietReporter())
    return job if isinstance(job, JobRef) else job.ref


def wait_for(refs: Sequence[JobRef], timeout: float | None, check: bool) -> list[Status]:
    """Their statuses in the same order, once all have ended."""
    waiting = waiting_for(refs, timeout)
    waiting.run()
    return final_statuses(waiting, refs, check)


def waiting_for(refs: Sequence[JobRef], timeout: float | None) -> Waiting:
    """A wait for the jobs, each looked at once a look."""
    backends: dict[tuple[str, str], Backend] = {}
    jobs = [(ref, backends.setdefault((ref.kind, ref.scope), of_ref(ref))) for ref in dict.fromkeys(refs)]
    return Waiting(jobs, timeout, QuietReporter().say)


def final_statuses(waiting: Waiting, refs: Sequence[JobRef], check: bool) -> list[Status]:
    """What a wait that is over has seen. Raises JobFailed with `check`."""
    if check:
        end(waiting.statuses)
    seen = dict(zip(dict.fromkeys(refs), waiting.statuses, strict=True))
    return [seen[ref] for ref in refs]

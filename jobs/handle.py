"""A submitted job, as an object for Python."""

import inspect
import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
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
from .model import arguments, keys

PACKAGE = __name__.rpartition(".")[0]
CANCELLED = "cancelled by the user"

log = logging.getLogger("accel.jobs")


@dataclass
class QuietReporter:
    """Reporter that prints nothing: warnings become Python warnings and are kept, everything else is logged."""

    targets: str | None = None
    strict: bool = False
    warnings: list[str] = field(default_factory=list[str])

    def say(self, message: str) -> None:
        log.info("%s", message)

    def warn(self, message: str) -> None:
        """Raise BadInput with `strict`, and JobWarning where a filter makes the warning an error."""
        if self.strict:
            raise BadInput(message, "it is a warning without strict=True")
        self.note(message)

    def note(self, message: str) -> None:
        """Issue a warning that `strict` does not turn into an error."""
        self.warnings.append(message)
        warnings.warn(message, JobWarning, stacklevel=_level())

    def resubmission(self, key: str) -> str:
        return f"the same submit with key={key!r}"


def _level() -> int:
    """Return the stack level of the frame that called this package, as warnings.warn counts levels."""
    frame, level, found = inspect.currentframe(), 0, 0
    while frame:
        if str(frame.f_globals.get("__name__")).startswith(f"{PACKAGE}."):
            found = level
        frame, level = frame.f_back, level + 1
    return found + 1


@dataclass(frozen=True)
class Run:
    """A job on its platform. Every method makes a new request to the platform, and raises the errors of `errors`."""

    ref: JobRef
    key: str | None = None
    """Key with which the same submit finds this job; None for a job that this object's maker did not submit."""
    target: str | None = None
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.ref)

    def __repr__(self) -> str:
        told = [f"{name}={value!r}" for name, value in (("target", self.target), ("key", self.key)) if value]
        return f"Run({', '.join([repr(str(self.ref)), *told])})"

    def status(self) -> Status:
        """Return the job's current status, and settle its allowance reservation if it has ended."""
        status = of_ref(self.ref).status(self.ref)
        settle_ended_jobs([status], QuietReporter().say)
        return status

    def logs(self, *, follow: bool = False, task: int | None = None, tail: int | None = None) -> Iterator[LogLine]:
        """Yield the job's log lines in order; with `follow` until the job ends.

        `task` selects one task or node. `tail` keeps at most that many of the lines so far, the last ones. Raises
        BadInput for a `tail` below 1.
        """
        arguments.whole_number("tail", tail, 1)
        arguments.whole_number("task", task)
        return log_lines(of_ref(self.ref), self.ref, task, follow, tail)

    def wait(self, timeout: float | None = None, *, check: bool = True) -> Status:
        """Wait until the job has ended, and return its status. `timeout` is in seconds.

        Raises WaitedTooLong, and with `check` JobFailed where it failed.
        """
        return wait_for([self.ref], timeout, check)[0]

    def cancel(self, reason: str = CANCELLED) -> None:
        """Cancel the job. A job that has ended stays as it is."""
        of_ref(self.ref).cancel(self.ref, reason)

    def explain(self) -> Explanation:
        """Return why the job waits or failed: one cause, its evidence, and the next step."""
        return explanation(self.ref, of_ref(self.ref), QuietReporter())

    def results(self, by: str | None = None, best: Literal["max", "min"] | None = None) -> list[Row]:
        """Return a row for each task, the best first: parameters, state, and the last value of each reported metric."""
        return ranking([self.ref], by, best, QuietReporter(), untold)[0]

    def retry(self, *, key: str | None = None, every: bool = False) -> "Run":
        """Submit the job once more as a new job. A sweep reruns the tasks that did not succeed, or all with `every`."""
        reporter, caller = QuietReporter(), key if key is not None else keys.random_key()
        with prepare_retry(self.ref, None, caller, every, reporter) as (backend, request, submitter):
            ref = submit_one(backend, request, caller, reporter, submitter)
        return Run(ref, caller, request.target, tuple(reporter.warnings))


AnyJob = Run | JobRef | Status | str
"""A job as an object, a reference, a name, a short id as ls shows it, or the beginning of a name or id."""


def reference(job: AnyJob) -> JobRef:
    """Return the reference of a job; docs/cli.md says which job a name means.

    Raises NotFound, and BadInput for text that matches several jobs.
    """
    if isinstance(job, str):
        return resolve.reference(job, QuietReporter())
    if isinstance(job, JobRef):
        return job
    if not isinstance(job, Run | Status):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"job: must be a job or its reference, is {arguments.describe_value(job)}")
    return job.ref


def references(jobs: AnyJob | Iterable[AnyJob]) -> list[JobRef]:
    """Return the reference of a job, or of each of several. Raises as `reference`."""
    if isinstance(jobs, AnyJob):
        return [reference(jobs)]
    if not isinstance(jobs, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"jobs: must be a job or a list of jobs, is {arguments.describe_value(jobs)}")
    return [reference(job) for job in jobs]


def wait_for(refs: Sequence[JobRef], timeout: float | None, check: bool) -> list[Status]:
    """Return the final statuses in the order of `refs`. `timeout` is in seconds."""
    waiting = waiting_for(refs, timeout)
    waiting.run()
    return final_statuses(waiting, refs, check)


def waiting_for(refs: Sequence[JobRef], timeout: float | None) -> Waiting:
    """Return a wait that asks for each job once per look, even if it is listed twice."""
    arguments.seconds("timeout", timeout)
    backends: dict[tuple[str, str], Backend] = {}
    jobs = [(ref, backends.setdefault((ref.kind, ref.scope), of_ref(ref))) for ref in dict.fromkeys(refs)]
    return Waiting(jobs, timeout, QuietReporter().say)


def final_statuses(waiting: Waiting, refs: Sequence[JobRef], check: bool) -> list[Status]:
    """Return the statuses that a finished wait has seen, by `refs`. With `check`, raise JobFailed for a failed job."""
    if check:
        end(waiting.statuses)
    seen = dict(zip(dict.fromkeys(refs), waiting.statuses, strict=True))
    return [seen[ref] for ref in refs]

"""The Python API: the verbs of the command line as functions that print nothing. See docs/python.md."""

import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict, Unpack, cast, overload

from accel.console.progress import untold
from accel.diagnostics.errors import BadInput

from .backends.base import Status
from .client.listing import list_jobs
from .client.submission import SubmissionPlan, SubmitOptions, plan_submission, read_jobs
from .client.targets import Targets, known_targets
from .handle import AnyJob, QuietReporter, Run, reference, references, wait_for
from .model import arguments
from .model.document import Document, document_of, read
from .model.job import Job, Written

Work = Job | Written | str | os.PathLike[str]
"""A job, its fields as a mapping, or the path of a job file."""
UNTENDED = "spot: prefer: the job moves to on demand only while `accel-jobs tend REF --every 30s` runs"


class Options(TypedDict, total=False):
    """Options of a submission, as those of `accel-jobs submit`."""

    key: str | None
    """Idempotency key: the same name and key give the same job, however often it is submitted."""
    code: str | os.PathLike[str] | None
    """Folder whose files are sent; the command runs in a copy of it."""
    code_all: bool
    """Send every file of the folder, including those that Git ignores."""
    requirements: str | os.PathLike[str] | None
    """Path of a requirements.txt, whose packages are installed before the command."""
    pin_image: bool
    """Ask the registry for the digest of the image's tag, and submit that digest."""
    smoke: bool
    """Short run only: one task on one node, tried once, under its own name."""
    smoke_timeout: int | None
    """Longest time of the smoke run, in seconds."""
    then_to: str | None
    """Target on which a job with `spot: prefer` continues on demand; None: the same target."""
    quota: bool
    """Check whether the account's quotas let the job start; default True."""
    strict: bool
    """Raise an error for anything that would give a warning."""
    targets: str | None
    """Source of targets, as --targets; None: $ACCEL_TARGETS, or .accel/targets.json."""


@overload
def submit(
    job: Work, to: str | None = None, *, dry_run: Literal[True], **options: Unpack[Options]
) -> dict[str, Any]: ...
@overload
def submit(job: Work, to: str | None = None, *, dry_run: Literal[False] = False, **options: Unpack[Options]) -> Run: ...
def submit(
    job: Work, to: str | None = None, *, dry_run: bool = False, **options: Unpack[Options]
) -> Run | dict[str, Any]:
    """Submit a job to a target: its name, `cheapest`, or None where there is only one.

    With `dry_run` nothing is sent, and the return value is the request as `accel-jobs submit --dry-run` prints it.
    Options lists the other options. Raises BadInput where each task of a sweep would be a job of its own; submit_many
    takes those.
    """
    plan, reporter = _plan([job], to, dry_run, options)
    if len(plan.items) > 1:
        raise BadInput(f"each task of the sweep is a job of its own there, {len(plan.items)} in all: use submit_many")
    return plan.redacted_requests()[0] if dry_run else _runs(plan, reporter, options.get("quota", True))[0]


@overload
def submit_many(
    jobs: Iterable[Work], to: str | None = None, *, dry_run: Literal[True], **options: Unpack[Options]
) -> list[dict[str, Any]]: ...
@overload
def submit_many(
    jobs: Iterable[Work],
    to: str | None = None,
    *,
    rate: int | None = None,
    stop: threading.Event | None = None,
    dry_run: Literal[False] = False,
    **options: Unpack[Options],
) -> list[Run]: ...
def submit_many(
    jobs: Iterable[Work],
    to: str | None = None,
    *,
    rate: int | None = None,
    stop: threading.Event | None = None,
    dry_run: bool = False,
    **options: Unpack[Options],
) -> list[Run] | list[dict[str, Any]]:
    """Submit many jobs at once; check all of them before the first is sent.

    `rate` is the most submits per second. Setting `stop` sends no more. An error part way says how many jobs were made;
    the same call with the same key makes the rest.
    """
    if not isinstance(jobs, Iterable) or isinstance(jobs, str | bytes | dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"jobs: must be a list of jobs, is {arguments.describe_value(cast(object, jobs))}")
    arguments.whole_number("rate", rate, 1)
    works = list(jobs)
    if not works:
        return []
    plan, reporter = _plan(works, to, dry_run, options)
    return plan.redacted_requests() if dry_run else _runs(plan, reporter, options.get("quota", True), rate, stop)


@overload
def wait(jobs: AnyJob, timeout: float | None = None, *, check: bool = True) -> Status: ...
@overload
def wait(jobs: Sequence[AnyJob], timeout: float | None = None, *, check: bool = True) -> list[Status]: ...
def wait(jobs: AnyJob | Sequence[AnyJob], timeout: float | None = None, *, check: bool = True) -> Status | list[Status]:
    """Wait until all jobs have ended, and return their statuses. `timeout` is in seconds.

    Raises WaitedTooLong, and with `check` JobFailed where a job failed. A timeout does not stop the jobs.
    """
    statuses = wait_for(references(jobs), timeout, check)
    return statuses[0] if isinstance(jobs, AnyJob) else statuses


def get(job: AnyJob) -> Run:
    """Return a job submitted earlier, by its reference or by the beginning of a recent job's id or name.

    Makes no request to its platform. Raises NotFound, and BadInput for text that is no reference.
    """
    return job if isinstance(job, Run) else Run(reference(job))


def ls(
    to: str | None = None, *, ended: bool = False, limit: int = 50, targets: str | None = None, strict: bool = False
) -> list[Status]:
    """Return the jobs of a target, or of all targets, newest first; with `ended` those that have ended too."""
    arguments.text(to=to, targets=targets)
    arguments.whole_number("limit", limit, 1)
    return list_jobs(to, ended, limit, QuietReporter(targets, strict), untold)


def list_targets(source: str | None = None, *, refresh: bool = False, strict: bool = False) -> Targets:
    """Return the targets that jobs can run on.

    `source` is a JSON file or a place where a stack publishes its targets; `refresh` reads it again.
    """
    arguments.text(source=source)
    return known_targets(QuietReporter(source, strict), refresh=refresh)


def _plan(
    works: Sequence[Work], to: str | None, dry_run: bool, options: Options
) -> tuple[SubmissionPlan, QuietReporter]:
    if unknown := sorted(options.keys() - Options.__annotations__.keys()):
        raise TypeError(f"submit has no option {unknown[0]}; it has {', '.join(Options.__annotations__)}")
    key, then_to, targets = options.get("key"), options.get("then_to"), options.get("targets")
    arguments.text(to=to, key=key, then_to=then_to, targets=targets)
    arguments.whole_number("smoke_timeout", options.get("smoke_timeout"))
    reporter = QuietReporter(targets, options.get("strict", False))
    submit_options = SubmitOptions(
        to,
        key,
        None if (code := options.get("code")) is None else arguments.path("code", code),
        options.get("code_all", False),
        None if (file := options.get("requirements")) is None else arguments.path("requirements", file),
        options.get("pin_image", False),
        options.get("smoke", False),
        options.get("smoke_timeout"),
        dry_run,
        then_to,
    )
    documents = [_document(work) for work in works]
    jobs = read_jobs(documents, submit_options, reporter)
    if submit_options.then_to and any(job.spot != "prefer" for job in jobs):
        raise BadInput("then_to: is for a job with spot: prefer; `accel-jobs submit --then-to` waits and moves others")
    plan = plan_submission(documents, jobs, submit_options, reporter)
    plan.warn()
    if plan.prefers_spot:
        reporter.note(UNTENDED)
    return plan, reporter


def _document(work: Work) -> Document[Job]:
    if isinstance(work, Job | dict):
        return document_of(work, Job)
    return read(arguments.path("job", work), Job)


def _runs(
    plan: SubmissionPlan,
    reporter: QuietReporter,
    quota: bool,
    rate: int | None = None,
    stop: threading.Event | None = None,
) -> list[Run]:
    refs = plan.submit(quota, rate, stop=stop)
    ruled = {warning for _, request in plan.items for warning in request.warnings}
    of_all = [warning for warning in reporter.warnings if warning not in ruled]
    return [
        Run(ref, plan.caller, request.target, tuple(dict.fromkeys([*request.warnings, *of_all])))
        for ref, (_, request) in zip(refs, plan.items, strict=True)
    ]

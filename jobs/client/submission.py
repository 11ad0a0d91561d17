"""Preparation of jobs for submission, shared by `jobs submit` and the Python API."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from accel.diagnostics.errors import BadInput, BadInputs
from accel.diagnostics.redaction import hide_secrets
from accel.rules.jobs.containers import LOCAL

from ..backends.base import Request
from ..backends.registry import of_target
from ..model import keys
from ..model import smoke as runs
from ..model.document import jobs_of
from ..model.sweep_tasks import apart, cap_warnings
from .code.option import pack
from .deadline.plan import plan_job
from .stale_targets import current_targets
from .targets import known_targets

if TYPE_CHECKING:
    from accel.console.reporter import Reporter

    from ..backends.base import Backend, JobRef, Request
    from ..model.document import Document
    from ..model.job import Job
    from .bulk import Item
    from .code.shipping import Shipping
    from .dispatch import Receipts
    from .targets import Target, Targets


CHEAPEST = "cheapest"
DRY_RUN_KEY = "dry-run"


@dataclass(frozen=True)
class SubmitOptions:
    """Options of a submission, as those of the command line with the same names."""

    to: str | None = None
    key: str | None = None
    code: str | None = None
    code_all: bool = False
    requirements: str | None = None
    pin_image: bool = False
    smoke: bool = False
    smoke_timeout: int | None = None
    dry_run: bool = False
    then_to: str | None = None


@dataclass(frozen=True)
class SubmissionPlan:
    """Jobs that their targets can run, each with its backend and request; nothing has been sent."""

    pairs: "list[tuple[Job, Item]]"
    """Jobs and their requests; a sweep's tasks where its target runs one task per job."""
    caller: str
    targets: "Targets"
    shipping: "Shipping | None"
    prefers_spot: bool
    reporter: "Reporter"

    @property
    def items(self) -> "list[Item]":
        return [item for _, item in self.pairs]

    def warn(self) -> None:
        for warning in dict.fromkeys(warning for _, request in self.items for warning in request.warnings):
            self.reporter.warn(warning)

    def redacted_requests(self) -> list[dict[str, Any]]:
        """Return the requests as `--dry-run` prints them, without the values of variables named like secrets."""
        return [hide_secrets(_request(request)) for _, request in self.items]

    def submit(
        self,
        quota: bool = True,
        rate: int | None = None,
        *,
        receipts: "Receipts | None" = None,
        stop: threading.Event | None = None,
    ) -> "list[JobRef]":
        """Send code, reserve allowances, submit the requests and record them in the history, in their order. `rate` is
        the most submits per second. `receipts` gets each job as it is submitted. Setting `stop`, or without it SIGINT
        where there are `receipts`, stops further submits. Raises the first error, with how to go on."""
        from . import dispatch

        with dispatch.prepare_submission(
            self.pairs, self.targets, self.shipping, self.reporter, prefers_spot=self.prefers_spot, quota=quota
        ) as (submitter, unknown):
            own = self.caller, self.reporter
            if len(self.items) == 1:
                refs = [dispatch.submit_one(*self.items[0], *own, submitter, receipts)]
            else:
                # A program's own SIGINT is left alone: only a command, which prints receipts, stops by it.
                stop = stop or (None if receipts else threading.Event())
                refs = dispatch.submit_many(self.items, *own, submitter, receipts or dispatch.Receipts(), rate, stop)
        # Printed last: where a service does not answer, the submit fails for the same reason and says so itself.
        for line in unknown:
            self.reporter.say(line)
        if receipts and len(refs) > 1:
            receipts.all_made(refs)
        return refs


def read_jobs(documents: "Sequence[Document[Job]]", options: SubmitOptions, reporter: "Reporter") -> "list[Job]":
    """Return the job of each document, or its smoke run. Raises BadInputs with every fault of every document."""
    for document in documents:
        for note in document.notes:
            reporter.say(note)
        if options.pin_image:
            _pin_image(document, reporter)
    jobs = jobs_of(documents)
    return (
        _smoke_runs(documents, jobs, options, reporter) if options.smoke or options.smoke_timeout is not None else jobs
    )


def plan_submission(
    documents: "Sequence[Document[Job]]", jobs: "Sequence[Job]", options: SubmitOptions, reporter: "Reporter"
) -> SubmissionPlan:
    """Raise BadInputs for jobs that their targets cannot run."""
    caller = options.key if options.key is not None else DRY_RUN_KEY if options.dry_run else keys.random_key()
    known = known_targets(reporter)
    shipping = pack(options.code, options.code_all, reporter, _requirements(documents, jobs, options))
    written = list(zip(documents, jobs, strict=True))
    pairs = _rendered(written, options, caller, known, shipping, reporter)
    if not options.dry_run:
        names = dict.fromkeys([*(request.target for _, (_, request) in pairs), options.then_to or ""])
        if (newer := current_targets(known, names, reporter)) is not known:
            known, pairs = newer, _rendered(written, options, caller, newer, shipping, reporter)
    return SubmissionPlan(pairs, caller, known, shipping, any(job.spot == "prefer" for job in jobs), reporter)


def _requirements(documents: "Sequence[Document[Job]]", jobs: "Sequence[Job]", options: SubmitOptions) -> Path | None:
    """Take a path in a job as relative to the job file. Raises BadInput where the jobs name several."""
    if options.requirements:
        return Path(options.requirements)
    named = {
        Path(document.name).parent / job.requirements if job.requirements else None
        for document, job in zip(documents, jobs, strict=True)
    }
    if len(named) > 1:
        shown = ", ".join(sorted(str(each) if each else "none" for each in named))
        raise BadInput(f"requirements: the jobs have several, {shown}", "submit them apart: all get one archive")
    return named.pop() if named else None


def _smoke_runs(
    documents: "Sequence[Document[Job]]", jobs: "Sequence[Job]", options: SubmitOptions, reporter: "Reporter"
) -> "list[Job]":
    if not options.smoke:
        raise BadInput("--smoke-timeout: is of a smoke run, and --smoke is missing")
    if options.smoke_timeout is not None and options.smoke_timeout < runs.TIMEOUT_MIN_S:
        raise BadInput(f"--smoke-timeout: must be at least {runs.TIMEOUT_MIN_S} s, is {options.smoke_timeout}")
    if options.then_to:
        raise BadInput("--then-to: a smoke run is tried once, and goes on nowhere; leave it out")
    found: list[Job] = []
    for document, job in zip(documents, jobs, strict=True):
        try:
            found.append(runs.of(job, options.smoke_timeout or runs.TIMEOUT_S))
        except BadInput as error:
            raise document.placed(error) from None
        reporter.say(runs.summary(job, found[-1]))
    return found


def _pin_image(document: "Document[Job]", reporter: "Reporter") -> None:
    """Set the image to its digest. A job without an image runs its target's, and a local folder has no digest."""
    from accel.clouds.image_registry import pin_digest

    values: object = document.values
    image = cast("dict[str, Any]", values).get("image") if isinstance(values, dict) else None
    if isinstance(image, str) and image and not image.startswith(LOCAL) and (now := pin_digest(image)) != image:
        document.set(f"image={now}")
        reporter.say(f"image: {image} is {now}")


def _rendered(
    jobs: "list[tuple[Document[Job], Job]]",
    options: SubmitOptions,
    caller: str,
    known: "Targets",
    shipping: "Shipping | None",
    reporter: "Reporter",
) -> "list[tuple[Job, tuple[Backend, Request]]]":
    """Give a second job of one name, one with other code, and a smoke run keys of their own, the same every time."""
    then_to = options.then_to
    caller = keys.of_smoke(caller) if options.smoke else caller
    backends: dict[str, Backend] = {}
    times: dict[str, int] = {}
    pairs: list[tuple[Job, tuple[Backend, Request]]] = []
    faults: list[str] = []
    for document, job, name, target in _placed(jobs, known, options.to, reporter):
        backend = backends.setdefault(name, of_target(name, target))
        times[job.name] = times.get(job.name, 0) + 1
        text = keys.number_key(caller, times[job.name])
        submission = keys.submission_key(job.name, shipping.caller(text) if shipping else text)
        job_id = keys.platform_name(job.name, submission)
        try:
            ready = shipping.with_code(job, name, target, job_id) if shipping else job
            if ready.spot == "prefer":
                if shipping and then_to:
                    shipping.reach_both(name, target, *known.choose(then_to))
                ready = job = plan_job(ready, name, target, then_to, known)
            pairs.append((job, (backend, backend.render(ready, job_id, submission))))
        except BadInput as error:
            placed = document.placed(error)
            if len(jobs) == 1:
                raise placed from None
            # A fault with a line in a file needs no job name.
            bare = error.messages if isinstance(error, BadInputs) else [error.message]
            faults += [
                f"{job.name}: {own}" if message == f"{document.name}: {own}" else message
                for message, own in zip(placed.messages, bare, strict=True)
            ]
    if faults:
        raise BadInputs(list(dict.fromkeys(faults)))
    return pairs


def _placed(
    jobs: "list[tuple[Document[Job], Job]]", known: "Targets", to: str | None, reporter: "Reporter"
) -> "Iterator[tuple[Document[Job], Job, str, Target]]":
    """Yield the tasks of a sweep where the target runs one task per job."""
    for document, job in jobs:
        name, target = _target(job, known, to, reporter)
        try:
            parts = apart(job, target.kind)
        except BadInput as error:
            raise document.placed(error) from None
        for warning in cap_warnings(job, target.kind) if len(parts) > 1 else ():
            reporter.warn(warning)
        for each in parts:
            yield document, each, name, target


def _target(job: "Job", known: "Targets", to: str | None, reporter: "Reporter") -> "tuple[str, Target]":
    """Take the first offer for `cheapest`, unless a target has that name."""
    if to != CHEAPEST or CHEAPEST in known.entries:
        return known.choose(to)
    from .offers import cheapest, choice_summary

    offer, decision = cheapest(job, known.entries)
    reporter.say(choice_summary(offer, decision))
    return known.choose(offer.target)


def _request(request: "Request") -> dict[str, Any]:
    return {
        "kind": request.kind,
        "target": request.target,
        "name": request.name,
        "key": request.key,
        "warnings": list(request.warnings),
        "body": request.body,
    }

"""Resubmission of a job: all of it, or the tasks of a sweep that did not succeed."""

from collections.abc import Generator
from contextlib import contextmanager

from accel.console.options import program
from accel.console.reporter import Reporter
from accel.diagnostics.errors import BadInput

from ..backends.base import Backend, JobRef, Request, Resubmit
from ..backends.tasks import ResubmitTasks
from ..model import keys, sweep_tasks
from ..runtime.sweep import format_spans
from . import history
from .accrued_cost import size_in
from .allowances.submitter import Submitter, reserve_retry
from .resolve import with_target
from .results import failed_tasks


@contextmanager
def prepare_retry(
    ref: JobRef, to: str | None, caller: str, every: bool, reporter: Reporter
) -> Generator[tuple[Backend, Request, Submitter]]:
    """Raise BadInput for a job that cannot be run again, and OverLimit."""
    backend = with_target(ref, to, reporter)
    if not isinstance(backend, Resubmit):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} cannot be run again; submit the job file")
    request = backend.resubmit_request(ref, keys.submission_key(str(ref), caller))
    count = None
    if not every:
        request, count = _in_part(backend, ref, request, reporter)
    if to is None:  # the job itself may name its target, which this machine's history may lack, for the budget gate
        backend = with_target(ref, request.target, reporter)
    for warning in request.warnings:
        reporter.warn(warning)
    with reserve_retry(ref, request, reporter, count) as submitter:
        if size := size_in(history.recent(), str(ref)):
            submitter.sizes = {request.key: size | ({"tasks": count} if count else {})}
        yield backend, request, submitter


def _in_part(backend: Backend, ref: JobRef, whole: Request, reporter: Reporter) -> tuple[Request, int | None]:
    """Return the request for a sweep's failed tasks, and their number; else `whole`. Raises BadInput if none failed."""
    sweep = sweep_tasks.find_sweep(whole.body)
    if sweep is None or not isinstance(backend, ResubmitTasks):
        return whole, None
    tasks = failed_tasks(backend, ref, len(sweep.places))
    if not tasks:
        raise BadInput(
            f"{ref}: none of its {len(sweep.places)} tasks has failed", f"`{program()} retry --all` runs all of them"
        )

    named = format_spans([sweep.places[task] for task in tasks])
    reporter.say(f"{len(tasks):,} of {len(sweep.places):,} tasks run again: {named[:200]}")
    return backend.resubmit_tasks_request(ref, whole.key, tasks), len(tasks)

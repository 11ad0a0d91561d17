"""`jobs retry`."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from accel.console.options import Settings, program
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput

from ..backends.base import Again
from ..backends.tasks import AgainInPart
from ..client import history
from ..client.allowances.submitter import held_again
from ..client.dispatch import submitted
from ..client.sweep_results import failed
from ..model import keys
from ..model.sweep_tasks import found
from ..runtime.sweep import written

if TYPE_CHECKING:
    from collections.abc import Generator

    from accel.console.reporter import Voice

    from ..backends.base import Backend, JobRef, Request
    from ..client.allowances.submitter import Sender


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--to", metavar="TARGET", help="The job's target, if it was not submitted from here.")
@click.option("--key", metavar="TEXT", help="The same JOB and key give the same new job, however often it is retried.")
@click.option("--all", "-a", "every", is_flag=True, help="Of a sweep, the tasks that succeeded too.")
@click.pass_obj
def retry(settings: Settings, job: str, to: str | None, key: str | None, every: bool) -> None:
    """Run JOB again, as it was submitted, as a new job; print the new reference.

    Of a sweep only the tasks run again that failed or were lost, each with its own parameters.
    """
    from ..client.resolve import reference

    caller = key if key is not None else keys.drawn()
    with again(reference(job, settings), to, caller, every, settings) as (backend, request, sender):
        submitted(backend, request, caller, settings, sender=sender)


@contextmanager
def again(
    ref: "JobRef", to: str | None, caller: str, every: bool, voice: "Voice"
) -> "Generator[tuple[Backend, Request, Sender]]":
    """What runs a job once more, and what sends it. Raises BadInput for one that cannot be run again, OverLimit."""
    from ..client.accrued_cost import size_in
    from ..client.resolve import with_target

    backend = with_target(ref, to, voice)
    if not isinstance(backend, Again):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} cannot be run again; submit the job file")
    request = backend.again(ref, keys.submission_key(str(ref), caller))
    count = None
    if not every:
        request, count = _in_part(backend, ref, request, voice)
    if to is None:  # the job itself may say what this machine's history does not: whether its stack is stopped
        backend = with_target(ref, request.target, voice)
    for warning in request.warnings:
        voice.warn(warning)
    with held_again(ref, request, voice, count) as sender:
        if size := size_in(history.recent(), str(ref)):
            sender.sizes = {request.key: size | ({"tasks": count} if count else {})}
        yield backend, request, sender


def _in_part(backend: "Backend", ref: "JobRef", whole: "Request", voice: "Voice") -> "tuple[Request, int | None]":
    """The request that runs the tasks of a sweep that did not succeed, and their number; of any other job, `whole`.

    Raises BadInput where there are none.
    """
    sweep = found(whole.body)
    if sweep is None or not isinstance(backend, AgainInPart):
        return whole, None
    tasks = failed(backend, ref, len(sweep.places))
    if not tasks:
        raise BadInput(
            f"{ref}: none of its {len(sweep.places)} tasks has failed", f"`{program()} retry --all` runs all of them"
        )

    named = written([sweep.places[task] for task in tasks])
    voice.say(f"{len(tasks):,} of {len(sweep.places):,} tasks run again: {named[:200]}")
    return backend.again_in_part(ref, whole.key, tasks), len(tasks)

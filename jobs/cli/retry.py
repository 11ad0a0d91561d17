"""`jobs retry`."""

import click

from .settings import Settings
from .verb import Verb


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--to", metavar="TARGET", help="The job's target, if it was not submitted from here.")
@click.option("--key", metavar="TEXT", help="The same JOB and key give the same new job, however often it is retried.")
@click.pass_obj
def retry(settings: Settings, job: str, to: str | None, key: str | None) -> None:
    """Run JOB again, as it was submitted, as a new job; print the new reference."""
    from .. import keys
    from ..backend import Again
    from ..errors import BadInput
    from .finding import reference, with_target
    from .report import warn
    from .sending import submitted
    from .spending import held_again

    ref = reference(job)
    backend = with_target(ref, to, settings)
    if not isinstance(backend, Again):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} cannot be run again; submit the job file")
    caller = key if key is not None else keys.drawn()
    request = backend.again(ref, keys.submission_key(str(ref), caller))
    if to is None:  # the job itself may say what this machine's history does not: whether its stack is stopped
        backend = with_target(ref, request.target, settings)
    for warning in request.warnings:
        warn(warning, settings)
    with held_again(ref, request, settings) as sender:
        submitted(backend, request, caller, settings, sender=sender)

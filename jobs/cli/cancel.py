"""`jobs cancel`."""

import click

from accel.console.errors import interactive, say
from accel.console.options import Settings, program
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, Declined, JobsError

from ..client.resolve import job


@click.command(cls=Verb)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option("--reason", default="cancelled by the user", show_default=True, help="Reason, stored with the job.")
@click.pass_obj
def cancel(settings: Settings, jobs: tuple[str, ...], reason: str) -> None:
    """Stop every JOB. Ended jobs are unchanged. It asks for confirmation; without a terminal it needs --yes."""
    found = [job(text, settings) for text in dict.fromkeys(jobs)]
    names = ", ".join(str(ref) for ref, _ in found)
    if not settings.yes:
        if not interactive():
            raise BadInput(f"cancel {names}: cannot be confirmed without a terminal", "--yes stops it without asking")
        if not click.confirm(f"Stop {names}?", err=True):
            raise Declined("nothing was stopped")
    faults: list[JobsError] = []
    for ref, backend in found:
        try:
            backend.cancel(ref, reason)
        except JobsError as error:
            faults.append(error)
            continue
        if settings.output == "id":
            click.echo(str(ref))
        else:
            say(f"{ref}: asked to stop; `{program()} wait {ref}` waits for its end")
    if faults:
        for fault in faults[1:]:
            say(f"error: {fault.message}")
        raise faults[0]

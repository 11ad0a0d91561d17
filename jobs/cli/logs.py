"""`jobs logs`."""

import json
from typing import TYPE_CHECKING

import click

from .settings import Settings, program
from .verb import Verb

if TYPE_CHECKING:
    from ..backend import Backend, JobRef


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.option("--follow", "-f", is_flag=True, help="Until the job has ended; exit 125 if it failed.")
@click.option("--task", "--node", "task", type=click.IntRange(min=0), metavar="INDEX", help="Of one task or node only.")
@click.pass_obj
def logs(settings: Settings, job: str, follow: bool, task: int | None) -> None:
    """Show what JOB printed. -o wide adds the time of each line."""
    from . import finding
    from .waiting import end

    ref, backend = finding.job(job)
    stream(backend, ref, task, follow, settings.output)
    if follow:
        end([backend.status(ref)])


def stream(backend: "Backend", ref: "JobRef", task: int | None, follow: bool, form: str) -> None:
    """The lines on stdout as they come. Raises Interrupted, which says that the job goes on."""
    from ..backend import Logs
    from ..errors import BadInput, Interrupted

    if not isinstance(backend, Logs):
        raise BadInput(f"{ref}: jobs of kind {ref.kind} keep no log that can be read here")
    try:
        for line in backend.logs(ref, task=task, follow=follow):
            if form in ("json", "jsonl"):
                click.echo(json.dumps({"at": line.at.isoformat(), "source": line.source, "text": line.text}))
                continue
            source = f"[{line.source}] " if line.source else ""
            time = f"{line.at.isoformat(timespec='milliseconds')} " if form == "wide" else ""
            click.echo(f"{time}{source}{line.text}", color=True)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on", f"`{program()} get {ref}` shows it") from None

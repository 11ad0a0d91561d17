"""`jobs wait`."""

import click

from accel.console.options import Duration, Settings
from accel.console.output import show
from accel.console.verb import Verb

from ..client.resolve import job
from ..client.waiting import end, wait_for
from ..views.status_rows import STATUS_COLUMNS, STATUS_WIDE, status_row


@click.command(cls=Verb)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option("--timeout", type=Duration(), help="Stop waiting (exit 124); the jobs go on.")
@click.pass_obj
def wait(settings: Settings, jobs: tuple[str, ...], timeout: int | None) -> None:
    """Wait until every JOB has ended; exit 125 if one failed.

    Each change is a line, and progress is shown at least every 30 seconds; a terminal shows a progress bar.
    """
    statuses = wait_for([job(text, settings) for text in dict.fromkeys(jobs)], timeout)
    if settings.output != "table":
        show([status_row(status) for status in statuses], settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
    end(statuses)

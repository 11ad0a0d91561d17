"""`jobs get` and `jobs ls`."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from accel.console.errors import say
from accel.console.options import Settings, WholeNumber, program
from accel.console.output import details, show
from accel.console.progress import Progress
from accel.console.verb import Verb

from ..client.allowances.submitter import settle_ended_jobs
from ..client.listing import gather
from ..client.resolve import job
from ..client.selection import Choice, choosing
from ..client.targets import known_targets
from ..views.job_table import show_jobs
from ..views.status_rows import STATUS_COLUMNS, STATUS_WIDE, status_row

if TYPE_CHECKING:
    from ..backends.base import Status

LONG = timedelta(minutes=10)
"""Time of waiting after which a job gets a hint."""


@click.command(cls=Verb)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.pass_obj
def get(settings: Settings, jobs: tuple[str, ...]) -> None:
    """Show jobs."""
    from ..client.waiting import current_statuses

    statuses = current_statuses([job(text, settings) for text in jobs])
    settle_ended_jobs(statuses)
    rows = [status_row(status) for status in statuses]
    if settings.output == "json" and len(rows) == 1:
        click.echo(json.dumps({field: value for field, value in rows[0].items() if field != "age"}, indent=2))
    elif settings.output in ("table", "wide"):
        for number, row in enumerate(rows):
            click.echo("" if number else None, nl=bool(number))
            details(row)
    else:
        show(rows, settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
    for status in statuses:
        if _waits_long(status):
            say(f"`{program()} explain {status.ref}` says why it waits")


def _waits_long(status: "Status") -> bool:
    waited = datetime.now(UTC) - status.created if status.created else timedelta()
    return status.phase == "QUEUED" and waited > LONG


@click.command(cls=Verb)
@choosing
@click.option("--all", "-a", "ended", is_flag=True, help="Include ended jobs.")
@click.option("--limit", "-n", type=WholeNumber(min=1), default=50, show_default=True, help="Maximum number of jobs.")
@click.pass_obj
def ls(
    settings: Settings,
    to: str | None,
    name: str | None,
    states: tuple[str, ...],
    owner: str | None,
    ended: bool,
    limit: int,
) -> None:
    """List the jobs of every target that wait or run, newest first; --all and --state choose others.

    If a target cannot be read, the list is marked as incomplete, and the exit code is that of the first fault. With
    --name, --state or --owner, the newest 1,000 jobs of each target are searched, or --limit if that is more.
    """
    choice = Choice(to, name, states, owner)
    found = gather(known_targets(settings), choice, ended, limit, settings, Progress)
    settle_ended_jobs(found.statuses, settings.say)
    show_jobs(found.statuses, settings)
    if found.incomplete:
        raise found.incomplete
    if not found.statuses and settings.output in ("table", "wide"):
        over = "" if ended or choice.ended else f"; `{program()} ls -a` shows ended ones too"
        none = "no job that was asked for" if choice.narrow else "no job"
        say(f"{none} {'is there' if not over else 'is waiting or running'}{over}")

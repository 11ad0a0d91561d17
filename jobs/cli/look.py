"""`jobs get` and `jobs ls`."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from .output import STATUS_COLUMNS, STATUS_WIDE, details, show, status_row
from .progress import Opens, Progress
from .report import say
from .settings import Settings, program
from .spending import settle_ended
from .verb import Verb

if TYPE_CHECKING:
    from ..backend import Status
    from ..voice import Voice

LONG = timedelta(minutes=10)
"""A job that has waited for longer gets a hint."""


@click.command(cls=Verb)
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.pass_obj
def get(settings: Settings, jobs: tuple[str, ...]) -> None:
    """Show jobs: a reference each, or the beginning of the id or name of a recent one."""
    from .finding import job
    from .waiting import seen

    statuses = seen([job(text) for text in jobs])
    settle_ended(statuses)
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
@click.option("--to", metavar="TARGET", help="Jobs of this target only.")
@click.option("--all", "-a", "ended", is_flag=True, help="Ended jobs too.")
@click.option("--limit", "-n", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@click.pass_obj
def ls(settings: Settings, to: str | None, ended: bool, limit: int) -> None:
    """List the jobs of every target, newest first."""
    newest = listed(to, ended, limit, settings, Progress)
    show([status_row(status) for status in newest], settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
    if not newest and settings.output in ("table", "wide"):
        say("no jobs" if ended else f"no job is waiting or running; `{program()} ls -a` shows ended ones too")


def listed(
    to: str | None,
    ended: bool,
    limit: int,
    voice: "Voice",
    progress: Opens,
) -> "list[Status]":
    """The jobs of a target, or of every one, newest first. Raises what none of the targets could be asked for."""
    from ..backend import Listing
    from ..errors import JobsError
    from ..registry import of_target
    from .finding import targets

    known = targets(voice)
    names = [to] if to else [entry.name for entry in known.entries.values() if entry.target]
    seen: dict[str, Status] = {}
    faults: list[JobsError] = []
    for name in names:
        backend = of_target(*known.choose(name))
        if not isinstance(backend, Listing):
            voice.warn(f"target {name}: its jobs cannot be listed")
            continue
        try:
            with progress(lambda count, name=name: f"{name}: {count:,} jobs") as told:
                found = list(backend.list(limit=limit, ended=ended, progress=told))
            seen |= {str(status.ref): status for status in found}
        except JobsError as error:
            if len(names) == 1:
                raise
            faults.append(error)
            voice.warn(f"target {name}: its jobs are missing here: {error.message}")
    if faults and len(faults) == len(names):
        raise faults[0]
    settle_ended(seen.values(), voice.say)
    newest = sorted(seen.values(), key=lambda status: status.created.timestamp() if status.created else 0, reverse=True)
    return newest[:limit]

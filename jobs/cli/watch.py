"""`jobs watch`."""

import sys
from typing import TYPE_CHECKING

import click

from accel.console.errors import say, warn
from accel.console.options import Duration, Settings, program
from accel.console.output import show
from accel.console.screen import Screen, live, style_of
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, JobsError

from ..backends.base import Listing
from ..backends.listing import list_statuses as asked
from ..backends.listing import once
from ..backends.registry import of_target
from ..client import accrued_cost
from ..client.allowances.submitter import settle_ended_jobs
from ..client.listing import MISSING, names_of
from ..client.resolve import job
from ..client.selection import SCANNED, Choice, choosing
from ..client.targets import known_targets
from ..client.waiting import end
from ..views.status_rows import STATUS_COLUMNS, STATUS_WIDE, status_row
from ..views.watch.loop import Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..views.watch.loop import Jobs

LISTED_MAX = 10_000


@click.command(cls=Verb)
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@choosing
@click.option("--logs/--no-logs", default=True, help="Read logs for progress and metrics, or only read states.")
@click.option("--timeout", type=Duration(), help="Stop watching (exit 124); the jobs go on.")
@click.pass_obj
def watch(
    settings: Settings,
    jobs: tuple[str, ...],
    to: str | None,
    name: str | None,
    states: tuple[str, ...],
    owner: str | None,
    logs: bool,
    timeout: int | None,
) -> None:
    """Watch JOBs until all have ended; by default all that wait or run. Exit 125 if one failed.

    A terminal shows a table that updates; elsewhere, each change is a line.
    """
    choice = Choice(to, name, states, owner)
    if jobs and (to or choice.narrow):
        raise BadInput("watch: either JOBs, or --target, --name, --state and --owner, which choose them")
    more = None if jobs else _lister(settings, choice)
    found = more() if more else [job(text, settings) for text in dict.fromkeys(jobs)]
    if not found:
        say(f"no job that is meant is waiting or running; `{program()} ls -a` shows ended ones too")
        return
    chosen = list(dict(found).items())
    watching = Watching(
        chosen,
        more=more,
        priced=lambda refs: accrued_cost.job_prices(refs, settings),
        logs=logs,
        screen=Screen() if live(sys.stdout) and settings.output in ("table", "wide") else None,
        style=style_of(sys.stdout),
        timeout_s=timeout,
        plain=settings.output in ("table", "wide"),
    )
    statuses = watching.run()
    settle_ended_jobs(statuses)
    if settings.output not in ("table", "wide"):
        show([status_row(status) for status in statuses], settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
    end(statuses)


def _lister(settings: Settings, choice: Choice) -> "Callable[[], Jobs]":
    """Return a function that lists the matching live jobs, and warns once of a target that cannot be listed."""
    known = known_targets(settings)
    names = names_of(known, choice.to)
    most = SCANNED if choice.owner else LISTED_MAX
    backends = {name: of_target(*known.choose(name)) for name in names}
    tell = once(lambda message: warn(message, settings))

    def listed() -> "Jobs":
        found: Jobs = []
        for name, backend in backends.items():
            if not isinstance(backend, Listing):
                continue
            try:
                statuses = list(asked(backend, tell, limit=most, ended=False))
            except JobsError as error:
                if len(names) == 1:
                    raise
                tell(f"target {name}: {MISSING}: {error.message}")
                continue
            found += [(each.ref, backend) for each in statuses if choice.keeps(each)]
        return found

    return listed

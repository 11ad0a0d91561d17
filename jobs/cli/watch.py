"""`jobs watch`."""

import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from .settings import Duration, Settings, program
from .verb import Verb

if TYPE_CHECKING:
    from collections.abc import Callable

    from .watching import Jobs

LISTED_MAX = 10_000


@click.command(cls=Verb)
@click.argument("jobs", metavar="[JOB]...", nargs=-1)
@click.option("--target", "--to", "to", metavar="TARGET", help="The jobs of this target that wait or run.")
@click.option("--name", "glob", metavar="GLOB", help="Those whose names match: 'train-*'.")
@click.option("--logs/--no-logs", default=True, help="Read logs for progress and metrics, or only look at states.")
@click.option("--timeout", type=Duration(), help="Stop watching (exit 124); the jobs go on.")
@click.pass_obj
def watch(
    settings: Settings, jobs: tuple[str, ...], to: str | None, glob: str | None, logs: bool, timeout: int | None
) -> None:
    """Watch JOBs until all have ended, or without any those that wait or run; exit 125 if one failed.

    At a terminal a table that is renewed; elsewhere a line at each change.
    """
    from . import so_far
    from .finding import job
    from .output import STATUS_COLUMNS, STATUS_WIDE, show, status_row
    from .report import say
    from .screen import Screen, live, style_of
    from .spending import settle_ended
    from .waiting import end
    from .watching import Watching

    if jobs and (to or glob):
        from ..errors import BadInput

        raise BadInput("watch: either JOBs, or --target and --name, which choose them")
    more = None if jobs else _lister(settings, to, glob)
    found = more() if more else [job(text) for text in dict.fromkeys(jobs)]
    if not found:
        say(f"no job that is meant is waiting or running; `{program()} ls -a` shows ended ones too")
        return
    chosen = list(dict(found).items())
    watching = Watching(
        chosen,
        more=more,
        priced=lambda refs: so_far.known(refs, settings),
        logs=logs,
        screen=Screen() if live(sys.stdout) and settings.output in ("table", "wide") else None,
        style=style_of(sys.stdout),
        timeout_s=timeout,
        plain=settings.output in ("table", "wide"),
    )
    statuses = watching.run()
    settle_ended(statuses)
    if settings.output not in ("table", "wide"):
        show([status_row(status) for status in statuses], settings.output, STATUS_COLUMNS, STATUS_WIDE, "ref")
    end(statuses)


def _lister(settings: Settings, to: str | None, glob: str | None) -> "Callable[[], Jobs]":
    """What gives the jobs that have not ended, of one target or all, whose names match. A target that cannot be asked
    is told of once."""
    from ..backend import Listing
    from ..errors import JobsError
    from ..registry import of_target
    from .finding import targets
    from .report import warn

    known = targets(settings)
    names = [to] if to else [entry.name for entry in known.entries.values() if entry.target]
    backends = {name: of_target(*known.choose(name)) for name in names}
    told: set[str] = set()

    def listed() -> "Jobs":
        found: Jobs = []
        for name, backend in backends.items():
            if not isinstance(backend, Listing):
                continue
            try:
                statuses = list(backend.list(limit=LISTED_MAX, ended=False))
            except JobsError as error:
                if len(names) == 1:
                    raise
                if name not in told:
                    warn(f"target {name}: its jobs are missing here: {error.message}", settings)
                told.add(name)
                continue
            found += [(each.ref, backend) for each in statuses if glob is None or fnmatchcase(each.name, glob)]
        return found

    return listed

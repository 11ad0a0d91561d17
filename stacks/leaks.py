"""`stacks leaks`: what costs money or quota and serves nobody."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.settings import Settings

from .cli import StackVerb

if TYPE_CHECKING:
    from jobs.google_api import Google

    from .leaks_google import Leak

COLUMNS = ("project", "what", "name", "zone", "state", "age", "usd_a_day", "owner", "why")


class LeaksVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.command(cls=LeaksVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option("--project", "projects", metavar="PROJECT", multiple=True, help="A project of Google Cloud instead.")
@click.option("--yes", "-y", is_flag=True, help="Delete them; without it, only show.")
@click.pass_obj
def leaks(settings: Settings, names: tuple[str, ...], projects: tuple[str, ...], yes: bool) -> None:
    """Show what serves nobody in the projects of each STACK: machines of jobs that have ended or whose time is over,
    queued resources that hold quota and come to nothing, disks of jobs without a machine.

    Nothing is deleted without --yes. Exit code 0 with or without findings.
    """
    from jobs.cli.output import show
    from jobs.cli.report import say
    from jobs.google_api import Google

    from .leaks_google import ended_by_record, look
    from .leaks_google import leaks as judge

    google, now = Google(), datetime.now(UTC)
    found = {
        project: judge(look(google, project), ended_by_record(google), now)
        for project in projects or _projects(settings, names)
    }
    rows = [_row(project, leak, now) for project, each in found.items() for leak in each]
    show(rows, settings.output, COLUMNS, COLUMNS, "name")
    if not rows:
        say(f"nothing serves nobody in {', '.join(found)}")
    elif yes:
        _delete(google, [leak for each in found.values() for leak in each])
    else:
        say("nothing was changed; --yes deletes them")


def _projects(settings: Settings, names: tuple[str, ...]) -> list[str]:
    """The projects of the stacks, each once. Raises BadInput where none has any."""
    from jobs.errors import BadInput

    from .commands import read_stacks, stack_files

    stacks = read_stacks(stack_files(list(names), Path()), settings.strict)
    found = [stack.environment.gcp.project for stack in stacks if stack.environment.gcp]
    if not found:
        raise BadInput("stacks leaks: no STACK has a gcp section", "name one that has, or --project")
    return list(dict.fromkeys(found))


def _row(project: str, leak: "Leak", now: datetime) -> dict[str, Any]:
    from .leaks_google import owner

    each = leak.found
    age = f"{(now - each.created).total_seconds() / 3600:.1f} h" if each.created else None
    dollars = None if leak.dollars_a_day is None else round(leak.dollars_a_day, 2)
    return {
        "project": project,
        "what": each.kind,
        "name": each.name,
        "zone": each.zone,
        "state": each.state,
        "age": age,
        "usd_a_day": dollars,
        "owner": owner(each),
        "why": leak.why,
    }


def _delete(google: "Google", found: "list[Leak]") -> None:
    from jobs.cli.report import say

    # Groups before their machines, which they would make again, and both before the templates.
    order = ("queued resource", "group", "tpu", "instance", "disk", "template")
    for leak in sorted(found, key=lambda each: order.index(each.found.kind)):
        google.delete(leak.found.api, leak.found.path, **leak.found.query)
        say(f"deleting {leak.found.kind} {leak.found.name}")

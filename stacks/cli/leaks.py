"""`stacks leaks`: unused resources that cost money or quota."""

from datetime import UTC, datetime

import click

from accel.console.errors import say, warn
from accel.console.options import Amount, Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, ChangesFound

from ..operations.leaks.orphans import Orphan, Unread
from ..operations.leaks.search import delete, of_projects, of_stacks
from .verb import OutputVerb

COLUMNS = ("cloud", "place", "what", "name", "zone", "state", "age", "usd_a_day", "owner", "why")
WIDE = (*COLUMNS, "fix")


@click.command(cls=OutputVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--project",
    "projects",
    metavar="PROJECT",
    multiple=True,
    help="Search this Google Cloud project instead of stacks.",
)
@click.option(
    "--older-than",
    type=Amount(min=0),
    default=1.0,
    show_default=True,
    metavar="HOURS",
    help="Minimum age: an update may be creating what uses a younger resource.",
)
@click.option("--expect-none", is_flag=True, help="Exit with 7 if anything is found.")
@click.option("--yes", "-y", is_flag=True, help="Delete them. Without it, only show them.")
@click.pass_obj
def leaks(
    settings: Settings,
    names: tuple[str, ...],
    projects: tuple[str, ...],
    older_than: float,
    expect_none: bool,
    yes: bool,
) -> None:
    """Find resources that cost money or quota and that nobody uses, in the regions and projects of each STACK.

    These are machines of ended jobs, instances of deleted environments, unattached disks and addresses, queued requests
    that hold quota and cannot succeed, and stuck environments and pools. Nothing is deleted without --yes, and
    resources in a stack's state are never deleted. A resource that another command removes is only listed.
    """
    if names and projects:
        raise BadInput("stacks leaks: STACK and --project exclude each other")
    now = datetime.now(UTC)
    unread = _unread(settings)
    if projects:
        every = list(of_projects(projects, now, unread))
    else:
        every = list(of_stacks(names, settings.strict, now, unread, say))
    orphans = [each for each in every if not each.younger(now, older_than)]
    orphans.sort(key=lambda each: -(each.usd_a_day or 0))
    show([each.row(now) for each in orphans], settings.output, COLUMNS, WIDE, "name")
    _sum_up(orphans)
    if yes:
        for line in delete(orphans):
            say(line)
    elif any(each.delete for each in orphans):
        say("nothing was changed; --yes deletes them")
    if orphans and expect_none:
        raise ChangesFound(f"{len(orphans)} resources are used by nobody", "stacks leaks --yes deletes what it can")


def _sum_up(orphans: list[Orphan]) -> None:
    if not orphans:
        say("no unused resources were found")
        return
    priced = [each.usd_a_day for each in orphans if each.usd_a_day is not None]
    unknown = len(orphans) - len(priced)
    least = f"; of {unknown} no price is known" if unknown else ""
    say(f"{len(orphans)} resources, {'at least ' if unknown else ''}${sum(priced):.2f} a day{least}")
    for each in orphans:
        if each.delete is None:
            say(f"{each.what} {each.name}: {each.fix}")


def _unread(settings: Settings) -> Unread:
    return lambda text: warn(f"not looked at: {text}", settings)

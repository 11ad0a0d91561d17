"""`stacks leaks`: what costs money or quota and serves nobody."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accel.console.errors import say, warn
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import BadInput, ChangesFound, CloudRefused, JobsError, NotFound

from ...cli.main import StackVerb
from ..quota.verb import project_of
from .orphans import COLUMNS, WIDE, Lost, Stacks, Unread

if TYPE_CHECKING:
    from ..stack_files import ReadStack

ORDER = (
    # Groups before their machines, which they would make again, and both before what they use.
    *("queued resource", "group", "tpu", "instance", "disk", "volume", "interface", "address"),
    *("template", "launch template"),
)
"""In which they are deleted."""


class LeaksVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.command(cls=LeaksVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option("--project", "projects", metavar="PROJECT", multiple=True, help="A project of Google Cloud instead.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="HOURS",
    help="Younger resources are left out: an update may be making what uses them.",
)
@click.option("--expect-none", is_flag=True, help="Exit with 7 where something is found.")
@click.option("--yes", "-y", is_flag=True, help="Delete them; without it, only show.")
@click.pass_obj
def leaks(
    settings: Settings,
    names: tuple[str, ...],
    projects: tuple[str, ...],
    older_than: float,
    expect_none: bool,
    yes: bool,
) -> None:
    """Show what serves nobody in the regions and projects of each STACK: machines of jobs that have ended, instances
    of environments that are gone, disks and addresses of nothing, requests that hold quota and come to nothing,
    environments and pools that are stuck.

    Nothing is deleted without --yes, and never what a stack's state has. What has a command of its own is only shown.
    """
    if names and projects:
        raise BadInput("stacks leaks: STACK and --project exclude each other")
    now = datetime.now(UTC)
    every = list(_of_projects(settings, projects, now)) if projects else list(_of_stacks(settings, names, now))
    found = [each for each in every if not each.younger(now, older_than)]
    found.sort(key=lambda each: -(each.usd_a_day or 0))
    show([each.row(now) for each in found], settings.output, COLUMNS, WIDE, "name")
    _sum_up(found)
    if yes:
        _delete(found)
    elif any(each.delete for each in found):
        say("nothing was changed; --yes deletes them")
    if found and expect_none:
        raise ChangesFound(f"{len(found)} resources serve nobody", "stacks leaks --yes deletes what it can")


def _sum_up(found: list[Lost]) -> None:
    if not found:
        say("nothing serves nobody")
        return
    priced = [each.usd_a_day for each in found if each.usd_a_day is not None]
    unknown = len(found) - len(priced)
    least = f"; of {unknown} no price is known" if unknown else ""
    say(f"{len(found)} resources, {'at least ' if unknown else ''}${sum(priced):.2f} a day{least}")
    for each in found:
        if each.delete is None:
            say(f"{each.what} {each.name}: {each.fix}")


def _of_projects(settings: Settings, projects: tuple[str, ...], now: datetime) -> Iterator[Lost]:
    from accel.clouds.google.api import Google

    from .google_stacks import of_project

    for project in dict.fromkeys(projects):
        yield from of_project(Google(), project, Stacks(), frozenset(), now, _unread(settings))


def _unread(settings: Settings) -> Unread:
    return lambda text: warn(f"not looked at: {text}", settings)


def _of_stacks(settings: Settings, names: tuple[str, ...], now: datetime) -> Iterator[Lost]:
    """Region by region, and project by project, which several stacks may share."""
    from accel.clouds.google.api import Google

    from ..stack_files import read_stacks, stack_files
    from .aws import Region, look
    from .google_stacks import of_project

    by_project: dict[str, list[ReadStack]] = {}
    states: dict[Path, Stacks] = {}
    for each in read_stacks(stack_files(list(names), Path()), settings.strict):
        states[each.path] = _state(each)
        if each.environment.aws:
            yield from look(Region(each.environment.aws.region, states[each.path]), _unread(settings))
        if each.environment.gcp:
            by_project.setdefault(each.environment.gcp.project, []).append(each)
    for project, stacks in by_project.items():
        regions = frozenset(each.environment.gcp.region for each in stacks if each.environment.gcp)
        own = _together([states[each.path] for each in stacks])
        yield from of_project(Google(), project, own, regions, now, _unread(settings))


def _state(stack: "ReadStack") -> Stacks:
    """Whose resources those of a stack are, and which it still has."""
    from ..drift.state import read_state

    project, names = project_of(stack.path), frozenset({stack.name})
    try:
        state = read_state(stack.path.parent, stack.name)
    except JobsError as unread:
        say(f"{stack.name}: {unread.message}: only what no stack can have is looked for")
        return Stacks(project, names)
    targets = tuple(dict(state.outputs.get("targets") or {}).values())
    if state.pending:
        say(f"{stack.name}: an update is under way, or was cut off: only what no stack can have is looked for")
    return Stacks(project, names, None if state.pending else state.ids, targets)


def _together(stacks: list[Stacks]) -> Stacks:
    """Several stacks of one Pulumi project; unread where one of them is."""
    read = [each.held for each in stacks if each.held is not None]
    whole = frozenset[str]().union(*read) if len(read) == len(stacks) else None
    return Stacks(stacks[0].project, frozenset[str]().union(*(each.names for each in stacks)), whole)


def _delete(found: list[Lost]) -> None:
    """One that cannot be deleted does not keep the others. Raises CloudRefused for all such together."""
    refusals: list[str] = []
    for each in sorted((one for one in found if one.delete), key=lambda one: ORDER.index(one.what)):
        if each.delete:
            try:
                each.delete()
            except NotFound:
                say(f"{each.what} {each.name} is gone already")
            except CloudRefused as refused:
                refusals.append(f"{each.what} {each.name}: {refused.message}")
            else:
                say(f"deleting {each.what} {each.name}")
    if refusals:
        raise CloudRefused("; ".join(refusals), "the others were deleted; run it again once nothing uses these")

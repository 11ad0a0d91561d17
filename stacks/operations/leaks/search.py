"""Unused resources that cost money or quota, in the regions and projects of stacks."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from accel.clouds.google.api import Google
from accel.diagnostics.errors import CloudRefused, JobsError, NotFound

from ..drift.state import read_state
from ..inventory.aws import Region
from ..stack_files import ReadStack, project_of, read_stacks, stack_files
from .aws import Search, look
from .google import of_project
from .orphans import Orphan, Stacks, Unread

Remark = Callable[[str], object]
"""Callback for the reason of an incomplete search."""
ORDER = (
    # Groups before their machines, which they would recreate, and both before the resources that they use.
    *("queued resource", "group", "tpu", "instance", "disk", "volume", "interface", "address"),
    *("template", "launch template"),
)
"""Order of deletion."""


def of_projects(projects: Iterable[str], now: datetime, unread: Unread) -> Iterator[Orphan]:
    """Yield resources that cannot belong to any stack of a project."""
    for project in dict.fromkeys(projects):
        yield from of_project(Google(), project, Stacks(), frozenset(), now, unread)


def of_stacks(names: Iterable[str], strict: bool, now: datetime, unread: Unread, remark: Remark) -> Iterator[Orphan]:
    """Search region by region, and project by project, which several stacks may share."""
    by_project: dict[str, list[ReadStack]] = {}
    states: dict[Path, Stacks] = {}
    for each in read_stacks(stack_files(list(names), Path()), strict):
        states[each.path] = _state(each, remark)
        if each.environment.aws:
            yield from look(Search(Region(each.environment.aws.region), states[each.path]), unread)
        if each.environment.gcp:
            by_project.setdefault(each.environment.gcp.project, []).append(each)
    for project, stacks in by_project.items():
        regions = frozenset(each.environment.gcp.region for each in stacks if each.environment.gcp)
        own = _together([states[each.path] for each in stacks])
        yield from of_project(Google(), project, own, regions, now, unread)


def _state(stack: ReadStack, remark: Remark) -> Stacks:
    """Return no ids (None) where the state may be incomplete."""
    project, names = project_of(stack.path), frozenset({stack.name})
    try:
        state = read_state(stack.path.parent, stack.name)
    except JobsError as unread:
        remark(f"{stack.name}: {unread.message}: only what no stack can have is looked for")
        return Stacks(project, names)
    targets = tuple(dict(state.outputs.get("targets") or {}).values())
    if state.pending:
        remark(f"{stack.name}: an update is under way, or was cut off: only what no stack can have is looked for")
    return Stacks(project, names, None if state.pending else state.ids, targets)


def _together(stacks: list[Stacks]) -> Stacks:
    """Join several stacks of one Pulumi project; the result is unread if one of them is."""
    read = [each.held for each in stacks if each.held is not None]
    whole = frozenset[str]().union(*read) if len(read) == len(stacks) else None
    return Stacks(stacks[0].project, frozenset[str]().union(*(each.names for each in stacks)), whole)


def delete(orphans: Iterable[Orphan]) -> Iterator[str]:
    """Delete what can be deleted, and yield a line each. Raise CloudRefused for all others together."""
    refusals: list[str] = []
    for each in sorted((one for one in orphans if one.delete), key=lambda one: ORDER.index(one.what)):
        if each.delete:
            try:
                each.delete()
            except NotFound:
                yield f"{each.what} {each.name} is gone already"
            except CloudRefused as refused:
                refusals.append(f"{each.what} {each.name}: {refused.message}")
            else:
                yield f"deleting {each.what} {each.name}"
    if refusals:
        raise CloudRefused("; ".join(refusals), "the others were deleted; run it again once nothing uses these")

"""`stacks drift`: where a deployed stack and its clouds differ, as far as it matters to jobs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import ChangesFound, NotFound

from ...cli.main import StackVerb
from ..quota.verb import judge
from .differences import Drift, in_order

if TYPE_CHECKING:
    from ..stack_files import ReadStack

COLUMNS = ("stack", "weight", "what", "name", "text")
WIDE = (*COLUMNS, "fix")
WITHIN_DAYS = 14


class DriftVerb(StackVerb):
    """With -o."""

    COMMON = ("output", *StackVerb.COMMON)


@click.command(cls=DriftVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--within",
    type=click.IntRange(min=1),
    default=WITHIN_DAYS,
    show_default=True,
    metavar="DAYS",
    help="What ends within so many days is told.",
)
@click.option("--no-properties", is_flag=True, help="Do not compare every property of the state with its cloud.")
@click.option("--no-quota", is_flag=True, help="Do not compare with quotas.")
@click.pass_obj
def drift(settings: Settings, names: tuple[str, ...], within: int, no_properties: bool, no_quota: bool) -> None:
    """Show what is not as each STACK (a name or a file) has it, of all in this folder where none is named.

    Numbers that the clouds move themselves are left out. WEIGHT is broken where jobs cannot run, changed where the
    stack has it otherwise, soon where nothing is wrong yet, unknown where it could not be read. Nothing is changed.
    Exit code 7 with anything broken or changed, with --strict also with the rest.
    """
    from ..stack_files import read_stacks, stack_files

    found: dict[str, list[Drift]] = {}
    for each in read_stacks(stack_files(list(names), Path()), settings.strict):
        try:
            found[each.name] = look(each, timedelta(days=within), not no_properties, not no_quota)
        except NotFound as missing:
            if names:
                raise
            say(f"{each.name}: {missing.message}")
    rows = [(stack, each) for stack, drifts in found.items() for each in drifts]
    show([each.row(stack) for stack, each in rows], settings.output, COLUMNS, WIDE, "name")
    if settings.output == "table":
        for _, each in rows:
            say(f"{each.what} {each.name}: {each.fix}")
    counted = [each for _, each in rows if settings.strict or each.weight in ("broken", "changed")]
    if counted:
        shown = ", ".join(dict.fromkeys(f"{each.what} {each.name}" for each in counted))
        raise ChangesFound(f"{len(counted)} differences: {shown[:200]}", "each line says what ends it")
    if found and not rows:
        say(f"{', '.join(found)}: as deployed")


def look(stack: "ReadStack", within: timedelta, properties: bool = True, quota: bool = True) -> "list[Drift]":
    """Everything that differs of one deployed stack. Raises NotFound where it was not deployed, and NoCredentials,
    CloudSilent."""
    from . import state as drift_state
    from .targets import drift_of_targets

    now, folder = datetime.now(UTC), stack.path.parent
    state = drift_state.read_state(folder, stack.name)
    if not state.resources:
        raise NotFound(f"stack {stack.name} has no resources", "deploy it first: pulumi up")
    found = drift_of_targets(state)
    if properties:
        budgets = state.outputs.get("budgets") or state.outputs.get("gcp_budgets")
        fix = drift_state.AFTER_BUDGET if budgets else drift_state.SET_AGAIN
        found += drift_state.changed_properties(folder, stack.name, fix)
    if state.pending:
        text = "an update is under way, or was cut off"
        found.append(Drift("update", stack.name, "unknown", text, "wait for it; else stacks recover"))
    if quota:
        found += lowered(stack)
    if stack.environment.aws:
        from ...environment.images_lock import read
        from .aws import drift_of_aws

        found += drift_of_aws(state, read(folder), now, within)
    if stack.environment.gcp:
        from accel.clouds.google.api import Google

        from .google import When, drift_of_google
        from .nodes import drift_of_clusters

        found += drift_of_google(state, Google(), When(now, within)) + drift_of_clusters(state, now)
    return in_order(found)


def lowered(stack: "ReadStack") -> "list[Drift]":
    """Quotas that are smaller than what the stack can use at most, or that could not be read."""
    fixes = {"over": "stacks quota --request writes the request", "unknown": "stacks quota says what it needs"}
    return [
        Drift(
            "quota",
            f"{row.need.quota.code if row.need.quota else row.need.label} in {row.need.region}",
            "broken" if row.word == "over" else "unknown",
            row.reason,
            fixes[row.word],
        )
        for judged in judge(stack)
        for row in judged.verdicts
        if row.word in fixes
    ]

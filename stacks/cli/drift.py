"""`stacks drift`: differences between a deployed stack and its clouds, as far as they matter to jobs."""

from datetime import timedelta
from pathlib import Path

import click

from accel.console.errors import say
from accel.console.options import Settings
from accel.console.output import show
from accel.diagnostics.errors import ChangesFound, NotFound

from ..operations.drift.comparison import drift_of_stack
from ..operations.drift.differences import Drift
from ..operations.stack_files import read_stacks, stack_files
from .verb import OutputVerb

COLUMNS = ("stack", "weight", "what", "name", "text")


WIDE = (*COLUMNS, "fix")


WITHIN_DAYS = 14


@click.command(cls=OutputVerb)
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
    drifts: dict[str, list[Drift]] = {}
    for each in read_stacks(stack_files(list(names), Path()), settings.strict):
        try:
            drifts[each.name] = drift_of_stack(each, timedelta(days=within), not no_properties, not no_quota)
        except NotFound as missing:
            if names:
                raise
            say(f"{each.name}: {missing.message}")
    rows = [(stack, each) for stack, every in drifts.items() for each in every]
    show([each.row(stack) for stack, each in rows], settings.output, COLUMNS, WIDE, "name")
    if settings.output == "table":
        for _, each in rows:
            say(f"{each.what} {each.name}: {each.fix}")
    counted = [each for _, each in rows if settings.strict or each.weight in ("broken", "changed")]
    if counted:
        shown = ", ".join(dict.fromkeys(f"{each.what} {each.name}" for each in counted))
        raise ChangesFound(f"{len(counted)} differences: {shown[:200]}", "each line says what ends it")
    if drifts and not rows:
        say(f"{', '.join(drifts)}: as deployed")

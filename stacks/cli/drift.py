"""`stacks drift`: differences between a deployed stack and its clouds, as far as they matter to jobs."""

from datetime import timedelta
from pathlib import Path

import click

from accel.console.errors import say
from accel.console.options import Settings, WholeNumber
from accel.console.output import show
from accel.diagnostics.errors import ChangesFound, NotFound

from ..operations.drift.comparison import drift_of_stack
from ..operations.drift.differences import Drift
from ..operations.stack_files import read_stacks, stack_files
from .verb import OutputVerb

COLUMNS = ("stack", "weight", "what", "name", "text")


WIDE = (*COLUMNS, "fix")


WITHIN_DAYS = 14
DAYS_MOST = 36_500
"""A hundred years: dates end with the year 9999."""


@click.command(cls=OutputVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--within",
    type=WholeNumber(min=1, max=DAYS_MOST),
    default=WITHIN_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Report what ends within this number of days.",
)
@click.option("--no-properties", is_flag=True, help="Skip the comparison of each property in the state with the cloud.")
@click.option("--no-quota", is_flag=True, help="Skip the comparison with quotas.")
@click.pass_obj
def drift(settings: Settings, names: tuple[str, ...], within: int, no_properties: bool, no_quota: bool) -> None:
    """Compare each STACK (a name or a file; by default all in this folder) with what its clouds have now.

    Numbers that the clouds change themselves are ignored. WEIGHT is `broken` if jobs cannot run, `changed` if the cloud
    differs from the stack, `soon` if something will go wrong, and `unknown` if it could not be read. Nothing is
    changed. The exit code is 7 if anything is broken or changed; with --strict, also for `soon` and `unknown`.
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

"""`stacks validate`."""

from pathlib import Path

import click

from accel.console.options import Settings

from ..operations.stack_files import stack_files
from ..operations.validation import validate as validation_lines
from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--online",
    is_flag=True,
    help="Also check existing networks, roles and clusters, with your credentials.",
)
@click.pass_obj
def validate(settings: Settings, names: tuple[str, ...], online: bool) -> None:
    """Check the environment of each STACK (a name or a file; by default all in this folder).

    Every fault is shown with file, line and path. With --strict, warnings are faults too. --online also reads existing
    networks, roles and clusters: whatever would leave jobs waiting is a fault, and whatever your credentials may not
    read is a warning. Nothing is changed.
    """
    for line in validation_lines(stack_files(list(names), Path()), settings.strict, online):
        click.echo(line)

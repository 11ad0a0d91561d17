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
    help="Also read, with your credentials, the networks, roles and clusters that exist already.",
)
@click.pass_obj
def validate(settings: Settings, names: tuple[str, ...], online: bool) -> None:
    """Check the environment of each STACK (a name or a file), of all in this folder where none is named.

    Every fault is shown, with file, line and path. With --strict warnings are faults too. With --online nothing is
    changed either: what would leave jobs waiting in what exists already is a fault, and what your credentials may not
    read is a warning.
    """
    for line in validation_lines(stack_files(list(names), Path()), settings.strict, online):
        click.echo(line)

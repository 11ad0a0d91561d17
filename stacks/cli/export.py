"""`stacks export`."""

import json
from pathlib import Path

import click

from ..operations.stack_files import export as write
from ..operations.stack_files import stack_output
from .verb import StackVerb


@click.command(cls=StackVerb)
@click.option("--stack", metavar="STACK", help="Stack. Default: the selected one.")
@click.option(
    "--out",
    metavar="FILE",
    default=".accel/targets.json",
    show_default=True,
    help="File to write; - for standard output.",
)
def export(stack: str | None, out: str) -> None:
    """Write the targets of a deployed stack to a file."""
    if out == "-":
        click.echo(json.dumps(stack_output("targets", stack), indent=2, sort_keys=True))
        return
    for name in write(stack, Path(out)):
        click.echo(name)

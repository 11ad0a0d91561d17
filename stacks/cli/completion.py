"""`stacks completion`."""

import click

from accel.console.completion import SHELLS, script
from accel.console.options import OneOf

from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("shell", type=OneOf(*SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and stacks in SHELL, to be sourced by it."""
    click.echo(script(shell, "stacks"))

"""`stacks completion`."""

import click

from jobs.cli.completing import SHELLS, script
from jobs.cli.settings import OneOf

from .cli import StackVerb


@click.command(cls=StackVerb)
@click.argument("shell", type=OneOf(*SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands, options and stacks in SHELL, to be sourced by it."""
    click.echo(script(shell, "stacks"))

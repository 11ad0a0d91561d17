"""`jobs completion`."""

import click

from .completing import SHELLS, script
from .settings import OneOf, Settings, program
from .verb import Verb


@click.command(cls=Verb)
@click.argument("shell", type=OneOf(*SHELLS))
@click.pass_obj
def completion(settings: Settings, shell: str) -> None:
    """Print the script that completes commands, options, targets and jobs in SHELL, to be sourced by it."""
    click.echo(script(shell, program()))

"""`jobs completion`."""

import click

from accel.console.completion import SHELLS, script
from accel.console.options import OneOf, Settings, program
from accel.console.verb import Verb


@click.command(cls=Verb)
@click.argument("shell", type=OneOf(*SHELLS))
@click.pass_obj
def completion(settings: Settings, shell: str) -> None:
    """Print the script that completes commands, options, targets and jobs in SHELL, to be sourced by it."""
    click.echo(script(shell, program()))

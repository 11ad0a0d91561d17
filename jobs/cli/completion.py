"""`jobs completion`."""

import click

from accel.console.completion import SHELLS, script
from accel.console.options import OneOf, Settings, program
from accel.console.verb import Verb


@click.command(cls=Verb)
@click.argument("shell", type=OneOf(*SHELLS))
@click.pass_obj
def completion(settings: Settings, shell: str) -> None:
    """Print a script that makes SHELL complete commands, options, targets and jobs; source it."""
    click.echo(script(shell, program()))

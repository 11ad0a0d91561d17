"""`jobs completion`."""

import click

from .settings import OneOf, Settings, program
from .verb import Verb


@click.command(cls=Verb)
@click.argument("shell", type=OneOf("bash", "zsh", "fish"))
@click.pass_obj
def completion(settings: Settings, shell: str) -> None:
    """Print the script that completes commands and options in SHELL, to be sourced by it."""
    from click.shell_completion import get_completion_class

    from .group import jobs

    kind = get_completion_class(shell)
    assert kind is not None
    name = program()
    click.echo(kind(jobs, {}, name, f"_{name.replace('-', '_').upper()}_COMPLETE").source())

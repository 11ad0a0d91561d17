"""`jobs completion`."""

import click

from .settings import OneOf, Settings, program
from .verb import Verb

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Verb)
@click.argument("shell", type=OneOf(*SHELLS))
@click.pass_obj
def completion(settings: Settings, shell: str) -> None:
    """Print the script that completes commands, options, targets and jobs in SHELL, to be sourced by it."""
    click.echo(script(shell, program()))


def script(shell: str, name: str) -> str:
    """Of the command of this name, which is the one that runs."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root().command
    return kind(root, {}, name, f"_{name.replace('-', '_').upper()}_COMPLETE").source()

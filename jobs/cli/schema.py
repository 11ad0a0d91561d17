"""`jobs schema`."""

import click

from accel.console.options import OneOf
from accel.console.verb import Verb
from accel.schema import text

from ..model.schema import KINDS


@click.command(cls=Verb)
@click.argument("kind", type=OneOf("job", "targets"), default="job")
def schema(kind: str) -> None:
    """Print the JSON Schema of job files (the default) or targets, for an editor."""
    click.echo(text(KINDS[kind]()))

"""`stacks schema`: the JSON Schema of Pulumi.<stack>.yaml, for editors."""

from typing import Any

import click

from accel.schema import document as file
from accel.schema import schema_of, text

from ..environment.config import Environment
from ..operations.stack_files import KEY
from .verb import StackVerb


def document() -> dict[str, Any]:
    made = schema_of(Environment)
    definitions: dict[str, Any] = made.pop("$defs")
    config = {"type": "object", "properties": {KEY: {"$ref": "#/$defs/Environment"}}}
    whole = {"type": "object", "properties": {"config": config}, "$defs": {**definitions, "Environment": made}}
    return file("A stack of accel", whole)


@click.command(cls=StackVerb)
def schema() -> None:
    """Print the JSON Schema of Pulumi.<stack>.yaml for an editor.

    It describes accel:environment, and accepts any other key of the config.
    """
    click.echo(text(document()))

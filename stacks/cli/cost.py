"""`stacks cost`."""

import json
from pathlib import Path

import click

from accel.console.options import OneOf, Settings
from accel.console.output import table

from ..operations.cost.estimate import document, estimates, rows, summary
from ..operations.stack_files import stack_files
from . import options
from .verb import StackVerb

COLUMNS = ("component", "what", "floor", "expected", "worst", "spot", "prices_of", "confidence")


@click.command(cls=StackVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@options.utilisation("Average share of the maximum in use, 0 to 1.")
@click.option("-o", "--output", type=OneOf("table", "json"), default="table", help="Output format.")
@click.pass_obj
def cost(settings: Settings, names: tuple[str, ...], utilisation: float, output: str) -> None:
    """Show the cost of each STACK (by default all in this folder): idle (floor), at the given utilisation (expected),
    and with every compute environment at its maximum on demand (worst).

    Prices come from the catalogue, with their date and confidence; no cloud is asked. Resources without a known price
    are named, and totals without them say "at least".
    """
    every = estimates(stack_files(list(names), Path()), utilisation, settings.strict)
    if output == "json":
        click.echo(json.dumps([document(each) for each in every], indent=2))
        return
    for each in every:
        click.echo(summary(each))
        click.echo(f"USD an hour in {each.region or 'no region'}, utilisation {each.utilisation:g}:")
        table(rows(each), COLUMNS)
        notes = [f"{line.component}: {note}" for line in each.lines for note in line.notes]
        for kind, texts in (("unknown", each.unknown), ("note", notes), ("not included", each.not_included)):
            for text in texts:
                click.echo(f"{kind}: {text}")

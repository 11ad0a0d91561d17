"""`stacks cost`."""

import json
from pathlib import Path

import click

from accel.console.options import OneOf, Settings
from accel.console.output import table

from ..operations.cost.estimate import document, estimates, rows, summary
from ..operations.stack_files import stack_files
from .options import Share
from .verb import StackVerb

COLUMNS = ("component", "what", "floor", "expected", "worst", "spot", "prices_of", "confidence")


@click.command(cls=StackVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--utilisation",
    type=Share(),
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Of the maximum that is in use on average, 0 to 1.",
)
@click.option("-o", "--output", type=OneOf("table", "json"), default="table", help="Form of the output.")
@click.pass_obj
def cost(settings: Settings, names: tuple[str, ...], utilisation: float, output: str) -> None:
    """Show what each STACK costs, all in this folder where none is named: with nothing running (floor), at the
    utilisation (expected), and with every compute environment at its maximum on demand (worst).

    Prices are those of the catalogue, with date and confidence; no cloud is asked. What has no known price is named,
    and sums that lack it say "at least".
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

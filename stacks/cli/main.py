"""`stacks`: looks after environments, beside Pulumi's own verbs."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from accel.console.completion import complete
from accel.console.group import Verbs, common
from accel.console.options import OneOf, Settings
from accel.console.output import table
from accel.console.verb import Verb

VERBS = {
    "validate": ("main", "Check environments without deploying them."),
    "cost": ("main", "Show what environments cost: idle, expected, at worst."),
    "quota": (".operations.quota.verb", "Compare what environments can use at most with the account's quotas."),
    "images": (".operations.images.verb", "Pin the images of instances; deregister old job definitions."),
    "budget": (".operations.budget.verb", "Show budgets, rehearse a stop, take one back."),
    "drift": (".operations.drift.verb", "Show what is not as a stack has it."),
    "report": ("report", "Show what a change would do: jobs that end, cost, quotas."),
    "leaks": (".operations.leaks.verb", "Show what costs money or quota and serves nobody."),
    "unwedge": (".operations.unwedge.verb", "Remove a compute environment that AWS does not let go."),
    "refresh": (".operations.refresh.verb", "Read live prices and offers into a catalogue of your own."),
    "export": ("main", "Write the targets of a deployed stack where jobs looks for them."),
    "adopt": ("adopt", "Take over what exists on AWS Batch, without making it again."),
    "permissions": ("permissions", "Show what clouds have to allow whoever deploys, submits or previews."),
    "schema": ("schema", "Print the JSON Schema of Pulumi.<stack>.yaml for editors."),
    "recover": ("recover", "Put the state right after an up or a destroy that was killed."),
    "completion": ("completion", "Print a shell's completion script."),
}
"""Verb: its module, and its line in the help."""


def _stack_files(context: click.Context, begun: str) -> Iterator[tuple[str, str]]:
    """Those with a file in this folder."""
    for path in sorted(Path().glob("Pulumi.*.yaml")):
        yield path.name.removeprefix("Pulumi.").removesuffix(".yaml"), ""


complete("STACK", _stack_files)


class StackVerb(Verb):
    """A verb without the options that are about jobs."""

    COMMON = ("strict", "debug")


@click.command(cls=StackVerb)
@click.argument("names", metavar="[STACK...]", nargs=-1)
@click.option(
    "--online",
    is_flag=True,
    help="Also read, with your credentials, the networks, roles and clusters that exist already.",
)
@click.pass_obj
def validate(settings: Settings, names: tuple[str, ...], online: bool) -> None:
    """Check the environment of each STACK (a name or a file), of all in this folder where none is named.

    Every fault is shown, with file, line and path. With --strict warnings are faults too. With --online nothing is
    changed either: what would leave jobs waiting in what exists already is a fault, and what your credentials may not
    read is a warning.
    """
    from ..operations.stack_files import stack_files
    from ..operations.stack_files import validate as judge

    for line in judge(stack_files(list(names), Path()), settings.strict, online):
        click.echo(line)


@click.command(cls=StackVerb)
@click.option("--stack", metavar="STACK", help="The stack; without it, the selected one.")
@click.option(
    "--out",
    metavar="FILE",
    default=".accel/targets.json",
    show_default=True,
    help="The file; - for standard output.",
)
def export(stack: str | None, out: str) -> None:
    """Write the targets of a deployed stack to a file."""
    from ..operations.stack_files import export as write
    from ..operations.stack_files import stack_output

    if out == "-":
        import json

        click.echo(json.dumps(stack_output("targets", stack), indent=2, sort_keys=True))
        return
    for name in write(stack, Path(out)):
        click.echo(name)


class Share(click.ParamType[float]):
    """A number from 0 to 1."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found = float(value)
        except ValueError:
            found = math.nan
        if not 0 <= found <= 1:
            self.fail(f"must be a number from 0 to 1, is {str(value)[:60]!r}", param, ctx)
        return found


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
    import json

    from ..operations.cost.estimate import document, estimates, rows, summary
    from ..operations.stack_files import stack_files

    found = estimates(stack_files(list(names), Path()), utilisation, settings.strict)
    if output == "json":
        click.echo(json.dumps([document(each) for each in found], indent=2))
        return
    for each in found:
        click.echo(summary(each))
        click.echo(f"USD an hour in {each.region or 'no region'}, utilisation {each.utilisation:g}:")
        columns = ("component", "what", "floor", "expected", "worst", "spot", "prices_of", "confidence")
        table(rows(each), columns)
        notes = [f"{line.component}: {note}" for line in each.lines for note in line.notes]
        for kind, texts in (("unknown", each.unknown), ("note", notes), ("not included", each.not_included)):
            for text in texts:
                click.echo(f"{kind}: {text}")


stacks = Verbs(
    "stacks",
    VERBS,
    __package__ or "",
    params=common(StackVerb.COMMON),
    help="Checks environments and hands out what they deployed.",
)


def main() -> None:
    """Runs the command and exits with its code."""
    stacks.main()

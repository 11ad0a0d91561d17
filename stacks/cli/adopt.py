"""`stacks adopt`."""

from pathlib import Path

import click

from accel.console.errors import say
from accel.diagnostics.errors import BadInputs

from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--stack", metavar="NAME", default="adopted", show_default=True, help="The stack that takes them over.")
@click.option("--region", metavar="REGION", help="Of what the files do not tell it: requests.")
@click.option("--out", metavar="FOLDER", default=".", show_default=True, help="Where the two files are written.")
def adopt(files: tuple[str, ...], stack: str, region: str | None, out: str) -> None:
    """Take over queues, compute environments and job definitions that exist, without making any of them again.

    Each FILE (- for standard input) is JSON: what `aws batch describe-compute-environments`, `describe-job-queues`,
    `describe-job-definitions` or `aws ec2 describe-subnets` answers, or what the create and register commands of
    `aws batch` take as --cli-input-json. Written are Pulumi.<stack>.yaml, and, of what exists, import-<stack>.json
    for `pulumi import`. A line says what stays as it was made (kept), what has no counterpart (lost), which resources
    cannot be moved (left out), and what the rules change or warn of.
    """
    from ..operations.adopt.adoption import write  # needs the engine's SDK, which --help does not

    done = write(list(files), stack, region, Path(out))
    for line in done.lines:
        click.echo(line)
    if done.faults:
        raise BadInputs(done.faults, f"correct {done.config}, then: stacks validate {done.config}")
    for command in done.commands:
        say(command)

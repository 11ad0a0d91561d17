"""`stacks adopt`."""

from pathlib import Path

import click

from accel.console.errors import say
from accel.diagnostics.errors import BadInputs

from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--stack", metavar="NAME", default="adopted", show_default=True, help="Stack that takes them over.")
@click.option("--region", metavar="REGION", help="Region of requests, whose files do not name one.")
@click.option("--out", metavar="FOLDER", default=".", show_default=True, help="Folder to write the two files to.")
def adopt(files: tuple[str, ...], stack: str, region: str | None, out: str) -> None:
    """Take over existing job queues, compute environments and job definitions without recreating them.

    Each FILE is JSON (- for standard input): the answer of `aws batch describe-compute-environments`,
    `describe-job-queues`, `describe-job-definitions` or `aws ec2 describe-subnets`, or the --cli-input-json of the
    matching create and register commands. The command writes Pulumi.<stack>.yaml and, for resources that exist,
    import-<stack>.json for `pulumi import`. It prints one line for each value that stays as it is (kept), has no
    counterpart (lost) or is changed by a rule, and for each resource that cannot be moved (left out).
    """
    from ..operations.adopt.adoption import write  # needs the engine's SDK, which --help does not

    done = write(list(files), stack, region, Path(out))
    for line in done.lines:
        click.echo(line)
    if done.faults:
        raise BadInputs(done.faults, f"correct {done.config}, then: stacks validate {done.config}")
    for command in done.commands:
        say(command)

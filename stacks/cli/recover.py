"""`stacks recover`: repair after a run of Pulumi that was killed."""

import click

from accel.console.errors import say
from accel.console.options import OneOf, WholeNumber
from accel.diagnostics.errors import BadInput, CloudRefused

from ..operations.recover.plan import Decisions
from ..operations.recover.recovery import Recovery
from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("stack", metavar="STACK")
@click.option("--check", is_flag=True, help="Exit with 4 if anything is left of a killed run.")
@click.option("--yes", "-y", is_flag=True, help="Make the changes. Without it, only show them.")
@click.option(
    "--finish",
    type=OneOf("up", "destroy"),
    help="Afterwards finish the operation: up and an empty preview, or destroy.",
)
@click.option(
    "--adopt", "adopt", metavar="NAME=ID", multiple=True, help="Adopt this resource as the result of a pending create."
)
@click.option("--clear", "clear", metavar="NAME", multiple=True, help="Drop this pending create: it created nothing.")
@click.option(
    "--break-lock", is_flag=True, help="Remove the lock of a run on another machine, which you know has ended."
)
@click.option(
    "--settle",
    metavar="SECONDS",
    default=60,
    show_default=True,
    type=WholeNumber(min=0),
    help="Seconds after the last sign of the killed run until a resource that is not found counts as not created.",
)
@click.option(
    "--timeout", default=30, show_default=True, type=WholeNumber(min=1), help="Timeout of each wait, in minutes."
)
def recover(
    stack: str,
    check: bool,
    yes: bool,
    finish: str | None,
    adopt: tuple[str, ...],
    clear: tuple[str, ...],
    break_lock: bool,
    settle: int,
    timeout: int,
) -> None:
    """Repair the state of STACK after an `up` or `destroy` in which the engine, the program or a provider was killed.

    The command releases the lock, adopts the resources that the run created and the state does not know, clears the
    operations that never happened, and refreshes every resource. It does not guess: where nothing proves what happened,
    it prints a line, and you decide with --adopt or --clear. Run it in the folder of the Pulumi program. Without --yes
    it changes nothing. If it is interrupted, run it again.
    """
    if check and yes:
        raise BadInput("--check changes nothing, --yes does", "give one of them")
    if finish and not yes:
        raise BadInput("--finish needs --yes")
    wrong = [each for each in adopt if not all(each.partition("=")[::2])]
    if wrong:
        raise BadInput(f"--adopt {wrong[0]}: expected NAME=ID")
    said = Decisions(dict(each.split("=", 1) for each in adopt), frozenset(clear))
    recovery = Recovery(stack, said, break_lock, settle, timeout * 60)
    if yes:
        for line in recovery.run():
            click.echo(line)
        _finish(recovery, finish)
        return
    lines = recovery.look()
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo(f"{stack}: nothing is left of a killed run")
    elif check:
        raise CloudRefused(f"{stack}: a killed run is not repaired", f"stacks recover {stack} --yes")
    else:
        say("nothing was changed; --yes does it")


def _finish(recovery: "Recovery", finish: str | None) -> None:
    match finish:
        case "up":
            recovery.engine.up()
            recovery.engine.unchanged()
            click.echo(f"{recovery.engine.stack}: up has ended, and a preview is empty")
        case "destroy":
            recovery.engine.destroy()
            click.echo(f"{recovery.engine.stack}: destroyed")
        case _:
            click.echo(f"{recovery.engine.stack}: nothing is pending; `pulumi up` or `pulumi destroy` goes on")

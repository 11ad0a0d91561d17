"""`stacks recover`: repair after a run of Pulumi that was killed."""

import click

from accel.console.errors import say
from accel.console.options import OneOf
from accel.diagnostics.errors import BadInput, CloudRefused

from ..operations.recover.plan import Decisions
from ..operations.recover.recovery import Recovery
from .verb import StackVerb


@click.command(cls=StackVerb)
@click.argument("stack", metavar="STACK")
@click.option("--check", is_flag=True, help="Exit code 4 while anything is left of a killed run.")
@click.option("--yes", "-y", is_flag=True, help="Do it; without it, only show.")
@click.option(
    "--finish", type=OneOf("up", "destroy"), help="Then end what was begun: up and an empty preview, or destroy."
)
@click.option("--adopt", "adopt", metavar="NAME=ID", multiple=True, help="What a pending create made, by its id.")
@click.option("--clear", "clear", metavar="NAME", multiple=True, help="A pending create that made nothing.")
@click.option("--break-lock", is_flag=True, help="The run that holds the lock on another machine has ended.")
@click.option(
    "--settle",
    metavar="SECONDS",
    default=60,
    show_default=True,
    type=click.IntRange(min=0),
    help="After the last sign of the killed run, before what is not found counts as not made.",
)
@click.option("--timeout", default=30, show_default=True, type=click.IntRange(min=1), help="Minutes for each wait.")
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
    """Put the state of STACK right after an `up` or a `destroy` that was killed, or of which a provider was: its lock,
    each operation that was under way, and what it does not know.

    What the run made and the state does not have is adopted into it, what it did not make is cleared, and every
    resource is read again. Nothing is guessed: of what nothing proves, a line says so, and --adopt or --clear
    decides. Run it in the folder of the Pulumi program. Without --yes nothing is changed. Interrupted, run it again.
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
        raise CloudRefused(f"{stack}: a killed run is not put right", f"stacks recover {stack} --yes")
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

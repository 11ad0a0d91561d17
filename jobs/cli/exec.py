"""`jobs exec`."""

import click

from accel.console.options import Settings, WholeNumber
from accel.console.verb import Verb


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1)
@click.option(
    "--task", "--node", "task", type=WholeNumber(min=0), metavar="INDEX", help="Run in this task or node only."
)
@click.option("--stdin", "-i", is_flag=True, help="Pass standard input to the command.")
@click.option(
    "--tty", "-t", is_flag=True, help="Give the command a terminal, for example for a shell. Implies --stdin."
)
@click.option("--host", is_flag=True, help="Run on the machine instead of in the job's container.")
@click.option(
    "--check", is_flag=True, help="Check drivers, devices, disks, memory and clocks instead of running a command."
)
@click.pass_obj
def exec(
    settings: Settings,
    job: str,
    command: tuple[str, ...],
    task: int | None,
    stdin: bool,
    tty: bool,
    host: bool,
    check: bool,
) -> None:
    """Run COMMAND in every task or node of JOB that runs, such as `-- nvidia-smi`, and exit as it does.

    If the command runs in several, each line of output begins with the number of its task or node, and the exit code
    is the first that is not 0. With --check, the exit code is 125 if a machine fails the check.
    """
    # Imported late: execution needs pydantic and the targets' models, which --help does not.
    from .execution import execute

    code = execute(job, command, settings, task=task, stdin=stdin, tty=tty, host=host, check=check)
    click.get_current_context().exit(code)

"""`jobs exec`."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from accel.console.options import Settings
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput, Interrupted, JobsError
from accel.diagnostics.redaction import own

if TYPE_CHECKING:
    from ..backends.base import Exec, JobRef, Places


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.argument("command", metavar="[-- COMMAND...]", nargs=-1)
@click.option(
    "--task", "--node", "task", type=click.IntRange(min=0), metavar="INDEX", help="In this task or node only."
)
@click.option("--stdin", "-i", is_flag=True, help="Hand this command's standard input on.")
@click.option("--tty", "-t", is_flag=True, help="Give the command a terminal, for a shell; implies --stdin.")
@click.option("--host", is_flag=True, help="On the machine itself, not in the job's container.")
@click.option("--check", is_flag=True, help="Instead of a command: drivers, devices, disks, memory and clocks.")
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

    In several at once their lines have their numbers before them, and the exit code is the first that is not 0. With
    --check it is 125 where a machine is not as it should be.
    """
    # They need pydantic and the targets' models, which --help does not; so below.
    from ..backends.base import Exec
    from ..client import resolve
    from .exec_check import check as checked

    if check == bool(command):
        raise BadInput("--check: takes no COMMAND" if check else "COMMAND is missing", "`-- nvidia-smi`, or --check")
    if check and (stdin or tty):
        raise BadInput("--check: takes neither --stdin nor --tty")
    ref, backend = resolve.job(job, settings)
    if not isinstance(backend, Exec):
        raise BadInput(f"{ref}: no command can be run in jobs of kind {ref.kind}")
    if tty and not sys.stdin.isatty():
        raise BadInput("--tty: standard input is no terminal; leave it out, or use --stdin")
    try:
        places = backend.places(ref) if check or task is None else None
        if check and places:
            numbers = places.running if task is None else (task,)
            checked(backend, ref, places, numbers, host, settings.output)
            code = 0
        elif places is None or places.word is None:
            code = _one(backend, ref, command, task, stdin, tty, host)
        elif stdin or tty:
            shown = ", ".join(map(str, places.running[:6])) + (", ..." if len(places.running) > 6 else "")
            raise BadInput(f"{ref}: --{places.word} is missing; {places.word}s that run: {shown}")
        else:
            code = _several(backend, ref, command, places, host)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on, and so may the command") from None
    click.get_current_context().exit(code)


def _one(
    backend: "Exec", ref: "JobRef", command: tuple[str, ...], task: int | None, stdin: bool, tty: bool, host: bool
) -> int:
    from ..backends.base import Streams

    size = os.get_terminal_size(sys.stdin.fileno()) if tty else None
    streams = Streams(_write, _read if stdin or tty else None, None if size is None else (size.columns, size.lines))
    with _raw(tty):
        return backend.run(ref, command, streams, task=task, host=host)


def _several(backend: "Exec", ref: "JobRef", command: tuple[str, ...], places: "Places", host: bool) -> int:
    """The exit code of the first that failed."""
    from ..backends.base import Streams
    from ..client.fanout import Lines, everywhere

    lines = Lines(_write)

    def work(number: int) -> int:
        name = f"{places.word} {number}"
        streams = Streams(lambda is_error, data: lines.write(name, is_error, data))
        try:
            return backend.run(ref, command, streams, task=number, host=host)
        except JobsError as error:
            lines.write(name, True, f"error: {error.message}{f' ({error.hint})' if error.hint else ''}\n".encode())
            raise
        finally:
            lines.end(name)

    ends = everywhere(places.running, work).values()
    codes = [end.exit_code if isinstance(end, JobsError) else end for end in ends]
    return next((code for code in codes if code), 0)


def _read(most: int) -> bytes:
    return os.read(sys.stdin.fileno(), most)


def _write(to_stderr: bool, data: bytes) -> None:
    stream = own(sys.stderr if to_stderr else sys.stdout).buffer
    stream.write(data)
    stream.flush()


@contextmanager
def _raw(tty: bool) -> Generator[None]:
    """A terminal whose keys all go to the command, Ctrl-C too."""
    if not tty:
        yield
        return
    import termios
    import tty as terminal

    before = termios.tcgetattr(sys.stdin.fileno())
    try:
        terminal.setraw(sys.stdin.fileno())
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)

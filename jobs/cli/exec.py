"""`jobs exec`."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import click

from .settings import Settings
from .verb import Verb


@click.command(cls=Verb)
@click.argument("job", metavar="JOB")
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True)
@click.option("--task", "--node", "task", type=click.IntRange(min=0), metavar="INDEX", help="In this task or node.")
@click.option("--stdin", "-i", is_flag=True, help="Hand this command's standard input on.")
@click.option("--tty", "-t", is_flag=True, help="Give the command a terminal, for a shell; implies --stdin.")
@click.pass_obj
def exec(settings: Settings, job: str, command: tuple[str, ...], task: int | None, stdin: bool, tty: bool) -> None:
    """Run COMMAND in a task of JOB that runs, such as `-- nvidia-smi`, and exit as it does."""
    from ..backend import Exec, Streams
    from ..errors import BadInput, Interrupted
    from . import finding

    ref, backend = finding.job(job)
    if not isinstance(backend, Exec):
        raise BadInput(f"{ref}: no command can be run in jobs of kind {ref.kind}")
    if tty and not sys.stdin.isatty():
        raise BadInput("--tty: standard input is no terminal; leave it out, or use --stdin")
    size = os.get_terminal_size(sys.stdin.fileno()) if tty else None
    streams = Streams(_write, _read if stdin or tty else None, None if size is None else (size.columns, size.lines))
    try:
        with _raw(tty):
            code = backend.run(ref, command, streams, task=task)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {ref} goes on, and so may the command") from None
    click.get_current_context().exit(code)


def _read(most: int) -> bytes:
    return os.read(sys.stdin.fileno(), most)


def _write(to_stderr: bool, data: bytes) -> None:
    stream = sys.stderr.buffer if to_stderr else sys.stdout.buffer
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

"""`jobs runtime`."""

from pathlib import Path

import click

from accel.console.options import Settings
from accel.console.verb import Verb
from accel.diagnostics.errors import BadInput

from ..client.runtime_wheel import name, write


@click.command(cls=Verb)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path(), help="File or folder to write to. Default: this folder."
)
@click.pass_obj
def runtime(settings: Settings, out: Path) -> None:
    """Write accel_runtime, the package that training programs use inside a job, as one file.

    pip installs it in an image; with PYTHONPATH=FILE, Python imports it from the file.
    """
    try:
        path = write(out)
    except OSError as error:
        hint = f"a folder, or a file such as {name()}"
        raise BadInput(f"--out: {out} cannot be written: {error.strerror}", hint) from None
    click.echo(str(path))

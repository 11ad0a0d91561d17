"""`jobs import`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .report import say, warn
from .settings import OneOf, Settings
from .verb import Verb

if TYPE_CHECKING:
    from accel.contract.targets import AwsBatchTarget

BYTES_MAX = 1_000_000


class ImportVerb(Verb):
    """A verb whose -o is the form of a job file."""

    COMMON = ("targets", "strict", "debug")


@click.command("import", cls=ImportVerb)
@click.argument("backend", metavar="aws-batch", type=OneOf("aws-batch"))
@click.argument("file", metavar="FILE")
@click.option("-o", "--output", type=OneOf("yaml", "json"), default="yaml", help="Form of the job file.")
@click.pass_obj
def import_(settings: Settings, backend: str, file: str, output: str) -> None:
    """Print a job file for what `aws batch submit-job --cli-input-json` takes (- for standard input).

    What could not be carried is a warning, with the reason. The target is the one whose queue the request names,
    where the targets are known.
    """
    import yaml

    from ..backends.aws_batch.imported import fitted, imported
    from ..document import Document
    from ..errors import BadInput, BadInputs
    from ..yaml_tree import Tree

    name = "stdin" if file == "-" else file
    try:
        found = imported(_request(file))
    except BadInput as fault:
        raise BadInput(f"{name}: {fault.message}", fault.hint) from None
    to = fitted(found, _targets(settings))
    try:
        job = Document(name, Tree(found.values)).job()
    except BadInputs as faults:
        raise BadInputs(faults.messages, "the paths are those of the job file that the request would become") from None
    for note in found.notes:
        warn(f"{name}: {note}", settings)
    # As it was given, with values that are defaults too: a request says what it relies on.
    values = job.model_dump(exclude_unset=True)
    text = json.dumps(values, indent=2) + "\n" if output == "json" else yaml.safe_dump(values, sort_keys=False)
    click.echo(text, nl=False)
    if to:
        say(f"queue {found.queue}: submit it with --to {to}")
    else:
        say(f"queue {found.queue}: submit it with --to the target that has this queue; no known target has it")


def _request(file: str) -> dict[str, Any]:
    from accel import words

    from ..errors import BadInput, NotFound

    try:
        data = sys.stdin.buffer.read(BYTES_MAX + 1) if file == "-" else Path(file).read_bytes()
        document: Any = json.loads(data) if len(data) <= BYTES_MAX else None
    except FileNotFoundError:
        raise NotFound(f"{words.name_shown(file)}: no such file") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"line {error.lineno}: is not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', None) or 'it is not JSON'}") from None
    if not isinstance(document, dict):
        raise BadInput(f"must be one SubmitJob request of at most {BYTES_MAX // 1000} kB, is {words.shown(document)}")
    return document  # pyright: ignore[reportUnknownVariableType]


def _targets(settings: Settings) -> "dict[str, AwsBatchTarget]":
    from accel.contract.targets import AwsBatchTarget

    from .finding import targets

    entries = targets(settings).entries
    return {name: entry.target for name, entry in entries.items() if isinstance(entry.target, AwsBatchTarget)}

"""`jobs import`."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say, warn
from accel.console.options import OneOf, Settings
from accel.console.verb import Verb
from accel.contract.targets import AwsBatchTarget
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.diagnostics.redaction import own
from accel.diagnostics.yaml_positions import BYTES_MAX as LARGEST
from accel.diagnostics.yaml_positions import Tree

from ..client.resolve import targets
from ..importers.options import Form, Options, k80_replacement
from ..importers.reading import read_as_spaces
from ..model.document import Document

if TYPE_CHECKING:
    from accel.contract.targets import Target

    from ..importers.outcome import ImportResult

BYTES_MAX = 1_000_000
KINDS = ("aws-batch", "google-batch", "vertex", "ai-platform")
FORMS = {"custom-job": ("ai-platform",), "tuning": ("ai-platform",)}
"""Outputs beside a job file, and what they are for."""


class ImportVerb(Verb):
    """A verb whose -o is the form of a job file."""

    COMMON = ("targets", "strict", "debug")


@click.command("import", cls=ImportVerb)
@click.argument("kind", metavar="|".join(KINDS), type=OneOf(*KINDS))
@click.argument("file", metavar="FILE")
@click.argument("flags", metavar="[-- FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o",
    "--output",
    type=OneOf("yaml", "json", *FORMS),
    default="yaml",
    help="A job file in YAML or JSON; of ai-platform also Vertex AI's CustomJob or HyperparameterTuningJob.",
)
@click.option("--report", "told", type=OneOf("text", "json"), default="text", help="Form of the report, on stderr.")
@click.option("--image", metavar="IMAGE", help="Run this image in place of the document's.")
@click.option("--k80-replacement", "k80", metavar="GPU", help="What replaces a K80 (ai-platform); T4 without it.")
@click.option(
    "--capacity",
    type=OneOf("spot", "flex-start"),
    help="How to have machines that cannot be had on demand (vertex).",
)
@click.option("--var", "variables", metavar="NAME=VALUE", multiple=True, help="A variable of a pasted command.")
@click.option(
    "--mount", "mounts", metavar="PATH=SOURCE", multiple=True, help="What is at a VM's folder (google-batch)."
)
@click.pass_obj
def import_(
    settings: Settings,
    kind: str,
    file: str,
    flags: tuple[str, ...],
    output: str,
    told: str,
    image: str | None,
    k80: str | None,
    capacity: str | None,
    variables: tuple[str, ...],
    mounts: tuple[str, ...],
) -> None:
    """Print a job file for another tool's job (- for standard input).

    \b
    aws-batch     what `aws batch submit-job --cli-input-json` takes
    google-batch  a Job of Google Batch, in JSON or YAML
    vertex        Vertex AI's config.yaml, a CustomJob, or a pasted `gcloud ai custom-jobs create`
    ai-platform   AI Platform Training's config.yaml, or a pasted `gcloud ai-platform jobs submit training`

    gcloud's own flags may follow -- and win over the file. A report says what became of each field; where one is
    refused or has to be decided, nothing is printed, and the exit code is 2.
    """
    options = {"--image": image, "--k80-replacement": k80, "--capacity": capacity, "--var": variables}
    given = {"flags after --": flags, **options, "--mount": mounts, f"-o {output}": output in FORMS}
    _apply_to(kind, given, output)
    if kind == "aws-batch":
        _aws_batch(settings, file, output)
        return
    name = "stdin" if file == "-" else file
    if kind == "google-batch":
        from ..importers import google_batch

        chosen = google_batch.Options(image, _pairs("--mount", mounts))
        found = google_batch.imported(name, _data(file), chosen)
    else:
        found = _for_vertex(kind, name, _data(file), flags, output, {**options, "--var": _pairs("--var", variables)})
    stops = found.report.stops
    strict = [] if not settings.strict else found.report.of("changed", "decision")
    if told == "json":
        click.echo(json.dumps({"file": name, **found.report.as_json()}, indent=2), err=True)
    else:
        _say(found, stops)
    if stops or strict:
        if told == "json":
            click.get_current_context().exit(BadInput.exit_code)
        _refuse(name, stops or strict, by_strict=not stops)
    _print(found, name, output)
    _to(settings, kind, found)


def _apply_to(kind: str, given: dict[str, Any], output: str) -> None:
    """Raises BadInput for an option that is for another kind of document."""
    of = {
        "flags after --": ("vertex", "ai-platform"),
        "--image": KINDS[1:],
        "--k80-replacement": ("ai-platform",),
        "--capacity": ("vertex",),
        "--var": ("vertex", "ai-platform"),
        "--mount": ("google-batch",),
        f"-o {output}": FORMS.get(output, KINDS),
    }
    for name, value in given.items():
        if value and kind not in of[name]:
            raise BadInput(f"{name}: {'are' if name.startswith('flags') else 'is'} for {' and '.join(of[name])}")


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise BadInput(f"{option}: must be <name>=<value>, is {text[:60]!r}")
        found[name] = value
    return found


def _for_vertex(
    kind: str, name: str, data: bytes, flags: tuple[str, ...], output: str, chosen: dict[str, Any]
) -> "ImportResult":
    form: Form = "custom-job" if output == "custom-job" else "tuning" if output == "tuning" else "job"
    k80 = k80_replacement(chosen["--k80-replacement"])
    options = Options(form, k80, chosen["--image"], chosen["--capacity"], chosen["--var"])
    if kind == "vertex":
        from ..importers import vertex

        return vertex.imported(name, data, flags, options)
    from ..importers import ai_platform

    return ai_platform.imported(name, data, flags, options)


def _say(found: "ImportResult", stops: list[Any]) -> None:
    stopping = {id(entry) for entry in stops}
    for entry in found.report.entries:
        if id(entry) not in stopping:
            say(f"{'note' if entry.kind == 'kept' and not entry.given else entry.kind}: {entry.text}")


def _refuse(name: str, entries: list[Any], *, by_strict: bool) -> None:
    hint = "they are no errors without --strict" if by_strict else None
    # One line for many fields of which the same is said.
    alike: dict[tuple[str, ...], list[Any]] = {}
    for entry in entries:
        alike.setdefault((entry.kind, *entry.why) if entry.why else (entry.field,), []).append(entry)
    raise BadInputs(
        [
            f"{name}: {first.kind}: {first.text}{f' (and {len(rest)} more fields)' * bool(rest)}"
            for first, *rest in alike.values()
        ],
        hint,
    )


def _print(found: "ImportResult", name: str, output: str) -> None:
    """The body in the service's form, or a job file that was checked."""
    import yaml

    if output in FORMS:
        click.echo(json.dumps(found.body, indent=2), own(sys.stdout))
        return

    try:
        job = Document(name, Tree(found.values)).job()
    except BadInputs as faults:
        raise BadInputs(faults.messages, "the paths are those of the job file that the document would become") from None
    values = job.model_dump(exclude_unset=True)
    text = json.dumps(values, indent=2) + "\n" if output == "json" else yaml.safe_dump(values, sort_keys=False)
    # The user's own file in another form: redacted it would be another job.
    click.echo(text, own(sys.stdout), nl=False)


def _to(settings: Settings, kind: str, found: "ImportResult") -> None:
    """Says which targets the job is for."""
    of = "google-batch" if kind == "google-batch" else "vertex"
    names = [
        name
        for name, target in _targets(settings).items()
        if target.kind == of and found.region in ("", getattr(target, "region", ""))
    ]
    where = f" in {found.region}" if found.region else ""
    if names:
        say(f"submit it with --to {' or '.join(names)}")
    else:
        say(f"submit it with --to a target of kind {of}{where}; no known target is one")


def _aws_batch(settings: Settings, file: str, output: str) -> None:
    import yaml

    from ..importers.aws_batch import fitted, imported

    name = "stdin" if file == "-" else file
    try:
        found = imported(_request(file))
    except BadInput as fault:
        raise BadInput(f"{name}: {fault.message}", fault.hint) from None
    queues = {name: target for name, target in _targets(settings).items() if isinstance(target, AwsBatchTarget)}
    to = fitted(found, queues)
    try:
        job = Document(name, Tree(found.values)).job()
    except BadInputs as faults:
        raise BadInputs(faults.messages, "the paths are those of the job file that the request would become") from None
    for note in found.notes:
        warn(f"{name}: {note}", settings)
    # As it was given, with values that are defaults too: a request says what it relies on.
    values = job.model_dump(exclude_unset=True)
    text = json.dumps(values, indent=2) + "\n" if output == "json" else yaml.safe_dump(values, sort_keys=False)
    click.echo(text, own(sys.stdout), nl=False)
    if to:
        say(f"queue {found.queue}: submit it with --to {to}")
    else:
        say(f"queue {found.queue}: submit it with --to the target that has this queue; no known target has it")


def _data(file: str) -> bytes:
    try:
        if file == "-":
            return read_as_spaces("stdin", sys.stdin.buffer.read(LARGEST + 1), say)
        with Path(file).open("rb") as opened:
            return read_as_spaces(file, opened.read(LARGEST + 1), say)
    except FileNotFoundError:
        raise NotFound(f"{messages.name_shown(file)}: no such file") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise BadInput(f"{messages.name_shown(file)}: cannot be read: {said}") from None


def _request(file: str) -> dict[str, Any]:
    try:
        data = sys.stdin.buffer.read(BYTES_MAX + 1) if file == "-" else Path(file).read_bytes()
        document: Any = json.loads(data) if len(data) <= BYTES_MAX else None
    except FileNotFoundError:
        raise NotFound(f"{messages.name_shown(file)}: no such file") from None
    except json.JSONDecodeError as error:
        raise BadInput(f"line {error.lineno}: is not JSON: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"cannot be read: {getattr(error, 'strerror', None) or 'it is not JSON'}") from None
    if not isinstance(document, dict):
        raise BadInput(
            f"must be one SubmitJob request of at most {BYTES_MAX // 1000} kB, is {messages.display(document)}"
        )
    return document  # pyright: ignore[reportUnknownVariableType]


def _targets(settings: Settings) -> "dict[str, Target]":
    return {name: entry.target for name, entry in targets(settings).entries.items() if entry.target is not None}

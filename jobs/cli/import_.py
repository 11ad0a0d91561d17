"""`jobs import`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accel.console.errors import say
from accel.console.options import OneOf, Settings
from accel.console.verb import Verb
from accel.contract.targets import AwsBatchTarget
from accel.diagnostics import messages
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.diagnostics.redaction import own
from accel.diagnostics.yaml_positions import BYTES_MAX, Tree

from ..client.targets import known_targets
from ..importers.kinds import KINDS, importer_of
from ..importers.names import suggestion
from ..importers.options import Capacity, Form, ImportOptions, k80_replacement
from ..importers.reading import check_size, file_bytes, read_as_spaces
from ..model.document import Document, JobDumper
from ..model.job import Job

if TYPE_CHECKING:
    from accel.contract.targets import Target

    from ..importers.outcome import ImportResult

FORMS: Mapping[str, Form] = {"custom-job": "custom-job", "tuning": "tuning"}


class KindOrFile(OneOf):
    """A kind of document, or the file itself."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)


class ImportVerb(Verb):
    """A verb whose -o is the form of a job file."""

    COMMON = ("targets", "strict", "debug")


@click.command("import", cls=ImportVerb)
@click.argument("kind", metavar=f"[{'|'.join(KINDS)}]", type=KindOrFile(*KINDS))
@click.argument("file", metavar="FILE", required=False)
@click.argument("flags", metavar="[-- FLAGS]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-o",
    "--output",
    type=OneOf("yaml", "json", *FORMS),
    default="yaml",
    help="A job file as YAML or JSON; for ai-platform also Vertex AI's CustomJob or HyperparameterTuningJob.",
)
@click.option(
    "--report", "told", type=OneOf("text", "json"), default="text", help="Format of the report, which goes to stderr."
)
@click.option("--image", metavar="IMAGE", help="Image to use in place of the document's.")
@click.option("--k80-replacement", "k80", metavar="GPU", help="Replacement of a K80 (ai-platform). Default: T4.")
@click.option(
    "--capacity",
    type=OneOf("spot", "flex-start"),
    help="Provisioning of machines that are not available on demand (vertex).",
)
@click.option(
    "--var", "variables", metavar="NAME=VALUE", multiple=True, help="Value of a variable in a pasted command."
)
@click.option(
    "--mount", "mounts", metavar="PATH=SOURCE", multiple=True, help="Source of a folder that the document only names."
)
@click.pass_obj
def import_(
    settings: Settings,
    kind: str,
    file: str | None,
    flags: tuple[str, ...],
    output: str,
    told: str,
    image: str | None,
    k80: str | None,
    capacity: Capacity | None,
    variables: tuple[str, ...],
    mounts: tuple[str, ...],
) -> None:
    """Print a job file for another tool's job (- for standard input).

    \b
    aws-batch     a SubmitJob request, a job definition, a described job, or a pasted `aws batch submit-job`
    google-batch  a Job of Google Batch, or a pasted `gcloud batch jobs submit`
    vertex        Vertex AI's config.yaml, a CustomJob, or a pasted `gcloud ai custom-jobs create`
    ai-platform   AI Platform Training's config.yaml, or a pasted `gcloud ai-platform jobs submit training`
    slurm         a script with #SBATCH lines
    kubernetes    a manifest of a Job, a Pod, a JobSet, a PyTorchJob and the like
    skypilot      a task of SkyPilot
    dstack        a task of dstack
    xpk           a pasted `xpk workload create`

    Without a kind, the file is recognized by its keys or its command.

    gcloud's own flags may follow -- and win over the file. A report says what became of each field; where one is
    refused or has to be decided, nothing is printed, and the exit code is 2.
    """
    kind, file, flags = _words(kind, file, flags)
    name = "stdin" if file == "-" else file
    data: bytes | None = None
    if not kind:
        from ..importers.recognition import recognize

        data = _data(file)
        recognition = recognize(name, data)
        kind = recognition.kind
        if told == "text":
            say(f"{name}: {recognition.text}")
    options = {"--image": image, "--k80-replacement": k80, "--capacity": capacity, "--var": variables}
    given = {"flags after --": flags, **options, "--mount": mounts, f"-o {output}": output in FORMS}
    _apply_to(kind, given)
    data = _data(file) if data is None else data
    chosen = ImportOptions(
        image,
        _pairs("--var", variables),
        _pairs("--mount", mounts),
        flags,
        FORMS.get(output, "job"),
        k80_replacement(k80),
        capacity,
    )
    found = importer_of(kind)(name, data, chosen)
    to = _aws_batch_targets(settings, found) if kind == "aws-batch" else []
    stops = found.report.stops
    strict = [] if not settings.strict else found.report.of("changed", "decision")
    if told == "json":
        click.echo(json.dumps({"file": name, "kind": kind, **found.report.as_json()}, indent=2), err=True)
    else:
        _say(found, stops)
    if stops or strict:
        if told == "json":
            click.get_current_context().exit(BadInput.exit_code)
        _refuse(name, found, stops or strict, by_strict=not stops)
    _print(found, name, output)
    if found.queue:
        where = " or ".join(to) or "the target that has this queue; no known target has it"
        say(f"queue {messages.printable_name(found.queue)}: submit it with --to {where}")
    else:
        _to(settings, kind, found)


def _words(kind: str, file: str | None, flags: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Return kind, file and flags; the kind is empty where the first word is the file. Raises BadInput or NotFound."""
    if kind in KINDS:
        if file is None:
            raise BadInput(f"FILE: is missing: accel-jobs import {kind} FILE")
        return kind, file, flags
    rest = flags if file is None else (file, *flags)
    if kind != "-" and not _exists(kind):
        near = suggestion(kind, KINDS)
        if file is None and "did you mean" not in near:
            raise NotFound(f"{messages.printable_name(kind)}: no such file")
        raise BadInput(f"{messages.printable_name(kind)}: is no kind of document and no file{near}")
    if rest[:1] and rest[0] in KINDS:
        raise BadInput(f"{rest[0]}: stands before the file: accel-jobs import {rest[0]} FILE")
    return "", kind, rest


def _exists(file: str) -> bool:
    try:
        return Path(file).exists()
    except (OSError, ValueError):
        return False


def _aws_batch_targets(settings: Settings, found: "ImportResult") -> list[str]:
    from ..importers.aws_batch import fit_targets

    if found.report.stops:
        return []
    return fit_targets(
        found, {name: target for name, target in _targets(settings).items() if isinstance(target, AwsBatchTarget)}
    )


def _apply_to(kind: str, given: dict[str, Any]) -> None:
    """Raise BadInput for an option that is for another kind of document."""
    for name, value in given.items():
        if value and name not in KINDS[kind].options:
            of = [each for each, about in KINDS.items() if name in about.options]
            raise BadInput(f"{name}: {'are' if name.startswith('flags') else 'is'} for {' and '.join(of)}")


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise BadInput(f"{option}: must be <name>=<value>, is {text[:60]!r}")
        found[name] = value
    return found


def _say(found: "ImportResult", stops: list[Any]) -> None:
    said_later = {id(entry) for entry in stops}
    for entry in found.report.entries:
        if id(entry) not in said_later:
            say(f"{'note' if entry.kind == 'kept' and not entry.given else entry.kind}: {entry.text}")


def _refuse(name: str, found: "ImportResult", entries: list[Any], *, by_strict: bool) -> None:
    hint = "they are no errors without --strict" if by_strict else None
    # One line for all fields with the same message.
    alike: dict[tuple[str, ...], list[Any]] = {}
    for entry in entries:
        alike.setdefault((entry.kind, *entry.why) if entry.why else (entry.field,), []).append(entry)
    lines: list[str] = []
    for first, *rest in alike.values():
        more = f" (and {len(rest)} more field{'s' * (len(rest) > 1)})" if rest else ""
        lines.append(f"{found.report.places.get(first.field, name)}: {first.kind}: {first.text}{more}")
    raise BadInputs(lines, hint)


def _print(found: "ImportResult", name: str, output: str) -> None:
    import yaml

    if output in FORMS:
        click.echo(json.dumps(found.body, indent=2), own(sys.stdout))
        return

    try:
        job = Document(name, Tree(found.values), Job).job()
    except BadInputs as faults:
        raise BadInputs(faults.messages, "the paths are those of the job file that the document would become") from None
    values = job.model_dump(exclude_unset=True)
    text = (
        json.dumps(values, indent=2) + "\n"
        if output == "json"
        else yaml.dump(values, Dumper=JobDumper, sort_keys=False)
    )
    # Not redacted: this is the user's own file in another form, and redacted it would be another job.
    click.echo(text, own(sys.stdout), nl=False)


def _to(settings: Settings, kind: str, found: "ImportResult") -> None:
    """Print which targets the job is for."""
    of = found.targets or KINDS[kind].targets
    names = [
        name
        for name, target in _targets(settings).items()
        if (not of or target.kind in of) and found.region in ("", getattr(target, "region", ""))
    ]
    where = f" in {found.region}" if found.region else ""
    if names:
        say(f"submit it with --to {' or '.join(names)}")
    else:
        what = f" of kind {' or '.join(of)}" if of else ""
        say(f"submit it with --to a target{what}{where}; no known target is one")


def _data(file: str) -> bytes:
    name = "stdin" if file == "-" else file
    try:
        data = check_size(name, sys.stdin.buffer.read(BYTES_MAX + 1)) if file == "-" else file_bytes(Path(file))
    except FileNotFoundError:
        raise NotFound(f"{messages.printable_name(file)}: no such file") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise BadInput(f"{messages.printable_name(file)}: cannot be read: {said}") from None
    return read_as_spaces(name, data, say)


def _targets(settings: Settings) -> "dict[str, Target]":
    return {name: entry.target for name, entry in known_targets(settings).entries.items() if entry.target is not None}

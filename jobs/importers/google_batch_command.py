"""Reader of a pasted `gcloud batch jobs submit` as a Job: the file of --config, which flags override.
Source: https://cloud.google.com/sdk/gcloud/reference/batch/jobs/submit"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from accel.diagnostics.errors import BadInput
from accel.rules.gcp import zones
from accel.rules.jobs import imports

from . import gcloud, vertex_templates
from .google_batch_fields import BatchFields
from .reading import Json, named_file
from .report import Report
from .shell import MOMENT, REST, PastedCommand

VERB = "batch jobs submit"
FLAGS = {
    **dict.fromkeys(("--config", "--location", "--job-prefix", "--container-image-uri", "--script-text"), True),
    **dict.fromkeys(("--container-commands-file", "--container-entrypoint", "--script-file-path"), True),
    **dict.fromkeys(("--machine-type", "--priority", "--provisioning-model", "--network", "--subnetwork"), True),
    "--no-external-ip-address": False,
    "--async": False,
}
_RUNNABLE = ("taskGroups", 0, "taskSpec", "runnables", 0)
_POLICY = ("allocationPolicy", "instances", 0, "policy")
PLACES: Mapping[str, tuple[str | int, ...]] = {
    "--container-image-uri": (*_RUNNABLE, "container", "imageUri"),
    "--container-entrypoint": (*_RUNNABLE, "container", "entrypoint"),
    "--script-text": (*_RUNNABLE, "script", "text"),
    "--script-file-path": (*_RUNNABLE, "script", "text"),
    "--machine-type": (*_POLICY, "machineType"),
    "--provisioning-model": (*_POLICY, "provisioningModel"),
    "--priority": ("priority",),
}
OF_TARGET = ("--network", "--subnetwork", "--no-external-ip-address")
WORDS = "words of the command"


@dataclass
class Command:
    """Job that a command asks for, and the parts of the command to report that do not belong to the Job."""

    document: Json
    line: gcloud.CommandLine
    written: PastedCommand
    beside: dict[str, Any] = field(default_factory=dict[str, Any])
    secrets: list[str] = field(default_factory=list[str])
    named: str = ""

    @property
    def region(self) -> str:
        return (self.line.flags.get("--location") or [""])[-1]


def command(name: str, data: bytes, variables: Mapping[str, str]) -> Command:
    """Raise BadInput if the command, or a file that it names, cannot be read."""
    source = gcloud.source(name, data, (), variables, VERB, FLAGS, _take_words)
    line, written = source.lines[0]
    if written is None:
        raise BadInput(f"{name}: must hold one command `gcloud ... {VERB}`")
    found = Command(source.document, line, written, secrets=source.secrets)
    vertex_templates.fill(found.document, variables)
    written.written = [name for name in written.written if not is_meant(name, variables)]
    _name(found)
    for flag, values in line.flags.items():
        if flag == "--script-file-path":
            values = [_script(name, values[-1], written)]
        if flag in PLACES:
            value = gcloud.enum(values[-1]) if flag == "--provisioning-model" else values[-1]
            before = _put(found.document, PLACES[flag], value)
            if before is not None and before != value:
                found.beside[f"{flag} before"] = before
        elif flag not in ("--job-prefix",):
            found.beside[flag] = values[-1]
    found.beside |= {flag: line.unknown_values.get(flag, "") for flag in line.unknown}
    found.beside |= {WORDS: line.words[1:]} if line.words[1:] else {}
    found.beside |= {REST: written.rest} if written.rest else {}
    found.beside |= {"args after --": line.rest} if line.rest else {}
    return found


def is_meant(name: str, variables: Mapping[str, str]) -> bool:
    """Return whether a variable that is still in a text is there because the user gave it as a value."""
    return name in variables or f"${name}" in variables.values()


def _take_words(line: gcloud.CommandLine) -> None:
    line.words = [word for word in line.words if word not in ("gcloud", "alpha", "beta")][3:]


def _name(found: Command) -> None:
    """Put the job's name into the document, without the parts that make it different each time."""
    words, prefix = found.line.words, (found.line.flags.get("--job-prefix") or [""])[-1]
    text = words[0] if words else prefix
    if not text:
        return
    found.named = text
    for mark in found.written.unknown.values():
        if MOMENT.match(mark):
            text = text.replace(mark, "")
    if found.document.get("name", text) != text:
        found.beside["name of the file"] = found.document["name"]
    found.document["name"] = text.strip("-_ ") or "imported"


def _script(name: str, path: str, written: PastedCommand) -> str:
    if path in written.files:
        return written.files[path]
    return named_file(name, "--script-file-path", path)[0].decode(errors="replace")


def _put(document: Json, place: tuple[str | int, ...], value: str) -> Any:
    """Set the value at a place, in the document's own spelling. Return the previous value."""
    inside: Any = document
    for part, following in pairwise(place):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            if isinstance(inside, dict):  # a list of one that is written as its item
                continue
            items = cast(list[Any], inside)
            if not items:
                items.append(empty)
            if not isinstance(items[0], dict):
                return None
            inside = cast(Any, items[0])
            continue
        fields = cast(Json, inside)
        key = _spelt(fields, part)
        if not isinstance(fields.get(key), dict | list):
            fields[key] = empty
        inside = fields[key]
    fields = cast(Json, inside)
    key = _spelt(fields, cast(str, place[-1]))
    before = fields.get(key)
    fields[key] = value
    return before


def _spelt(inside: Json, name: str) -> str:
    snake = re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)
    return snake if snake in inside else name


def tell(given: BatchFields, found: Command) -> None:
    report, line, written = given.report, found.line, found.written
    for flag in line.flags:
        if flag == "--location":
            report.keep(flag, "the region of the target")
            report.findings(flag, zones.region(found.region))
        elif flag == "--config":
            report.keep(flag, why="is the file that was read")
        elif flag in OF_TARGET:
            report.changed(flag, None, "is the target's")
        elif flag == "--container-commands-file":
            report.refuse(flag, "is not read; write the commands into the file of --config")
        elif flag == "--async":
            report.changed(flag, None, "a job is always submitted without waiting for its end")
        elif flag == "--flags-file":
            report.refuse(flag, gcloud.FLAGS_FILE)
        elif flag not in FLAGS:
            report.changed(flag, None, "is for gcloud itself; a target has its own project and account")
        if f"{flag} before" in found.beside:
            report.changed(f"{flag} before", line.flags[flag][-1], f"{flag} wins over the file")
    if "name of the file" in found.beside:
        report.changed("name of the file", found.named, "the command's name wins over the file")
    for flag, why in line.unknown.items():
        report.refuse(flag, why)
    if line.words[1:]:
        report.refuse(WORDS, "the command takes one name; a value with spaces wants quotes")
    if line.rest:
        report.refuse("args after --", "the command has no `--`; a program's arguments are commands of the container")
    written.report_rest(report)
    _unknown(given, found, report)


def _unknown(given: BatchFields, found: Command, report: Report) -> None:
    """Report variables that a shell would have replaced, and ask for their values."""
    marks = {mark: name if re.fullmatch(r"\w+", name) else "" for name, mark in found.written.unknown.items()}
    written = [name for name in found.written.written if not name.startswith("BATCH_")]
    marks |= {f"${name}": name for name in written} | {f"${{{name}}}": name for name in written}
    lacking: list[str] = []
    for path, value in given.values.items():
        texts = cast("list[Any]", value) if isinstance(value, list) else [value]
        for mark, plain in marks.items():
            if any(isinstance(text, str) and mark in text for text in texts):
                at = given.name(path)
                report.findings(at, imports.variable(mark, plain, at))
                lacking.append(plain)
    for mark in marks:
        if mark in found.region:
            report.findings("--location", imports.variable(mark, marks[mark], "--location"))
            lacking.append(marks[mark])
        if mark in found.named and MOMENT.match(mark):
            why = f"{mark[:60]} makes each name another, and a job's reference is one anyway"
            report.changed(given.name("name"), given.values.get("name"), why)
    vertex_templates.ask_for_all(report, lacking)

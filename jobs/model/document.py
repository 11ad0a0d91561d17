"""Conversion between a job file and its model. All faults are reported, one line each with its place in the file:

job.yaml:12: accelerator.count: must be an integer, is 1.5
"""

import os
import sys
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import yaml
from pydantic import ValidationError

from accel.diagnostics import messages as words
from accel.diagnostics import yaml_positions
from accel.diagnostics.errors import BadInput, BadInputs, NotFound
from accel.diagnostics.no_break_spaces import BLANKS
from accel.diagnostics.redaction import SECRET_NAME
from accel.diagnostics.validation import did_you_mean, inside, locate_faults, path_of, place_name

from .fields import Part

AS_WRITTEN = frozenset({"command", "env", "secrets", "labels"})
"""Text-only fields, whose numbers keep their spelling: `3.10`, `007`."""
SPELT = AS_WRITTEN | {"sweep"}

FAULTS_MAX = 100

Values = dict[str, Any]
ModelT = TypeVar("ModelT", bound=Part)


class Document(Generic[ModelT]):
    """Values of a job file, each with its place, before the model checks them."""

    def __init__(self, name: str, tree: yaml_positions.Tree, model: type[ModelT], above: int = 0) -> None:
        """Take the values of a parsed document that stands below `above` lines of its file."""
        self.name, self._model = name, model
        self.values: Any = tree.value
        self.places: dict[yaml_positions.Path, str] = {
            path: f"{name}:{above + line}" for path, line in tree.lines.items()
        }
        self._unread = {fault.path for fault in tree.faults if fault.path is not None}
        self.faults = [f"{name}:{above + fault.line}: {fault.words}" for fault in tree.faults]
        self.notes = [f"{name}:{note}" for note in tree.notes]
        """Values that YAML reads differently from how they are written."""

    def set(self, text: str) -> None:
        """Apply `--set a.b=value`. The value is YAML, and so JSON too. Record a fault instead of raising."""
        dotted, equals, raw = text.partition("=")
        path = tuple(dotted.split("."))
        fault = _unknown(self._model, path) if dotted and equals else "expected <field>=<value>, such as cpus=4"
        place = f"--set {_visible(dotted, raw, of_no_field=fault is not None)}"
        if fault is None and not raw.strip() and path[0] not in AS_WRITTEN:
            fault = f"{dotted}: must have a value; null leaves the field out"
        if fault:
            self.faults.append(f"{place}: {fault}")
            return
        as_it_is = path[0] in AS_WRITTEN and len(path) > 1
        try:
            tree = (
                yaml_positions.Tree(raw) if as_it_is else yaml_positions.read(raw.encode(errors="replace"), SPELT, path)
            )
        except yaml_positions.Fault as error:
            self.faults.append(f"{place}: {dotted}: {error.words}")
            return
        self.faults += [f"{place}: {fault.words}" for fault in tree.faults]
        self._unread |= {fault.path for fault in tree.faults if fault.path is not None}
        self._put(path, tree.value, place)

    def set_env(self, text: str) -> None:
        """Apply `--env NAME=value`, or `--env NAME` for the value that the variable has here."""
        name, equals, value = text.partition("=")
        place = f"--env {words.printable_name(name)}"
        if not equals:
            if name not in os.environ:
                self.faults.append(f"{place}: is not set here; write {words.printable_name(name)}=<value>")
                return
            value = os.environ[name]
        self._put(("env", name), value, place)

    def set_name(self, name: str) -> None:
        self._put(("name",), name, "--name")

    def job(self) -> ModelT:
        """Raise BadInputs with every fault of the file and of its overrides."""
        if not _is_mapping(self.values):
            said = f"must be a mapping of fields (name, command, ...), is {words.display(self.values)}"
            raise BadInputs([*self.faults, f"{self._place(())}: {said}"])
        try:
            job = self._model.model_validate(self.values)
        except ValidationError as error:
            lines = [f"{self._place(path)}: {line}" for path, line in locate_faults(self._model, error, self._unread)]
            raise BadInputs(self._ordered([*self.faults, *lines])) from None
        if self.faults:
            raise BadInputs(self._ordered(self.faults))
        return job

    def placed(self, refused: BadInput) -> BadInputs:
        """Add the place in the file to each of a target's messages on this job's fields (`memory_mib: ...`)."""
        messages = refused.messages if isinstance(refused, BadInputs) else [refused.message]
        paths = [path_of(message.partition(":")[0]) for message in messages]
        return BadInputs(
            [
                f"{self._place(path) if path[0] in self._model.model_fields else self.name}: {message}"
                for path, message in zip(paths, messages, strict=True)
            ],
            refused.hint,
        )

    def _put(self, path: tuple[str, ...], value: Any, place: str) -> None:
        if self.values is None:
            self.values = {}
        inside: Any = self.values
        known: yaml_positions.Path = ()
        for part, after in pairwise(path):
            if isinstance(inside, dict):
                fields = cast(Values, inside)
                if fields.get(part) is None and not after.isdecimal():
                    fields[part] = {}
                inside, known = fields.get(part), (*known, part)
            elif isinstance(inside, list) and part.isdecimal() and int(part) < len(cast(list[Any], inside)):
                inside, known = cast(list[Any], inside)[int(part)], (*known, int(part))
            else:
                inside = None
        last = path[-1]
        if isinstance(inside, dict):
            inside[last] = value
            known = (*known, last)
        elif isinstance(inside, list) and last.isdecimal() and int(last) <= len(cast(list[Any], inside)):
            inside[int(last) : int(last) + 1] = [value]
            known = (*known, int(last))
        else:
            self.faults.append(f"{place}: there is nothing at {place_name(path[:-1])} to set it in")
            return
        self.places = {other: at for other, at in self.places.items() if other[: len(known)] != known}
        self.places[known] = place

    def _place(self, path: yaml_positions.Path) -> str:
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, self.name)

    def _ordered(self, faults: list[str]) -> list[str]:
        """Drop duplicates and sort by the file's lines, overrides last."""

        def line(fault: str) -> int:
            number = fault.removeprefix(f"{self.name}:").partition(":")[0]
            return int(number) if number.isdecimal() else sys.maxsize

        ordered = sorted(dict.fromkeys(faults), key=line)
        more = len(ordered) - FAULTS_MAX
        return ordered if more <= 0 else [*ordered[:FAULTS_MAX], f"{self.name}: and {more} more faults"]


def document_of(job: Part | Values, model: type[ModelT]) -> Document[ModelT]:
    values = job.model_dump(exclude_unset=True) if isinstance(job, Part) else deepcopy(job)
    return Document("Job", yaml_positions.Tree(values), model)


def parse(data: bytes, name: str, model: type[ModelT], above: int = 0) -> Document[ModelT]:
    """Raise BadInputs where the text is no YAML at all. `above` is the number of lines before the text in its file."""
    try:
        return Document(name, yaml_positions.read(data, SPELT), model, above)
    except yaml_positions.Fault as fault:
        raise BadInputs([f"{name}:{above + fault.line}: {fault.words}"]) from None


def read(path: str, model: type[ModelT]) -> Document[ModelT]:
    """Read a file's only document, or standard input for `-`. Raise NotFound, and BadInput where it cannot be read."""
    name, data = _bytes(path)
    return parse(data, name, model)


def read_all(path: str, model: type[ModelT]) -> list[Document[ModelT]]:
    """Raise BadInputs with the faults of all documents, and what `read` raises."""
    name, data = _bytes(path)
    if len(data) > yaml_positions.BYTES_MAX:
        return [parse(data, name, model)]  # which reports the size
    found: list[Document[ModelT]] = []
    faults: list[str] = []
    for above, text in yaml_positions.documents(data):
        try:
            found.append(parse(text, name, model, above))
        except BadInputs as error:
            faults += error.messages
    if faults:
        raise BadInputs(faults)
    return found


def jobs_of(documents: Sequence[Document[ModelT]]) -> list[ModelT]:
    """Raise BadInputs with every fault of every document."""
    jobs: list[ModelT] = []
    faults: list[str] = []
    for document in documents:
        try:
            jobs.append(document.job())
        except BadInputs as error:
            faults += error.messages
    if faults:
        raise BadInputs(list(dict.fromkeys(faults)))
    return jobs


def _bytes(path: str) -> tuple[str, bytes]:
    if path == "-":
        return "stdin", sys.stdin.buffer.read(yaml_positions.BYTES_MAX + 1)
    try:
        with Path(path).open("rb") as file:
            return path, file.read(yaml_positions.BYTES_MAX + 1)
    except FileNotFoundError:
        raise NotFound(f"{words.printable_name(path)}: no such file") from None
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{words.printable_name(path)}: cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None


def dump(job: Part) -> str:
    """Return the text of a job file; reading it gives an equal job."""
    return yaml.dump(job.model_dump(exclude_defaults=True), Dumper=JobDumper, sort_keys=False, allow_unicode=True)


class JobDumper(yaml.SafeDumper):
    """Dumper that writes scripts as blocks, and quotes texts with no-break spaces, which YAML reads as spaces outside
    quotes, or with Unicode line breaks, which YAML takes for line breaks."""


BREAKS = "\x85\u2028\u2029"
"""Source: https://yaml.org/spec/1.1/#b-generic"""


def _text(dumper: JobDumper, data: str) -> yaml.ScalarNode:
    style = '"' if any(each in data for each in BLANKS + BREAKS) else "|" if "\n" in data else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", data, style=style)


JobDumper.add_representer(str, _text)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _unknown(of: type[Part], path: tuple[str, ...]) -> str | None:
    """Return the fault of a path to set; None for a known field."""
    model: Any = of
    for depth, part in enumerate(path):
        if model is dict or (model is list and depth == len(path) - 1):
            return None
        if not (isinstance(model, type) and issubclass(model, Part)):
            return f"{place_name(path[:depth])} has no fields"
        if part.isdecimal():  # an item of a list of models
            continue
        if part not in model.model_fields:
            known = [".".join([*path[:depth], name]) for name in model.model_fields]
            return f"unknown field {place_name(path)}{did_you_mean(place_name(path[: depth + 1]), known)}"
        model = inside(model.model_fields[part].annotation)
    return None


def _visible(dotted: str, raw: str, *, of_no_field: bool) -> str:
    """Return an override as messages may show it; of an unknown field, whose value may be a secret, only numbers."""
    shown = words.printable_name(dotted)
    hidden = dotted.split(".")[0] in AS_WRITTEN or words.display(raw) == "text"
    hidden |= of_no_field and (not raw.isdecimal() or SECRET_NAME.search(dotted) is not None)
    return shown if hidden else f"{shown}={words.printable_name(raw)}"

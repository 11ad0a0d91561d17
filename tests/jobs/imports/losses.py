"""Silent losses of an import: leaves of a file of which nothing is said, and leaves that are said to be kept while the
job is the same with another value."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from accel.diagnostics.errors import BadInput
from jobs.importers.heredoc_documents import document_in
from jobs.importers.outcome import ImportResult
from jobs.importers.reading import leaves
from tests.jobs.imports.sample_files import import_file


def silent_losses(path: Path, data: bytes, result: ImportResult, options: dict[str, Any]) -> list[str]:
    """Return the leaves that are lost, with how. `options`: those with which the result was made."""
    entries = {entry.field: entry for entry in result.report.entries}
    fields = result.report.fields
    faults = [f"{name}: nothing is said of it" for name in fields if name not in entries]
    documents = documents_of(path, data)
    if documents is not None:
        named = {_spelt(name) for name in fields}
        faults += [f"{leaf}: is not in the report" for leaf in _leaves(documents) if not _ends(named, _spelt(leaf))]
    if result.report.stops:
        return faults  # no job, in which a value could be
    source = data if documents is None else dumped(documents)
    base = _signature(path, source, options)
    for entry in entries.values():
        if entry.kind == "kept" and entry.given and not entry.why:
            others = _texts(data, entry.field, fields) if documents is None else _changes(documents, entry.field)
            if (tried := list(others)) and all(_signature(path, other, options) == base for other in tried):
                faults.append(f"{entry.field}: is kept, and the job is the same with another value")
    return faults


def documents_of(path: Path, data: bytes) -> list[Any] | None:
    """The documents of a file with all values as text, as the loader makes them; None for a script or a template."""
    text = data.decode()
    inside = document_in(text)
    if path.suffix == ".sh" and inside is None:
        return None
    if path.suffix == ".sbatch":
        return None
    try:
        return [each for each in yaml.load_all(inside or text, yaml.BaseLoader) if each]
    except yaml.YAMLError:  # a template, whose places are not filled in
        return None


def dumped(documents: list[Any]) -> bytes:
    return yaml.safe_dump_all(documents, sort_keys=False, width=10_000).encode()


def _leaves(documents: list[Any]) -> list[str]:
    return [leaf for document in documents for leaf, _ in leaves(document)]


def _spelt(name: str) -> str:
    return name.replace("[0].", ".")  # a list of one may be written as its item


def _ends(names: set[str], leaf: str) -> bool:
    return any(name == leaf or name.endswith(f".{leaf}") for name in names)


def places(value: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each leaf: its name as leaves() spells it, what holds it, and the key or index in that."""
    names = {key: f"{path}.{key}" if path else str(key) for key in value} if isinstance(value, dict) else None
    for key, name in (names or {index: f"{path}[{index}]" for index in range(len(value))}).items():
        inner = value[key]
        if isinstance(inner, dict) or (
            isinstance(inner, list) and any(isinstance(each, dict | list) for each in inner)
        ):
            yield from places(inner, name)
        else:
            yield name, value, key


def _changes(documents: list[Any], name: str) -> Iterator[bytes]:
    """The documents with other values of a leaf; none for one that the file does not write, such as a flag's."""
    for document in documents:
        for leaf, holder, key in places(document):
            if _ends({name}, leaf):
                old = holder[key]
                for other in [[*old, "zz7"], ["zz7"]] if isinstance(old, list) else [f"{old}7", "7", "zz7", "false"]:
                    holder[key] = other
                    yield dumped(documents)
                    holder[key] = old


def _texts(data: bytes, name: str, fields: Mapping[str, Any]) -> Iterator[bytes]:
    """The script with another word in each place where the longest words of a leaf stand."""
    text = data.decode()
    words = sorted(re.findall(r"[\w./:@-]*\w", f"{fields[name]}"), key=len, reverse=True)
    for word in [*words[:3], *re.findall(r"\w+", name)]:
        for found in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text):
            for other in (f"{word}7", "7", "zz7"):
                yield (text[: found.start()] + other + text[found.end() :]).encode()


def _signature(path: Path, data: bytes, options: dict[str, Any]) -> Any:
    """All that an import says and makes, without the values that the report repeats."""
    try:
        found = import_file(path, data, **options)
    except BadInput as error:
        return str(error)
    said = [(entry.kind, entry.field, entry.why) for entry in found.report.entries]
    body = found.body if "form" in options else None
    return found.values, body, found.queue, found.definition, found.region, found.targets, said

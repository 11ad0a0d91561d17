"""Sample values of a page that an import has taken for the author's own, such as gs://<BUCKET>."""

from collections.abc import Iterator
from typing import Any

from accel.rules.jobs import placeholders

from .outcome import ImportResult

_OF_PROGRAMS = frozenset({"command", "args", "env", "script", "commands", "entrypoint", "labels", "python_module"})
"""Fields of a job file whose words are a program's, which may look like anything."""
_OWN_NAMES = ("name", "path", "logs_path", "device_name")
"""Fields that name things of the job itself, which may well be called my-bucket, but not <BUCKET>."""


def refuse_unfilled(found: ImportResult) -> None:
    """Refuse each field of the document whose placeholder is in the job."""
    report = found.report
    if report.stops:
        return
    for at, text in _fields(found.values):
        if not placeholders.value(at, text) or (at.rpartition(".")[2] in _OWN_NAMES and "<" not in text):
            continue
        sources = [entry for entry in report.entries if entry.given and _holds(entry.old, text)]
        for field, old in [(entry.field, entry.old) for entry in sources] or [(at, text)]:
            texts = old if isinstance(old, list) else [old]
            report.findings(field, [each for text in texts for each in placeholders.value(field, str(text))])


def _holds(value: Any, text: str) -> bool:
    """Return whether a value of the document has a placeholder that is a part of a text."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and placeholders.value("", each) and (each in text or text in each):
            return True
    return False


def _fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _OF_PROGRAMS:
                yield from _fields(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _fields(inner, f"{path}[{at}]")

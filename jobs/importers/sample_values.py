"""Sample values of a page that an import has taken for the author's own, such as gs://<BUCKET>."""

from typing import Any, cast

from accel.rules.jobs import placeholders

from .outcome import ImportResult
from .reading import leaves

_OF_PROGRAMS = frozenset({"command", "args", "env", "script", "commands", "entrypoint", "labels", "python_module"})
"""Fields of a job file whose words are a program's, which may look like anything."""
_OWN_NAMES = ("name", "path", "logs_path", "device_name")
"""Fields that name things of the job itself, which may well be called my-bucket, but not <BUCKET>."""


def refuse_sample_values(found: ImportResult) -> None:
    """Refuse each field of the document whose placeholder is in the job."""
    report = found.report
    if report.stops:
        return
    for at, value in leaves(found.values):
        keys = [part.partition("[")[0] for part in at.split(".")]
        if _OF_PROGRAMS.intersection(keys):
            continue
        for text in _texts(value):
            if not placeholders.value(at, text) or (keys[-1] in _OWN_NAMES and "<" not in text):
                continue
            sources = [(entry.field, entry.old) for entry in report.entries if entry.given and _holds(entry.old, text)]
            for field, old in sources or [(at, text)]:
                report.findings(field, [each for word in _texts(old) for each in placeholders.value(field, word)])


def _holds(value: Any, text: str) -> bool:
    return any(placeholders.value("", each) and (each in text or text in each) for each in _texts(value))


def _texts(value: Any) -> list[str]:
    return [each for each in (cast(list[Any], value) if isinstance(value, list) else [value]) if isinstance(each, str)]

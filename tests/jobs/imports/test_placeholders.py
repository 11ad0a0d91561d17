"""No field of any kind takes a sample value of a page for the author's own: `<BUCKET>` never gets into a job's fields.

What a program reads may look like anything: its command, arguments and variables, and labels, which choose nothing.
"""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from accel.diagnostics.errors import BadInput
from tests.jobs.imports.losses import documents_of, dumped, places
from tests.jobs.imports.sample_files import Sample, import_file, samples

PLACEHOLDER = "<MODEL_BUCKET>"
OF_PROGRAMS = ("command", "args", "env", "script", "commands", "entrypoint", "labels", "python_module")
"""Fields of a job file whose words are the program's."""
READ = [each for each in samples() if each.outcome != "refused" and documents_of(each.path, each.path.read_bytes())]


@pytest.mark.parametrize("sample", READ, ids=lambda each: each.name)
def test_a_placeholder_is_refused_in_every_field(sample: Sample) -> None:
    documents = documents_of(sample.path, sample.path.read_bytes())
    assert documents
    taken: list[str] = []
    for document in documents:
        for leaf, holder, key in list(places(document)):
            old = copy.deepcopy(holder[key])
            for put in _filled_with_it(old):
                holder[key] = put
                taken += [f"{leaf} -> {found}" for found in _kept(sample, documents)]
            holder[key] = old
    assert not taken


def _filled_with_it(old: Any) -> list[Any]:
    if isinstance(old, list):
        return [[*old[:at], PLACEHOLDER, *old[at + 1 :]] for at in range(len(old))]
    return [PLACEHOLDER, f"{old}/{PLACEHOLDER}"]


def _kept(sample: Sample, documents: list[Any]) -> Iterator[str]:
    """Where the job has the placeholder, though nothing was refused."""
    try:
        found = import_file(sample.path, dumped(documents), **sample.options)
    except BadInput:
        return
    if not found.report.stops:
        yield from _holding(yaml.safe_load(yaml.safe_dump(found.values)))


def _holding(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if PLACEHOLDER in value:
            yield path
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if key not in OF_PROGRAMS:
                yield from _holding(inner, f"{path}.{key}")

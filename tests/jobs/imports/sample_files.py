"""The files of samples/ and of tests/golden/imports, what is expected of each, and what an import makes of it."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from accel.diagnostics.errors import BadInput
from accel.diagnostics.yaml_positions import Tree
from jobs.importers.kinds import importer_of
from jobs.importers.options import ImportOptions
from jobs.importers.outcome import ImportResult
from jobs.importers.recognition import recognize
from jobs.model.document import Document
from jobs.model.job import Job

HERE = Path(__file__).parent / "samples"
GOLDEN = Path(__file__).parents[2] / "golden" / "imports"
Outcome = Literal["imported", "decisions", "refused"]


@dataclass(frozen=True)
class Sample:
    """A file, and what is expected of it. `decisions`: fields that its user has to decide on; `options`: those of the
    command that settle what is open; `says`: words of a refusal."""

    name: str
    outcome: Outcome
    decisions: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    says: str = ""

    @property
    def path(self) -> Path:
        folder, _, file = self.name.partition("/")
        return GOLDEN / file if folder == "golden" else HERE / self.name

    @property
    def kind(self) -> str:
        """The kind, which a refused file may not have by its content."""
        folder = self.name.partition("/")[0]
        return recognize(self.path.name, self.path.read_bytes()).kind if folder == "golden" else folder


@dataclass(frozen=True)
class Trial:
    """What came of a file. `result`: with the options that settle what is open, None if the file could not be read;
    `decisions`: fields that were decisions without these options."""

    outcome: Outcome
    said: str = ""
    result: ImportResult | None = None
    decisions: list[str] = field(default_factory=list)


def samples() -> Iterator[Sample]:
    """Yield the samples in the order of their names."""
    for name, expected in sorted(yaml.safe_load((HERE / "expected.yaml").read_text()).items()):
        yield Sample(name, **expected)


def import_file(path: Path, data: bytes, kind: str = "", **options: Any) -> ImportResult:
    """Import a file as the command does, with a kind or without."""
    chosen = replace(ImportOptions(), **options)
    return importer_of(kind or recognize(path.name, data).kind)(str(path), data, chosen)


def trial(sample: Sample) -> Trial:
    """Import a sample without options, and then with those that settle what is open."""
    data = sample.path.read_bytes()
    try:
        result = import_file(sample.path, data)
        settled = import_file(sample.path, data, **sample.options) if sample.options else result
    except BadInput as error:
        return Trial("refused", str(error))
    decisions = [entry.field for entry in result.report.of("decision")]
    if settled.report.stops:
        return Trial("refused", "; ".join(entry.text for entry in settled.report.stops), settled, decisions)
    if "form" not in sample.options:
        Document(sample.path.name, Tree(settled.values), Job).job()
    return Trial("decisions" if decisions or sample.options else "imported", "", settled, decisions)

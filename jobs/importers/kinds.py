"""Kinds of documents that can be imported: a description of each, and the options of the command that apply to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from .options import ImportOptions
from .outcome import ImportResult


@dataclass(frozen=True)
class DocumentKind:
    """Kind of document. `options`: the command's that apply; `targets`: kinds of targets of its jobs, empty for any."""

    text: str
    options: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()


FLAGS = "flags after --"
KINDS: Mapping[str, DocumentKind] = {
    "aws-batch": DocumentKind(
        "a SubmitJob request, job definition or described job of AWS Batch", frozenset({"--var"}), ("aws-batch",)
    ),
    "google-batch": DocumentKind(
        "a Job of Google Batch", frozenset({"--image", "--mount", "--var"}), ("google-batch",)
    ),
    "vertex": DocumentKind(
        "a custom job of Vertex AI", frozenset({FLAGS, "--image", "--capacity", "--var"}), ("vertex",)
    ),
    "ai-platform": DocumentKind(
        "a job of AI Platform Training",
        frozenset({FLAGS, "--image", "--k80-replacement", "--var", "-o custom-job", "-o tuning"}),
        ("vertex",),
    ),
    "slurm": DocumentKind("a Slurm batch script", frozenset({"--image", "--var", "--mount"})),
    "kubernetes": DocumentKind("a Kubernetes manifest", frozenset({"--image", "--var", "--mount"}), ("gke",)),
    "skypilot": DocumentKind("a task of SkyPilot", frozenset({"--image", "--var", "--mount"})),
    "dstack": DocumentKind("a task of dstack", frozenset({"--image", "--var", "--mount"})),
    "xpk": DocumentKind("a command of xpk", frozenset({"--image", "--var", "--mount"}), ("gke", "tpu-vm")),
}


class Importer(Protocol):
    """Reader of the job of a document. `name` is the file's. It raises BadInput if the document cannot be read."""

    def __call__(self, name: str, data: bytes, options: ImportOptions) -> ImportResult: ...


def importer_of(kind: str) -> Importer:
    """Load the importer here, since each has rules and libraries of its own."""
    read: Importer = import_module(f".{kind.replace('-', '_')}", __package__).import_job
    sample_values = import_module(".sample_values", __package__)

    def import_job(name: str, data: bytes, options: ImportOptions) -> ImportResult:
        found = read(name, data, options)
        sample_values.refuse_sample_values(found)
        return found

    return import_job

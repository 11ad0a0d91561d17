"""The kinds of documents that are imported: what each is, and which options of the command are for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DocumentKind:
    """A kind. `options`: those of the command that are for it; `targets`: kinds of targets that its jobs are for, none
    for any."""

    text: str
    options: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportOptions:
    """What the user chose for a kind without choices of its own. `mounts`: source by path."""

    image: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Mapping[str, str] = field(default_factory=dict[str, str])


FLAGS = "flags after --"
KINDS: Mapping[str, DocumentKind] = {
    "aws-batch": DocumentKind("a SubmitJob request of AWS Batch", frozenset({"--var"}), ("aws-batch",)),
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
}

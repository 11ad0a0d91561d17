"""How jobs are named and marked on Vertex AI."""

from dataclasses import dataclass

from ...backend import JobRef
from ...errors import BadInput
from ..google_batch.marks import JOBS, KEY, LABEL_MAX, MAKER, NAME, SPEC, TARGET, label_value, labelled

__all__ = ["JOBS", "KEY", "LABEL_MAX", "MAKER", "NAME", "SPEC", "TARGET", "Scope", "label_value", "labelled"]

KIND = "vertex"


@dataclass(frozen=True)
class Scope:
    """Where a job is; written `<project>.<region>`."""

    project: str
    region: str

    def __str__(self) -> str:
        return f"{self.project}.{self.region}"

    @classmethod
    def parse(cls, text: str) -> "Scope":
        """A project may have dots of its own, a region has none. Raises BadInput."""
        project, _, region = text.rpartition(".")
        if not (project and region):
            raise BadInput(f"job reference {KIND}:{text}/...: expected {KIND}:<project>.<region>/<number of the job>")
        return cls(project, region)

    @classmethod
    def of_parent(cls, parent: str) -> "Scope":
        """Of projects/<project>/locations/<region>."""
        _, project, _, region = parent.split("/")
        return cls(project, region)

    @property
    def api(self) -> str:
        """Vertex AI's of the region: the one for all places knows no custom jobs of a region."""
        return f"{self.region}-aiplatform"

    @property
    def parent(self) -> str:
        """Of its jobs, as Vertex names it."""
        return f"projects/{self.project}/locations/{self.region}"

    @property
    def jobs(self) -> str:
        """The path of its jobs, below the API's root."""
        return f"v1/{self.parent}/customJobs"

    def ref(self, number: str) -> JobRef:
        """The reference of a job there."""
        return JobRef(KIND, str(self), number)

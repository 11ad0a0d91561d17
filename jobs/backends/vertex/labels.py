"""How jobs are named and marked on Vertex AI."""

from dataclasses import dataclass
from typing import ClassVar

from ..google_regional import JOBS, KEY, LABEL_MAX, MAKER, NAME, SPEC, TARGET, Region, add_labels, label_value

__all__ = ["JOBS", "KEY", "LABEL_MAX", "MAKER", "NAME", "SPEC", "TARGET", "Scope", "add_labels", "label_value"]

KIND = "vertex"


@dataclass(frozen=True)
class Scope(Region):
    """Written `<project>.<region>`."""

    KIND: ClassVar[str] = KIND
    ID: ClassVar[str] = "number of the job"

    @property
    def api(self) -> str:
        """Vertex AI's of the region: the one for all places knows no custom jobs of a region."""
        return f"{self.region}-aiplatform"

    @property
    def jobs(self) -> str:
        """The path of its jobs, below the API's root."""
        return f"v1/{self.parent}/customJobs"

"""Names and labels of jobs on Vertex AI."""

from dataclasses import dataclass
from typing import ClassVar

from ..google_regional import JOBS, KEY, LABEL_MAX, MAKER, NAME, SPEC, TARGET, Region, add_labels, label_value

__all__ = ["JOBS", "KEY", "LABEL_MAX", "MAKER", "NAME", "SPEC", "TARGET", "Scope", "add_labels", "label_value"]

KIND = "vertex"


@dataclass(frozen=True)
class Scope(Region):
    """Place of a job, written `<project>.<region>`."""

    KIND: ClassVar[str] = KIND
    ID: ClassVar[str] = "number of the job"

    @property
    def api(self) -> str:
        """API of the region. The global one knows no custom jobs of a region."""
        return f"{self.region}-aiplatform"

    @property
    def jobs(self) -> str:
        return f"v1/{self.parent}/customJobs"

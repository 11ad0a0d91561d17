"""Names and labels of jobs on Google Batch."""

from dataclasses import dataclass
from typing import ClassVar

from ...model.keys import resource_name
from ..google_regional import JOBS, KEY, LABEL_MAX, MAKER, NAME, SPEC, TARGET, Region, add_labels, label_value

__all__ = ["JOBS", "KEY", "LABEL_MAX", "MAKER", "NAME", "SPEC", "TARGET", "Scope", "add_labels", "label_value"]

KIND = "google-batch"

GROUP = "group0"
"""Name of a job's only task group, as Batch assigns it: tasks are <job>/taskGroups/group0/tasks/<index>. Source:
https://docs.cloud.google.com/batch/docs/view-tasks"""

ID_MAX = 63
"""Source: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs/create"""


@dataclass(frozen=True)
class Scope(Region):
    """Place of a job, written `<project>.<region>`."""

    KIND: ClassVar[str] = KIND


def job_id(name: str) -> str:
    """Convert a platform name to the id of a job."""
    return resource_name(name, ID_MAX)

"""How jobs are named and marked on Google Batch."""

import re
from dataclasses import dataclass
from typing import Any

from ...backend import JobRef
from ...errors import BadInput
from ...keys import NAMED_DIGITS, content_hash

KIND = "google-batch"

MAKER, JOBS = "accel-maker", "jobs"
"""Label and value of every job that is made here."""
NAME = "accel-name"
"""Label: the job file's name, as far as a label can hold it."""
TARGET = "accel-target"
KEY = "accel-key"
"""Label: the submission key's first digits."""
SPEC = "accel-spec"
"""Label: hash of what was asked for, so that one key is not taken for another job."""

GROUP = "group0"
"""Name of a job's only task group, as Batch gives it: tasks are <job>/taskGroups/group0/tasks/<index>. Source:
https://docs.cloud.google.com/batch/docs/view-tasks"""

ID_MAX = 63
"""Source: https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs/create"""
LABEL_MAX = 63
"""Source: https://docs.cloud.google.com/batch/docs/organize-resources-using-labels"""

_NO_ID = re.compile(r"[^a-z0-9-]+")
_NO_LABEL = re.compile(r"[^a-z0-9_-]+")


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
            raise BadInput(f"job reference {KIND}:{text}/...: expected {KIND}:<project>.<region>/<job id>")
        return cls(project, region)

    @property
    def parent(self) -> str:
        """Of its jobs, as Batch names it."""
        return f"projects/{self.project}/locations/{self.region}"

    def ref(self, name: str) -> JobRef:
        """The reference of a job there."""
        return JobRef(KIND, str(self), name)


def job_id(name: str) -> str:
    """A platform name (see keys.platform_name) as Batch takes it: small letters, digits and hyphens, first a letter.
    Keeps the digits of the key."""
    head, _, digits = name.rpartition("-")
    plain = _NO_ID.sub("-", head.lower())
    if not plain[:1].isalpha():
        plain = f"j-{plain}"
    return f"{plain[: ID_MAX - NAMED_DIGITS - 1].strip('-')}-{digits}"


def labelled(job: dict[str, Any], name: str, key: str, target: str) -> dict[str, Any]:
    """The job with our labels beside its own. `name`: the job file's; `target`: the target's. The hash is of all that
    is not the key's."""
    own = {label: text for label, text in job.get("labels", {}).items() if label not in (KEY, SPEC)}
    marked = {**own, MAKER: JOBS, NAME: label_value(name), TARGET: label_value(target)}
    spec = content_hash({**job, "labels": marked})[:LABEL_MAX]
    return {**job, "labels": dict(sorted({**marked, KEY: key[:LABEL_MAX], SPEC: spec}.items()))}


def label_value(text: str) -> str:
    """As Google takes it. Source: https://docs.cloud.google.com/compute/docs/labeling-resources#label_format"""
    return _NO_LABEL.sub("-", text.lower())[:LABEL_MAX]

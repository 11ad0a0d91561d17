"""Labels and references of jobs on Google's regional services: Google Batch and Vertex AI."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

from accel.clouds.google.api import Google
from accel.clouds.timeouts import Timing
from accel.contract.google_jobs import GoogleJobsGround
from accel.contract.machine_labels import JOBS, MAKER, TARGET
from accel.diagnostics.errors import BadInput

from ..model.keys import content_hash
from .base import JobRef, PlatformBackend, RateLimitedBackend, TargetT

NAME = "accel-name"
KEY = "accel-key"
"""Label for the submission key's first digits."""
SPEC = "accel-spec"
"""Label for the hash of the request, so that one key is not taken for another job."""

LABEL_MAX = 63
"""Source: https://docs.cloud.google.com/batch/docs/organize-resources-using-labels"""

_PROJECT, _REGION = re.compile(r"[a-z0-9][a-z0-9.:-]*"), re.compile(r"[a-z0-9-]+")
"""Patterns for the parts of a request's address, so that a reference leads to Google alone."""
_NO_LABEL = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True)
class Region:
    """Place of a job, written `<project>.<region>`."""

    KIND: ClassVar[str]
    ID: ClassVar[str] = "job id"
    """The service's term for the name of a job."""

    project: str
    region: str

    def __str__(self) -> str:
        return f"{self.project}.{self.region}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise BadInput. A project may contain dots, a region has none."""
        project, _, region = text.rpartition(".")
        if not (_PROJECT.fullmatch(project) and _REGION.fullmatch(region)):
            form = f"{cls.KIND}:<project>.<region>/<{cls.ID}>"
            raise BadInput(f"job reference {cls.KIND}:{text}/...: expected {form}")
        return cls(project, region)

    @classmethod
    def of_target(cls, target: GoogleJobsGround) -> Self:
        return cls(target.project, target.region)

    @classmethod
    def of_parent(cls, parent: str) -> Self:
        """Parse projects/<project>/locations/<region>."""
        _, project, _, region = parent.split("/")
        return cls(project, region)

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"

    def ref(self, name: str) -> JobRef:
        return JobRef(self.KIND, str(self), name)


def add_labels(job: dict[str, Any], name: str, key: str, target: str) -> dict[str, Any]:
    """Add our labels to the job's own. `name` is the job file's. The hash covers what does not depend on the key."""
    own = {label: text for label, text in job.get("labels", {}).items() if label not in (KEY, SPEC)}
    marked = {**own, MAKER: JOBS, NAME: label_value(name), TARGET: label_value(target)}
    spec = content_hash({**job, "labels": marked})[:LABEL_MAX]
    return {**job, "labels": dict(sorted({**marked, KEY: key[:LABEL_MAX], SPEC: spec}.items()))}


def label_value(text: str) -> str:
    """Follow https://docs.cloud.google.com/compute/docs/labeling-resources#label_format."""
    return _NO_LABEL.sub("-", text.lower())[:LABEL_MAX]


RegionT = TypeVar("RegionT", bound=Region)
TimingT = TypeVar("TimingT", bound=Timing)


class GoogleRegionalBackend(
    RateLimitedBackend, PlatformBackend[TargetT, RegionT, TimingT], Generic[TargetT, RegionT, TimingT]
):
    """Shared part of the Google Batch and Vertex AI backends."""

    def _open(self, scope: RegionT, timing: TimingT | None) -> None:
        super()._open(scope, timing)
        self._google = Google(timing)

    def _at(self, ref: JobRef) -> tuple[Google, RegionT, JobRef]:
        ref = self._checked(ref)
        return self._google, self._scope, ref

"""customJobs.create, which has no idempotency. See jobs.backends.claims.submit for how one key makes one job."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accel.clouds.backoff import Lease
from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, line
from accel.diagnostics.errors import CloudSilent, OverLimit, Throttled

from ..base import JobRef, Request
from ..claims import submit as submission
from ..claims.claim import Claims
from ..claims.platform import ClaimedJob, Forgetting, Pace
from . import labels
from .labels import Scope
from .lookup import cancel, listed, number

QUOTA = re.compile(r"quota metrics exceed quota limits|quotas are exceeded", re.IGNORECASE)
"""Of a 429 that no waiting helps against. Sources: https://github.com/GoogleCloudPlatform/stable-diffusion-on-gcp/issues/12,
https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/264"""
MORE = "`accel-jobs doctor`, or the page of quotas in the console, shows the project's; Vertex AI has quotas of its own"


def submit(request: Request, google: Google, claims: Claims, pace: Pace, turn: Callable[[], None]) -> JobRef:
    """The job of request.key, made now or before; `turn` waits until a request may be sent.

    Raises BadInput where the key is another job's, NoCredentials, CloudRefused, NotFound and OverLimit where nothing
    was made, CloudSilent where that is not known: submit the same key again.
    """
    scope = Scope.of_parent(request.body["parent"])
    job_id, there = submission.submit(_Vertex(request, google, scope, pace, turn), claims)
    return replace(scope.ref(job_id), there=there)


class _Vertex:
    """Vertex AI, for one request. The job's labels hold the key."""

    def __init__(self, request: Request, google: Google, scope: Scope, pace: Pace, turn: Callable[[], None]) -> None:
        self.name = request.name
        self.key = request.key
        self._job: dict[str, Any] = request.body["customJob"]
        self.spec: str = self._job["labels"][labels.SPEC]
        self.pace = pace
        self.forgetting: Forgetting | None = None
        """Jobs stay until somebody deletes them: https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/delete"""
        self._google, self._scope, self._turn = google, scope, turn

    def turn(self) -> None:
        self._turn()

    def prepare(self, lease: Lease) -> None:
        """Nothing."""

    def send(self) -> str:
        try:
            answer = self._google.post(self._scope.api, self._scope.jobs, self._job)
        except Throttled as refused:
            if QUOTA.search(refused.message):
                raise OverLimit(refused.message, MORE) from refused
            raise
        found = number(answer)
        if found is None:
            raise CloudSilent(f"create custom job {self.name}: the answer is not the job: {line(answer)[:80]}", REACH)
        return found

    def listed(self) -> list[ClaimedJob]:
        """By the label, and by the whole of it: the filter's language is Google's own."""
        label = self._job["labels"][labels.KEY]
        found: list[ClaimedJob] = []
        for job in listed(self._google, self._scope, f'labels.{labels.KEY}="{label}"'):
            if job.labels.get(labels.KEY) == label:
                found.append(ClaimedJob(job.created_ms, job.number, str(job.labels.get(labels.SPEC, ""))))
        return found

    def stop(self, job_id: str, reason: str) -> None:
        cancel(self._google, self._scope, job_id)

"""Calls that change jobs: customJobs.create, resubmission, and cancellation. A create is not idempotent; see
jobs.backends.claims.submit for how one key makes one job."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from accel.clouds.backoff import Lease
from accel.clouds.google.api import Google
from accel.clouds.google.rest import REACH, line
from accel.contract.google_jobs import VertexTarget
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NotFound, OverLimit, Throttled

from ...model.keys import platform_name
from ..base import JobRef, Request
from ..claims import submit as submission
from ..claims.files import FileClaims
from ..claims.firestore import FirestoreClaims
from ..claims.platform import ClaimedJob, Forgetting, Pace
from . import labels
from .labels import KIND, Scope
from .lookup import ELSEWHERE, Job, look, number, path_segment, query_jobs

QUOTA = re.compile(r"quota metrics exceed quota limits|quotas are exceeded", re.IGNORECASE)
"""Words of a 429 that waiting does not help against. Sources:
https://github.com/GoogleCloudPlatform/stable-diffusion-on-gcp/issues/12,
https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/264"""
MORE = "`accel-jobs doctor`, or the page of quotas in the console, shows the project's; Vertex AI has quotas of its own"


def submit(
    request: Request, google: Google, target: VertexTarget | None, pace: Pace, turn: Callable[[], None]
) -> JobRef:
    """Return the job of request.key, created now or before. `turn` waits until a request may be sent. The key is
    claimed in the target's database, or without one on this machine alone. Raise BadInput if the key belongs to another
    job; NoCredentials, CloudRefused, NotFound and OverLimit if nothing was created; CloudSilent if that is unknown:
    submit it again."""
    scope = Scope.of_parent(request.body["parent"])
    database = target.claims if target else None
    claims = FirestoreClaims(google, database) if database else FileClaims(f"{KIND}:{request.body['parent']}")
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
        """None, because jobs stay until somebody deletes them:
        https://docs.cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs/delete"""
        self._google, self._scope, self._turn = google, scope, turn

    def turn(self) -> None:
        self._turn()

    def prepare(self, lease: Lease) -> None:
        """Do nothing."""

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
        """Compare the whole label here: the filter's language is Google's own."""
        label = self._job["labels"][labels.KEY]
        found: list[ClaimedJob] = []
        for job in query_jobs(self._google, self._scope, f'labels.{labels.KEY}="{label}"'):
            if job.labels.get(labels.KEY) == label:
                found.append(ClaimedJob(job.created_ms, job.number, str(job.labels.get(labels.SPEC, ""))))
        return found

    def stop(self, job_id: str, reason: str) -> None:
        cancel(self._google, self._scope, job_id)


SENT = ("jobSpec", "encryptionSpec")


def resubmit_request(google: Google, scope: Scope, ref: JobRef, key: str) -> Request:
    """Raise NotFound if the job has been deleted, BadInput if accel did not submit it."""
    job = look(google, scope, ref.id)
    if job.labels.get(labels.MAKER) != labels.JOBS:
        raise BadInput(f"{ref}: was not submitted by accel", "submit a job file")
    target, given = str(job.labels.get(labels.TARGET, "")), str(job.labels.get(labels.NAME, ""))
    name = platform_name(job.name.rpartition("-")[0], key)
    # The old name is in folders too. Its last twelve digits make it unmistakable.
    sent: dict[str, Any] = {each: job.body[each] for each in SENT if each in job.body}
    sent = json.loads(json.dumps(sent).replace(job.name, name))
    own = {label: text for label, text in job.labels.items() if not label.startswith("accel-")}
    labelled = labels.add_labels({"displayName": name, **sent, "labels": own}, given, key, target)
    return Request(labels.KIND, target, name, key, {"parent": scope.parent, "customJob": labelled})


def cancel(google: Google, scope: Scope, wanted: str) -> None:
    """Ask Vertex to stop the job, unless it has ended or is stopping. Raise NotFound."""
    if _over(look(google, scope, wanted)):
        return
    try:
        google.post(scope.api, f"{scope.jobs}/{path_segment(wanted)}:cancel", {}, repeat=True)
    except NotFound:
        raise NotFound(f"{scope.ref(wanted)}: Vertex AI knows no such job", ELSEWHERE) from None
    except CloudRefused:
        # It may have ended meanwhile, or an earlier attempt, whose answer was lost, was carried out.
        if not _over(look(google, scope, wanted)):
            raise


def _over(job: Job) -> bool:
    return job.state == "JOB_STATE_CANCELLING" or job.phase.ended

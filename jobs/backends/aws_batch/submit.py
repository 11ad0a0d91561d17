"""SubmitJob, and the job's own definition before it. See jobs.backends.claims.submit for how one key makes one job."""

import logging
from typing import Any

from accel.clouds.aws.clients import Clients
from accel.clouds.aws.errors import asking
from accel.clouds.backoff import Lease, now, patiently
from accel.diagnostics.errors import CloudSilent, Throttled

from ..base import JobRef, Request
from ..claims import submit as submission
from ..claims.claim import Claims
from ..claims.platform import ClaimedJob, Forgetting, Pace
from . import labels
from .lookup import find_jobs, terminate
from .request import KIND

FORGOTTEN_S = 6 * 86_400
"""Batch lists an ended job for seven days at least; past six, that none is listed proves nothing.
Source: https://docs.aws.amazon.com/batch/latest/userguide/job_states.html"""
FORGOTTEN = (
    "more than six days ago and no job is recorded; AWS Batch may have forgotten the job, "
    "so whether it ran is not known"
)
REGISTRATIONS = 3
REGISTERED_S = 60

log = logging.getLogger("accel.jobs.aws_batch")


def submit(request: Request, clients: Clients, claims: Claims) -> JobRef:
    """The job of request.key, made now or before.

    Raises BadInput where the key is another job's, NoCredentials and CloudRefused where nothing was made,
    CloudSilent where that is not known: submit the same key again.
    """
    job_id, there = submission.submit(_Batch(request, clients), claims)
    return JobRef(KIND, clients.region, job_id, there)


class _Batch:
    """AWS Batch, for one request. The job's name holds the key's digits, its tags the key."""

    def __init__(self, request: Request, clients: Clients) -> None:
        self.name = request.name
        self.key = request.key
        self._register: dict[str, Any] | None = request.body["register"]
        self._submit: dict[str, Any] = request.body["submit"]
        self.spec: str = self._submit["tags"][labels.SPEC]
        self._clients = clients
        self.pace: Pace = clients.timing
        self.forgetting: Forgetting | None = Forgetting(FORGOTTEN_S, FORGOTTEN)

    def turn(self) -> None:
        self._clients.submits.turn()

    def prepare(self, lease: Lease) -> None:
        """Makes sure of the job's own definition, once for the jobs of a minute. Two clients may register it at
        once: that makes two revisions of one content, either of which will do."""
        if self._register is None:
            return
        name, known = self._register["jobDefinitionName"], self._clients.registered
        with self._clients.registering[name]:
            if now() - known.get(name, -REGISTERED_S) >= REGISTERED_S:
                self._register_once(name, lease)
                known[name] = now()

    def send(self) -> str:
        """boto3 sends once; see clients.batch_once."""
        with asking(f"SubmitJob {self.name}"):
            answer = self._clients.batch_once.submit_job(**self._submit)
        job_id = answer.get("jobId")
        if not isinstance(job_id, str) or not job_id:
            raise CloudSilent(f"SubmitJob {self.name}: the answer has no job id")
        return job_id

    def listed(self) -> list[ClaimedJob]:
        return find_jobs(self._clients.batch, self._submit["jobQueue"], self.name, self.key)

    def stop(self, job_id: str, reason: str) -> None:
        terminate(self._clients.batch, job_id, reason)

    def _register_once(self, name: str, lease: Lease) -> None:
        for attempt in range(REGISTRATIONS):
            with asking(f"DescribeJobDefinitions {name}"):
                answer = self._clients.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")
            if answer.get("jobDefinitions"):
                return
            try:
                log.debug("registering")
                patiently(self._register_definition, lease, self.pace.call_s)
                log.debug("registered")
                return
            except Throttled:
                raise
            except CloudSilent:
                if attempt + 1 == REGISTRATIONS:
                    raise

    def _register_definition(self) -> None:
        assert self._register is not None
        with asking(f"RegisterJobDefinition {self._register['jobDefinitionName']}"):
            answer = self._clients.batch_once.register_job_definition(**self._register)
        if not answer.get("jobDefinitionArn"):
            raise CloudSilent("RegisterJobDefinition: the answer has no ARN")

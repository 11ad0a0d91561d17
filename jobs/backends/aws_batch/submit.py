"""SubmitJob, so that one key makes one job.

SubmitJob takes no token, so a lost answer cannot be asked for again. What is done instead, in this order:

1. claim   the key's row is put on the condition that there is none. Who loses waits for the winner's job id,
           or for the end of the winner's lease, and then takes the row over.
2. look    a claim that was taken over may have a job: it is looked for by name (the name holds the key), and
           the key in its tags is compared.
3. send    boto3 sends once. A throttled call was not accepted and is made again; any other 4xx is final.
4. doubt   after a timeout, a reset, a 5xx or an answer without a job id, nobody knows. The job is looked for
           until it shows or a quiet period has passed; then the call is made once more.
5. record  the job's id goes into the row, which is final from then on.

No call starts unless it ends, at its longest, before the lease does. What is left open: a process that is
suspended between that look at the clock and the send, for longer than the rest of its lease, may make a
second job when it wakes. It then finds another job in the row, and stops its own.
"""

import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from ...backend import JobRef, Request
from ...errors import BadInput, CloudRefused, CloudSilent, JobsError, NoCredentials, NotSent
from . import tags
from .claims import Claim, Claims
from .clients import Clients
from .errors import Throttled, asking
from .found import Found, named, terminate
from .patience import Lease, now, patiently, pause
from .render import KIND

WRITES = 3
"""Changes of a row that may stay unanswered."""
FORGOTTEN_S = 6 * 86_400
"""Batch lists an ended job for seven days at least; past six, that none is listed proves nothing.
Source: https://docs.aws.amazon.com/batch/latest/userguide/job_states.html"""
REGISTRATIONS = 3
REGISTERED_S = 60
WAIT_LEASES = 3
"""For how many leases of others a client waits."""

log = logging.getLogger("accel.jobs.aws_batch")


def submit(request: Request, clients: Clients, claims: Claims) -> JobRef:
    """The job of request.key, made now or before.

    Raises BadInput where the key is another job's, NoCredentials and CloudRefused where nothing was made,
    CloudSilent where that is not known: submit the same key again.
    """
    with claims.alone(request.key):
        return JobRef(KIND, clients.region, Submission(request, clients, claims).run())


class Submission:
    """One key, being submitted."""

    def __init__(self, request: Request, clients: Clients, claims: Claims) -> None:
        self._name = request.name
        self._key = request.key
        self._register: dict[str, Any] | None = request.body["register"]
        self._submit: dict[str, Any] = request.body["submit"]
        self._spec: str = self._submit["tags"][tags.SPEC]
        self._clients = clients
        self._timing = clients.timing
        self._claims = claims
        self._owner = uuid.uuid4().hex
        self._in_doubt = False
        """Whether a job of this key may exist that nobody has seen."""
        self._seen: set[str] = set()
        """Jobs of this key that were made or found here: one, but for what is left open above."""
        self._unwritten = 0
        """Changes of the row that were not answered."""
        self._again = "run the same command with the same --key again: it makes no second job"

    def run(self) -> str:
        """The job's id."""
        deadline = now() + WAIT_LEASES * self._timing.lease_s
        taken: Claim | None = None
        job_id: str | None = None
        while True:
            looked = now()
            try:
                claim = self._claims.read(self._key)
            except JobsError:
                if job_id is None:
                    raise
                return self._unrecorded(job_id)
            if claim and claim.spec_hash != self._spec:
                raise self._other_job(claim.job_name, claim.job_id)
            if claim and claim.job_id:
                return self._settled(claim.job_id)
            if job_id and (self._unwritten > WRITES or looked > deadline):
                return self._unrecorded(job_id)
            if looked > deadline:
                raise CloudSilent(f"{self._name}: another client holds its key and makes no job", self._again)
            if claim is None:
                taken = None
                self._claim(None)
            elif claim.owner == self._owner:
                lease = Lease(looked + claim.lease_until - self._claims.now())
                job_id = job_id or self._make(claim, taken, lease)
                self._write("recorded", partial(self._claims.finish, claim, job_id))
            elif claim.lease_until < self._claims.now():
                taken = claim
                self._claim(claim)
            else:
                pause(self._timing.poll_s)

    def _claim(self, seen: Claim | None) -> None:
        until = int(self._claims.now() + self._timing.lease_s)
        mine = Claim(self._key, self._spec, self._owner, until, self._name)
        log.debug("claiming")
        put = self._claims.put if seen is None else partial(self._claims.take_over, seen)
        self._write("claimed", partial(put, mine))

    def _write(self, done: str, change: Callable[[], None]) -> None:
        """A change of the row; the next read tells whether it was made. Raises after a few that AWS did not
        answer, unless there is a job, which counts for more than its row."""
        try:
            change()
        except JobsError as error:
            log.debug("unanswered: %s", error.message)
            self._unwritten += 1
            if not self._seen and (self._unwritten > WRITES or not isinstance(error, CloudSilent)):
                raise
            pause(self._timing.poll_s)
        log.debug(done)

    def _make(self, claim: Claim, taken: Claim | None, lease: Lease) -> str:
        """The id of a job that was found or made. After an error the claim is let go."""
        self._in_doubt = taken is not None
        try:
            job_id = self._made_before(taken, lease)
            if job_id is None:
                self._registered(lease)
                job_id = self._send(lease)
        except JobsError as error:
            self._let_go(claim)
            if self._in_doubt and not isinstance(error, BadInput):
                message = f"{error.message}; whether {self._name} was made is not known"
                raise CloudSilent(message, self._again) from error
            raise
        self._seen.add(job_id)
        return job_id

    def _made_before(self, taken: Claim | None, lease: Lease) -> str | None:
        """A job of an earlier claim; without a shared table, of another machine too."""
        if taken is None:
            return None if self._claims.shared else self._look(lease, 0)
        age_s = self._claims.now() - taken.lease_until
        job_id = self._look(lease, self._timing.quiet_s - age_s)
        if job_id is None and age_s > FORGOTTEN_S:
            raise self._forgotten()
        self._in_doubt = False
        return job_id

    def _send(self, lease: Lease) -> str:
        for last in (False, True):
            try:
                return patiently(self._submit_job, lease, self._timing.call_s, self._clients.submits.turn)
            except (Throttled, NotSent):
                raise
            except CloudSilent as error:
                log.debug("in doubt: %s", error.message)
                job_id = self._look(lease, self._timing.quiet_s)
                if job_id is not None:
                    return job_id
                if last:
                    raise
                self._in_doubt = False
        raise AssertionError

    def _submit_job(self) -> str:
        log.debug("sending")
        # Set first: an exception of any other kind, Ctrl-C too, also leaves the call in doubt.
        before, self._in_doubt = self._in_doubt, True
        try:
            with asking(f"SubmitJob {self._name}"):
                answer = self._clients.batch_once.submit_job(**self._submit)
        except (CloudRefused, NoCredentials, BadInput, Throttled):
            self._in_doubt = before
            raise
        log.debug("sent")
        job_id = answer.get("jobId")
        if not isinstance(job_id, str) or not job_id:
            raise CloudSilent(f"SubmitJob {self._name}: the answer has no job id")
        return job_id

    def _registered(self, lease: Lease) -> None:
        """Makes sure of the job's own definition, once for the jobs of a minute. Two clients may register it at
        once: that makes two revisions of one content, either of which will do."""
        if self._register is None:
            return
        name, known = self._register["jobDefinitionName"], self._clients.registered
        with self._clients.registering:
            if now() - known.get(name, -REGISTERED_S) >= REGISTERED_S:
                self._register_once(name, lease)
                known[name] = now()

    def _register_once(self, name: str, lease: Lease) -> None:
        for attempt in range(REGISTRATIONS):
            with asking(f"DescribeJobDefinitions {name}"):
                answer = self._clients.batch.describe_job_definitions(jobDefinitionName=name, status="ACTIVE")
            if answer.get("jobDefinitions"):
                return
            try:
                log.debug("registering")
                patiently(self._register_definition, lease, self._timing.call_s)
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

    def _look(self, lease: Lease, quiet_s: float) -> str | None:
        """The oldest job of this key, once one is listed; None if none was by the end of the quiet period."""
        until = now() + quiet_s
        wait_s = 0.2
        while True:
            found = self._listed()
            if found:
                self._seen.update(job.id for job in found)
                return min(found).id
            if found is not None and now() >= until:
                return None
            if not lease.allows(wait_s + self._timing.call_s):
                raise CloudSilent(f"{self._name}: whether it was made could not be seen in time", self._again)
            pause(wait_s)
            wait_s = min(2 * wait_s, 3)

    def _listed(self) -> list[Found] | None:
        """The jobs of this key; None where that cannot be seen just now."""
        try:
            found = named(self._clients.batch, self._submit["jobQueue"], self._name, self._key)
        except CloudSilent as error:
            log.debug("not seen: %s", error.message)
            return None
        except (CloudRefused, NoCredentials) as error:
            if not self._in_doubt:
                raise
            raise CloudSilent(f"whether {self._name} was made is not known: {error.message}", self._again) from error
        for job in found:
            if job.spec != self._spec:
                raise self._other_job(self._name, job.id)
        return found

    def _unrecorded(self, job_id: str) -> str:
        log.warning("%s was made as %s, but its claim could not be completed", self._name, job_id)
        return job_id

    def _settled(self, job_id: str) -> str:
        for other in sorted(self._seen - {job_id}):
            log.warning("%s is a duplicate of %s and is stopped", other, job_id)
            terminate(self._clients.batch, other, f"duplicate of {job_id}: the same submission key")
        return job_id

    def _let_go(self, claim: Claim) -> None:
        try:
            if self._in_doubt:
                self._claims.end_lease(claim)
            else:
                self._claims.forget(claim)
        except JobsError as error:
            log.debug("the lease ends by itself: %s", error.message)

    def _other_job(self, job_name: str, job_id: str | None) -> BadInput:
        return BadInput(
            f"key: it was used for another request: {job_name}{f' ({job_id})' if job_id else ''}",
            "submit the job as it was then, or use another --key",
        )

    def _forgotten(self) -> BadInput:
        return BadInput(
            f"key: it was claimed for {self._name} more than six days ago and no job is recorded; AWS Batch "
            "may have forgotten the job, so whether it ran is not known",
            "use another --key",
        )

"""Submission to a service without idempotency, so that one key makes one job.

Such a service accepts no token, so the answer to a request cannot be recovered once it is lost. The steps are:

1. claim   the key's row is created on the condition that there is none. The loser waits for the winner's job id,
           or for the end of the winner's lease, and then takes over the row.
2. look    a claim that was taken over may have a job: it is searched for by the key.
3. send    the request is sent once. A throttled call was not accepted and is repeated; any other 4xx is final.
4. doubt   after a timeout, a reset, a 5xx or an answer without a job id, the outcome is unknown. The job is searched
           for until it shows or a quiet period has passed; then the call is repeated once.
5. record  the job's id goes into the row, which is final from then on.

No call starts unless it ends, at its longest, before the lease does. One gap remains: a process that is suspended
between that check of the clock and the send, for longer than the rest of its lease, may create a second job when it
wakes. It then finds another job in the row, and stops its own.
"""

import logging
import uuid
from collections.abc import Callable
from functools import partial

from accel.clouds.backoff import Lease, now, patiently, pause
from accel.diagnostics.errors import (
    BadInput,
    CloudRefused,
    CloudSilent,
    JobsError,
    NoCredentials,
    NotFound,
    NotSent,
    OverLimit,
    Throttled,
    Unreached,
)

from ..same_key import AGAIN, other_request
from .claim import Claim, Claims
from .platform import ClaimedJob, Platform

WRITES = 3
"""Writes of a row that may stay unanswered."""
WAIT_LEASES = 3
"""Leases of other clients that a client waits for."""
NOT_MADE = (CloudRefused, NoCredentials, NotFound, BadInput, OverLimit, Throttled, Unreached)
"""Errors of a request that was sent and created no job."""

log = logging.getLogger("accel.jobs.claims")


def submit(platform: Platform, claims: Claims) -> tuple[str, bool]:
    """Return the job's id, and whether it existed before. Raise BadInput if the key belongs to another job,
    NoCredentials, CloudRefused, NotFound and OverLimit if nothing was created, CloudSilent if that is unknown: submit
    the same key again."""
    with claims.alone(platform.key):
        submission = _Submission(platform, claims)
        return submission.run(), not submission.sent


class _Submission:
    def __init__(self, platform: Platform, claims: Claims) -> None:
        self._platform = platform
        self._name, self._key, self._spec = platform.name, platform.key, platform.spec
        self._pace = platform.pace
        self._claims = claims
        self._owner = uuid.uuid4().hex
        self.sent = False
        """Whether this process sent a request that may have created the job."""
        self._in_doubt = False
        """Whether an unseen job of this key may exist."""
        self._seen: set[str] = set()
        """Jobs of this key that were created or found here: one, apart from the gap described above."""
        self._unwritten = 0
        self._absent = 0
        """Reads that found no claim."""

    def run(self) -> str:
        deadline = now() + WAIT_LEASES * self._pace.lease_s
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
                raise CloudSilent(f"{self._name}: another client holds its key and makes no job", AGAIN)
            if claim is None:
                taken = None
                self._absent += 1
                if self._absent > WRITES + 1:
                    raise CloudSilent(f"{self._name}: its claim was written, and cannot be read", AGAIN)
                self._claim(None)
            elif claim.owner == self._owner:
                lease = Lease(looked + claim.lease_until - self._claims.now())
                job_id = job_id or self._make(claim, taken, lease)
                self._write("recorded", partial(self._claims.finish, claim, job_id))
            elif claim.lease_until < self._claims.now():
                taken = claim
                self._claim(claim)
            else:
                pause(self._pace.poll_s)

    def _claim(self, seen: Claim | None) -> None:
        until = int(self._claims.now() + self._pace.lease_s)
        mine = Claim(self._key, self._spec, self._owner, until, self._name)
        log.debug("claiming")
        put = self._claims.put if seen is None else partial(self._claims.take_over, seen)
        self._write("claimed", partial(put, mine))

    def _write(self, done: str, change: Callable[[], None]) -> None:
        """Raise after several unanswered writes, unless there is a job, which counts for more than its row. The next
        read tells whether a write took effect."""
        try:
            change()
        except JobsError as error:
            log.debug("unanswered: %s", error.message)
            self._unwritten += 1
            if not self._seen and (self._unwritten > WRITES or not isinstance(error, CloudSilent)):
                raise
            pause(self._pace.poll_s)
        log.debug(done)

    def _make(self, claim: Claim, taken: Claim | None, lease: Lease) -> str:
        """Find or create the job. Release the claim after an error."""
        self._in_doubt = taken is not None
        try:
            job_id = self._made_before(taken, lease)
            if job_id is None:
                self._platform.prepare(lease)
                job_id = self._send(lease)
        except JobsError as error:
            self._let_go(claim)
            if self._in_doubt and not isinstance(error, BadInput):
                message = f"{error.message}; whether {self._name} was made is not known"
                raise CloudSilent(message, AGAIN) from error
            raise
        self._seen.add(job_id)
        return job_id

    def _made_before(self, taken: Claim | None, lease: Lease) -> str | None:
        """Return the job of an earlier claim; without a shared table, also one from another machine."""
        if taken is None:
            return None if self._claims.shared else self._look(lease, 0)
        age_s = self._claims.now() - taken.lease_until
        job_id = self._look(lease, self._pace.quiet_s - age_s)
        forgetting = self._platform.forgetting
        if job_id is None and forgetting and age_s > forgetting.after_s:
            raise BadInput(f"key: it was claimed for {self._name} {forgetting.words}", "use another --key")
        self._in_doubt = False
        return job_id

    def _send(self, lease: Lease) -> str:
        for last in (False, True):
            try:
                return patiently(self._send_once, lease, self._pace.call_s, self._platform.turn)
            except (Throttled, NotSent):
                raise
            except CloudSilent as error:
                log.debug("in doubt: %s", error.message)
                job_id = self._look(lease, self._pace.quiet_s) if self._in_doubt else None
                if job_id is not None:
                    return job_id
                if last:
                    raise
                if not self._in_doubt:
                    pause(self._pace.poll_s)  # nothing was sent
                self._in_doubt = False
        raise AssertionError

    def _send_once(self) -> str:
        log.debug("sending")
        # Set first: an exception of any other kind, Ctrl-C too, also leaves the call in doubt.
        before = self._in_doubt, self.sent
        self._in_doubt = self.sent = True
        try:
            job_id = self._platform.send()
        except NOT_MADE:
            self._in_doubt, self.sent = before
            raise
        log.debug("sent")
        return job_id

    def _look(self, lease: Lease, quiet_s: float) -> str | None:
        """Return the oldest job of the key once one is listed; None if none was by the end of the quiet period."""
        until = now() + quiet_s
        wait_s = 0.2
        while True:
            found = self._listed()
            if found:
                self._seen.update(job.id for job in found)
                return min(found).id
            if found is not None and now() >= until:
                return None
            if not lease.allows(wait_s + self._pace.call_s):
                raise CloudSilent(f"{self._name}: whether it was made could not be seen in time", AGAIN)
            pause(wait_s)
            wait_s = min(2 * wait_s, 3)

    def _listed(self) -> list[ClaimedJob] | None:
        """Return None if they cannot be listed just now."""
        try:
            found = self._platform.listed()
        except CloudSilent as error:
            log.debug("not seen: %s", error.message)
            return None
        except (CloudRefused, NoCredentials, NotFound) as error:
            if not self._in_doubt:
                raise
            raise CloudSilent(f"whether {self._name} was made is not known: {error.message}", AGAIN) from error
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
            self._platform.stop(other, f"duplicate of {job_id}: the same submission key")
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
        return other_request(f"{job_name} ({job_id})" if job_id else job_name)

"""Makes the job of a request, so that one key makes one job.

The job's id is made from the key and Batch takes an id once; for an hour it also knows the request's id. So a create
that was not answered is made again, and either is ignored or finds what the first one made. The key is remembered for
as long as the job is there: 60 days after its end. Sources:
https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs/create,
https://docs.cloud.google.com/batch/docs/view-jobs-tasks
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from accel.clouds.google.api import Conflict, Google
from accel.clouds.timeouts import pause
from accel.diagnostics.errors import BadInput, CloudRefused, CloudSilent, NoCredentials, NotFound, Throttled, Unreached

from ..base import JobRef, Request
from . import labels
from .labels import Scope
from .lookup import BatchJob, is_job, look
from .status import found_at

NEW = timedelta(minutes=2)
"""A job that was made longer ago was there before: clocks differ by less."""
AGAIN = "run the same command with the same --key again: it makes no second job"


def submit(request: Request, google: Google, turn: Callable[[], None] = lambda: None) -> JobRef:
    """The job of request.key, made now or before; `turn` waits until a request may be sent.

    Raises BadInput where the key is another job's, NoCredentials, CloudRefused and NotFound where nothing was made,
    CloudSilent where that is not known: submit the same key again.
    """
    scope = Scope.of_parent(str(request.body["parent"]))
    found, there = _made(google, scope, request, turn)
    asked: dict[str, Any] = request.body["job"]["labels"]
    if any(found.labels.get(label) != asked[label] for label in (labels.KEY, labels.SPEC)):
        raise BadInput(
            f"key: it was used for another request: {request.name}",
            "submit the job as it was then, or use another --key",
        )
    return replace(scope.ref(request.name), there=there)


def request_id(key: str) -> str:
    """A UUID for the key."""
    return str(uuid5(NAMESPACE_OID, f"accel:{key}"))


def _made(google: Google, scope: Scope, request: Request, turn: Callable[[], None]) -> tuple[BatchJob, bool]:
    """The job, and whether it was there before."""
    path, job, sent = f"v1/{scope.parent}/jobs", request.body["job"], request_id(request.key)
    attempts, in_doubt = google.timing.attempts, False
    for attempt in range(attempts):
        turn()
        try:
            answer = google.post("batch", path, job, jobId=request.name, requestId=sent)
            if is_job(answer, request.name):
                return BatchJob(answer), not in_doubt and _old(BatchJob(answer))
            silent: CloudSilent | None = CloudSilent(f"batch create {request.name}: the answer is not the job")
        except Conflict:
            silent = None
        except CloudSilent as error:
            silent = error
        except (CloudRefused, NoCredentials, NotFound) as refused:
            if not in_doubt:
                raise
            # One that was not answered may have been carried out.
            silent = CloudSilent(refused.message)
        not_made = isinstance(silent, Throttled | Unreached)
        there = silent is None and not in_doubt
        in_doubt = in_doubt or not (not_made or silent is None)
        found = None if not_made and not in_doubt else _there(google, scope, request.name)
        if found is not None:
            return found, there
        if silent is not None and attempt + 1 == attempts:
            unknown = f"; whether {request.name} was made is not known" if in_doubt else ""
            raise CloudSilent(f"{silent.message}{unknown}", AGAIN) from silent
        pause(google.timing, attempt)
    raise CloudSilent(f"{request.name}: its name is taken by what is being deleted, or cannot be seen just now", AGAIN)


def _old(job: BatchJob) -> bool:
    """Whether a create that was answered made no job: for an hour Batch knows the request's id, and answers with the
    job as it is."""
    created = found_at(job, "createTime")
    return job.state != "QUEUED" or (created is not None and datetime.now(UTC) - created > NEW)


def _there(google: Google, scope: Scope, name: str) -> BatchJob | None:
    """The job; None where it is not there, or going, or cannot be seen just now."""
    try:
        found = look(google, scope, name)
    except (NotFound, CloudRefused, CloudSilent, NoCredentials):
        return None
    return None if found.state == "DELETION_IN_PROGRESS" else found

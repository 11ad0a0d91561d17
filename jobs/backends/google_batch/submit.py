"""Calls that change jobs: idempotent submission, resubmission, and cancellation.

The job's id is derived from the key, and Batch accepts an id once; for an hour it also knows the request's id. So a
create without an answer is repeated, and is ignored or finds what the first one created. The key is remembered until 60
days after the job's end. Sources:
https://docs.cloud.google.com/batch/docs/reference/rest/v1/projects.locations.jobs/create,
https://docs.cloud.google.com/batch/docs/view-jobs-tasks
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from accel.clouds.google.api import Conflict, Google
from accel.clouds.google.rest import REACH, GarbledAnswer
from accel.clouds.timeouts import pause, with_retries
from accel.diagnostics.errors import CloudRefused, CloudSilent, NoCredentials, NotFound, Throttled, Unreached
from accel.json_values import entries, object_at

from ...model import sweep_tasks
from ...model.keys import NAMED_DIGITS, platform_name
from ..base import JobRef, Request
from ..same_key import AGAIN, other_request
from . import labels as marks
from .labels import Scope
from .lookup import GOING, KEPT, BatchJob, is_job, look, path_of
from .status import job_time, phase

NEW = timedelta(minutes=2)
"""Age from which a job existed before the request: clocks differ by less."""


def submit(request: Request, google: Google, turn: Callable[[], None] = lambda: None) -> JobRef:
    """Return the job of request.key, created now or before. `turn` waits until a request may be sent. Raise BadInput if
    the key belongs to another job, NoCredentials, CloudRefused and NotFound if nothing was created, CloudSilent if that
    is unknown: submit the same key again."""
    scope = Scope.of_parent(str(request.body["parent"]))
    found, there = _made(google, scope, request, turn)
    asked: dict[str, Any] = request.body["job"]["labels"]
    if any(found.labels.get(label) != asked[label] for label in (marks.KEY, marks.SPEC)):
        raise other_request(request.name)
    return replace(scope.ref(request.name), there=there)


def request_id(key: str) -> str:
    return str(uuid5(NAMESPACE_OID, f"accel:{key}"))


def _made(google: Google, scope: Scope, request: Request, turn: Callable[[], None]) -> tuple[BatchJob, bool]:
    """Return the job, and whether it existed before."""
    path, job, sent = f"v1/{scope.parent}/jobs", request.body["job"], request_id(request.key)
    attempts, in_doubt = google.timing.attempts, False
    for attempt in range(attempts):
        turn()
        try:
            answer = google.post("batch", path, job, jobId=request.name, requestId=sent)
            made = BatchJob(answer)
            if not is_job(answer, request.name):
                silent: CloudSilent | None = CloudSilent(f"batch create {request.name}: the answer is not the job")
            elif made.state == GOING:
                silent = None
            else:
                return made, not in_doubt and _old(made)
        except Conflict:
            silent = None
        except CloudSilent as error:
            silent = error
        except (CloudRefused, NoCredentials, NotFound) as refused:
            if not in_doubt:
                raise
            # A create without an answer may have been carried out.
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
    """Return whether an answered create made no job: for an hour Batch answers a known request's id with its job."""
    created = job_time(job, "createTime")
    return job.state != "QUEUED" or (created is not None and datetime.now(UTC) - created > NEW)


def _there(google: Google, scope: Scope, name: str) -> BatchJob | None:
    try:
        found = look(google, scope, name)
    except (NotFound, CloudRefused, CloudSilent, NoCredentials):
        return None
    return None if found.state == GOING else found


OUTPUT = ("name", "uid", "status", "createTime", "updateTime")
"""Fields that Batch sets and does not accept."""
PREDEFINED = ("goog-", "google-", "batch-job-id", "batch-job-uid", "batch-node")
"""Prefixes of Batch's own labels. Source: https://docs.cloud.google.com/batch/docs/organize-resources-using-labels"""


def resubmit_request(
    google: Google, scope: Scope, ref: JobRef, key: str, tasks: Sequence[int] | None = None
) -> Request:
    """Return the same job under a new key, or `tasks` of a sweep. Raise NotFound if Batch has forgotten the job."""
    found = look(google, scope, ref.id)
    name = str(found.labels.get(marks.NAME) or ref.id[: marks.ID_MAX - NAMED_DIGITS - 1])
    target = str(found.labels.get(marks.TARGET, ""))
    new = marks.job_id(platform_name(name, key))
    job = {field: value for field, value in found.body.items() if field not in OUTPUT}
    if marks.MAKER in found.labels:
        # The old id is in variables and folders too. Its last twelve digits make it unmistakable.
        job = json.loads(json.dumps(job).replace(ref.id, new))
    job["labels"] = _own(job.get("labels"))
    if "labels" in (allocation := object_at(job, "allocationPolicy")):
        job["allocationPolicy"] = {**allocation, "labels": _own(allocation["labels"])}
    groups = (object_at(each) for each in entries(job.get("taskGroups")))
    job["taskGroups"] = [{field: each[field] for field in each if field != "name"} for each in groups]
    if tasks is not None:
        _narrow(job["taskGroups"][0], tasks, ref)
    return Request(
        marks.KIND, target, new, key, {"parent": scope.parent, "job": marks.add_labels(job, name, key, target)}
    )


def _own(labels: Any) -> dict[str, Any]:
    return {name: text for name, text in object_at(labels).items() if not name.startswith(PREDEFINED)}


def _narrow(group: dict[str, Any], tasks: Sequence[int], ref: JobRef) -> None:
    spec: dict[str, Any] = object_at(group, "taskSpec")
    environment: dict[str, Any] = object_at(spec, "environment")
    told = sweep_tasks.narrow_environment(object_at(environment, "variables"), tasks, ref)
    group["taskSpec"] = {**spec, "environment": {**environment, "variables": dict(sorted(told.items()))}}
    most = {name: min(int(group[name]), len(tasks)) for name in ("parallelism", "taskCountPerNode") if group.get(name)}
    # Batch returns 64-bit integers as text: https://protobuf.dev/programming-guides/json/
    group |= {"taskCount": len(tasks), **most}


def cancel(google: Google, scope: Scope, ref: JobRef) -> None:
    """Ask Batch to stop the job, unless it has ended or is stopping. Raise NotFound."""
    if _over(look(google, scope, ref.id)):
        return
    request = {"requestId": str(uuid4())}

    def once() -> None:
        if "name" not in google.post("batch", f"{path_of(scope, ref.id)}:cancel", request):
            raise GarbledAnswer(f"batch: what was answered is not an operation that cancels {ref.id}", REACH)

    try:
        with_retries(google.timing, once)
    except NotFound:
        raise NotFound(f"{ref}: Batch knows no such job", KEPT) from None
    except CloudRefused:
        # It may have ended meanwhile, or an earlier attempt, whose answer was lost, was carried out.
        if not _over(look(google, scope, ref.id)):
            raise


def _over(job: BatchJob) -> bool:
    return job.state == "CANCELLATION_IN_PROGRESS" or phase(job).ended

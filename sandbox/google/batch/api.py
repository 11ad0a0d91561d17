"""Google Batch v1: jobs, their tasks, and the operations that cancel and delete them.

POST /sandbox-api/batch  {"task_lag_s": 2, "state_lag_s": 1, "agent": false, "seed": 7}: batch/settings.py;
                         {"end": TASK, "exitCode": 50002}: end a running task, with any of the reserved codes.
POST /sandbox-api/preempt {"name": NAME}: preempt Spot VMs; NAME of a job (all of its VMs), of a task, or of a VM:
                         projects/PROJECT/zones/ZONE/instances/NAME, as in the label hostname of log entries.
A fault's `delay_s` of batch.projects.locations.jobs.create is how much longer the job is QUEUED, its `fails` why it
fails when it is scheduled.
"""

import time
import uuid
from collections.abc import Callable
from typing import Any

from accel.catalog.places import regions

from .. import PROJECT, PROJECT_NUMBER
from ..errors import ApiError
from ..operations import begin
from ..verbs import matches
from ..world import Call, Collection, Json, Pending, World, by_id
from .attempt import CODES, PREEMPTED, time_of
from .checks import check_request, complete_job
from .job import OVER, Job
from .settings import change, settings

_JOBS, _TASKS = "batch.projects.locations.jobs", "batch.projects.locations.jobs.taskGroups.tasks"
_PAGE = 1000
_ORDERS = ("", "name", "name desc", "create_time", "create_time desc")  # the parameter's description


def _missing(name: str) -> ApiError:
    """Return the error for an unknown resource. Wording: https://github.com/nextflow-io/nextflow/issues/5422"""
    return ApiError(404, f'Resource "{name}" was not found')


def _job(call: Call, key: str) -> Job:
    found = call.world.live.get(f"batch/{key}")
    if found is None:
        raise _missing(key)
    return found


def _create(call: Call, collection: Collection) -> Json:
    """Return the first job for a repeated requestId, whatever the later request contains."""
    given = call.query.get("requestId")
    once = f"{call.method.id} {call.key} {given}"
    if given and (known := call.world.requests.get(once)) and (first := call.world.live.get(known["name"])):
        return first.as_json()
    name = check_request(call)
    key = f"{call.key}/{name}"
    if f"batch/{key}" in call.world.live:
        raise ApiError(409, f'Resource "{key}" already exists')  # worded as the error for an unknown resource
    made = complete_job(call, key, name)
    made |= {"uid": f"{name[:18]}-{str(uuid.uuid4())[:18]}0", "createTime": time_of(time.time())}
    plan = call.plan
    job = Job(call.world, key, made, plan.delay_s if plan else 0, plan.fails if plan else "")
    call.world.live[f"batch/{key}"] = job
    if given:
        call.world.requests[once] = {"name": f"batch/{key}"}
    _run(call.world, job)
    return job.as_json()


def _run(world: World, job: Job) -> None:
    """Run the job to its end, whether or not a client polls."""
    name = f"batch/{job.key}"

    def over() -> None:
        world.runs.pop(name, None)

    world.runs[name] = job
    world.pending.append(Pending("", 0, over, job.step))
    world.watch()


def _get(call: Call, collection: Collection) -> Json:
    return _job(call, call.key).as_json()


def _list(call: Call, collection: Collection) -> Json:
    place, anywhere, now = f"batch/{call.key}/", call.location == "-", time.monotonic()
    jobs = [
        job
        for name, job in sorted(call.world.live.items())
        if isinstance(job, Job) and (anywhere or name.startswith(place))
        if now - job.made >= call.world.list_lag_s
    ]
    order = call.query.get("orderBy", "")
    if order not in _ORDERS:
        raise ApiError(400, f"order_by field is invalid. {order!r} is not supported.")
    by: Callable[[Job], Any] = (lambda job: job.made) if order.startswith("create_time") else (lambda job: job.key)
    jobs.sort(key=by, reverse=order.endswith(" desc"))
    asked_for = call.query.get("filter", "")
    shown = [job.as_json() for job in jobs] if asked_for else jobs
    kept = [each for each in shown if isinstance(each, Job) or matches(each, asked_for)]
    return _page(call, "jobs", len(kept), lambda at: item.as_json() if isinstance(item := kept[at], Job) else item)


def _page(call: Call, name: str, count: int, shown: Callable[[int], Json]) -> Json:
    try:
        start, size = int(call.query.get("pageToken") or 0), int(call.query.get("pageSize") or 0)
    except ValueError:
        raise ApiError(400, "page_token field is invalid.") from None
    end = min(count, start + (size if 0 < size < _PAGE else _PAGE))
    found: Json = {name: [shown(at) for at in range(start, end)]} if start < end else {}
    return found | ({"nextPageToken": str(end)} if end < count else {})


def _listed_tasks(call: Call) -> Job:
    key, _, group = call.key.partition("/taskGroups/")
    job = _job(call, key)
    late = time.monotonic() - job.made < settings(call.world).task_lag_s
    if late or not job.listed or group.split("/")[0] != "group0":
        raise _missing(call.key.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/"))
    return job


def _get_task(call: Call, collection: Collection) -> Json:
    job, number = _listed_tasks(call), call.key.rpartition("/")[2]
    if not number.isdigit() or int(number) >= job.tasks.count:
        raise _missing(call.key.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/"))
    return job.task(int(number))


def _list_tasks(call: Call, collection: Collection) -> Json:
    job, given = _listed_tasks(call), call.query.get("filter", "").replace(" ", "")
    name, _, state = given.partition("=")
    if given and name.lower() not in ("state", "status.state"):
        raise ApiError(400, f"filter field is invalid. {given!r} is not of the form State=RUNNING.")
    wanted = state.strip('"')
    indexes = [at for at in range(job.tasks.count) if job.tasks.state(at) == wanted] if given else None
    if indexes is None:
        return _page(call, "tasks", job.tasks.count, job.task)
    return _page(call, "tasks", len(indexes), lambda at: job.task(indexes[at]))


def _cancel(call: Call, collection: Collection) -> Json:
    """Cancel a job, unless it has ended. Batch's answer for an ended job was not found."""
    job = _job(call, call.key)
    if job.state in OVER:
        said = f"Job {job.name} is in state {job.state} and cannot be cancelled."
        raise ApiError(400, said, "failedPrecondition", "FAILED_PRECONDITION")
    if job.state not in ("CANCELLATION_IN_PROGRESS", "DELETION_IN_PROGRESS"):
        job.leave("CANCELLATION_IN_PROGRESS")
    return _operation(call, job, "cancel", lambda: None)


def _delete(call: Call, collection: Collection) -> Json:
    job = _job(call, call.key)
    if job.state != "DELETION_IN_PROGRESS":
        was_over = job.state in OVER
        job.leave("DELETION_IN_PROGRESS")
        if was_over:
            _run(call.world, job)

    def forget() -> None:
        call.world.live.pop(f"batch/{call.key}", None)

    return _operation(call, job, "delete", forget, settings(call.world).delete_s)


def _operation(call: Call, job: Job, verb: str, act: Callable[[], None], least_s: float = 0) -> Json:
    """Start an operation with the members of OperationMetadata."""
    name, earliest = f"batch/{job.key}", time.monotonic() + least_s

    def end() -> str:
        act()
        made["metadata"]["endTime"] = time_of(time.time())
        return ""

    def over() -> bool:
        return time.monotonic() >= earliest and call.world.runs.get(name) is not job

    made = begin(call, "longrunning", verb, call.key, end, over)
    made["metadata"] |= {"requestedCancellation": False, "apiVersion": "v1"}
    return made


def _locations(call: Call) -> list[Json]:
    place = f"projects/{PROJECT}/locations"
    return [{"name": f"{place}/{name}", "locationId": name} for name in regions("gcp")]


def preempt(world: World, name: str) -> None:
    job, indexes = _running(world, by_id(name))
    if not job.shape.spot:
        raise ApiError(400, f"sandbox: {name} is not Spot")
    job.end(indexes, PREEMPTED)


def _running(world: World, name: str) -> tuple[Job, list[int]]:
    key, _, task = name.partition("/taskGroups/group0/tasks/")
    jobs = [job for job in world.live.values() if isinstance(job, Job)]
    for job in jobs:
        running = job.tasks.running
        vm = name.rpartition("/")[2]
        chosen = [at for at, each in running.items() if each.vm and each.vm.name == vm]
        if job.key == key:
            chosen = [int(task)] if task.isdigit() and int(task) in running else [] if task else list(running)
            if not chosen:
                raise ApiError(400, f"sandbox: {name} is not running, so there is nothing to preempt")
        if chosen:
            return job, chosen
    raise ApiError(404, f"no machine {name} that can be taken away")


def control(world: World, request: Json) -> Json:
    if name := request.get("end"):
        code = int(request["exitCode"])
        if code not in CODES:
            raise ApiError(400, f"sandbox: {code} is none of {', '.join(map(str, CODES))}")
        job, indexes = _running(world, by_id(name))
        job.end(indexes, code)
        return {"end": name, "exitCode": code}
    return vars(change(world, request))


COLLECTIONS = (
    Collection(id=_JOBS, schema="Job", full_name=True),
    Collection(id=_TASKS, schema="Task", full_name=True),
    Collection(id="batch.projects.locations.operations", schema="Operation"),
    Collection(id="batch.projects.locations", schema="Location", listed=_locations),
)
OWN: dict[str, Callable[[Call, Collection], Any]] = {
    f"{_JOBS}.create": _create,
    f"{_JOBS}.get": _get,
    f"{_JOBS}.list": _list,
    f"{_JOBS}.cancel": _cancel,
    f"{_JOBS}.delete": _delete,
    f"{_TASKS}.get": _get_task,
    f"{_TASKS}.list": _list_tasks,
}

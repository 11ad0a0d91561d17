"""Thread that settles resources, places jobs on instances and monitors what runs. A job that no instance can be had for
shows the reason that AWS gives."""

import json
import logging
import threading

from .. import events
from . import policies
from .capacity import launch, refusal, register, scale_in
from .environments import instance_kinds
from .health import lacks_policies, look_again
from .instances import Instance, Kind
from .lifecycle import finish, move, settle
from .run import Run
from .state import Batch, Document, Environment, Job, Queue, World

# The sandbox's machine is small: more processes than this only wait for each other.
_LOCAL_JOBS = 8
_POLL_S = 0.1
_IDLE_S = 1.0


class Scheduler:
    """Thread that runs `step` whenever something happens, and every POLL_S while jobs run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="batch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._world.lock:
            self._stopping = True
            self._world.lock.notify_all()
        self._thread.join()
        for batch in self._world.batches:
            for job in batch.running.values():
                if job.run:
                    job.run.kill()

    def _loop(self) -> None:
        with self._world.lock:
            while not self._stopping:
                try:
                    due = self.step()
                except Exception:
                    # The boundary of the thread: one broken job must not stop the others.
                    logging.exception("the scheduler's step failed")
                    due = _IDLE_S
                busy = any(batch.running for batch in self._world.batches)
                self._world.lock.wait(max(0.0, min(due, _POLL_S if busy else _IDLE_S)))

    def step(self) -> float:
        """Do all that is due, and return the seconds until the next work is."""
        due = self._world.run_due()
        for batch in self._world.batches:
            for job in list(batch.running.values()):
                _look_after(batch, job)
            settle(batch)
            look_again(batch)
            for queue in sorted(batch.queues.values(), key=lambda queue: -queue.document["priority"]):
                _serve(batch, queue)
            scale_in(batch)
            settle(batch)
        return _IDLE_S if due is None else due


def _look_after(batch: Batch, job: Job) -> None:
    assert job.run
    job.run.poll()
    if job.run.started_at and job.status == "STARTING":
        move(batch, job, "RUNNING")
        if job.whole and job is job.whole.main:
            job.whole.document["startedAt"] = job.run.started_at
            move(batch, job.whole, "RUNNING")
    if job.run.outcome:
        finish(batch, job)


def _serve(batch: Batch, queue: Queue) -> None:
    """Place the jobs of a queue in their order. The first that can't be placed blocks the rest."""
    while queue.runnable and sum(len(other.running) for other in batch.world.batches) < _LOCAL_JOBS:
        job = policies.turn_order(batch, queue)[0]
        if fault := next(filter(None, map(_task_fault, job.nodes or [job])), None):
            move(batch, job, "FAILED", fault)
            continue
        placed = _place(batch, queue, job)
        if isinstance(placed, str):
            _block(batch, queue, job, placed)
            if not job.ended:
                return
            continue
        environment, instances = placed
        if not job.nodes:
            _start(batch, job, environment, instances[0])
            continue
        move(batch, job, "STARTING")
        pairs = zip(job.nodes, instances, strict=True)
        for node, instance in sorted(pairs, key=lambda pair: pair[0] is not job.main):
            instance.sole = True
            _start(batch, node, environment, instance)


def _start(batch: Batch, job: Job, environment: Environment, instance: Instance) -> None:
    move(batch, job, "STARTING")
    batch.running[job.id] = job
    job.run = Run(batch, job, environment, instance, instance.take(job.id, job.needs))


def _task_fault(job: Job) -> str | None:
    """Return ECS's refusal of the task that Batch hands it: the job fails without an attempt."""
    if len(json.dumps(job.overrides)) > 8192:
        return "Container Overrides length must be at most 8192"
    if job.container["secrets"] and "executionRoleArn" not in job.container:
        return (
            "ClientException: When you are specifying container secrets, you must also specify a value for "
            "'executionRoleArn'."
        )
    return None


def _block(batch: Batch, queue: Queue, job: Job, reason: str) -> None:
    """Record why the head of the queue can't be placed, and act once its time limit is over."""
    now = batch.world.now()
    if job.document.get("statusReason", "") != reason or job.blocked_since is None:
        job.blocked_since = now
        job.document.pop("statusReason", None)
        if reason:
            job.document["statusReason"] = reason
            events.send_job_change(batch.account_id, batch.region_name, job.document, "Batch Job Queue Blocked")
    code = reason.partition(" ")[0]
    for action in queue.document["jobStateTimeLimitActions"]:
        if action["reason"] == code and now - job.blocked_since >= action["maxTimeSeconds"]:
            job.document["isCancelled"] = True
            move(batch, job, "FAILED", f"Canceled by JobStateTimeLimit action due to reason: {code}")
            return


# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
_TOO_BIG = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher "
    "than that can be met by the CE(s) attached to the job queue."
)
_OVER_MAX = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - CE(s) associated with the job queue cannot meet the "
    "CPU requirement of the job."
)
_UNPERMITTED = "MISCONFIGURATION:SERVICE_ROLE_PERMISSIONS – Batch service role has a permission issue."
_STOCKOUT = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for instance type [{}]"
)
_NO_ENVIRONMENT = "ACTION_REQUIRED - CE(s) associated with the job queue are {}."
_UNDETERMINED = "UNDETERMINED - Batch job is blocked, root cause is undetermined."
_WAIT = ""
# Where environments differ, the reason nearest to a placement counts: each of AWS's reasons concerns all of them.
_NEAREST = (_WAIT, _STOCKOUT[:8], _UNDETERMINED, _UNPERMITTED, _OVER_MAX, _TOO_BIG)


def _place(batch: Batch, queue: Queue, job: Job) -> tuple[Environment, list[Instance]] | str:
    """Return an environment and an instance for the job or each of its nodes; else the statusReason, "" for none."""
    order = sorted(queue.document["computeEnvironmentOrder"], key=lambda entry: entry["order"])
    named = {row.document["computeEnvironmentArn"]: row for row in batch.environments.values()}
    attached = [named[entry["computeEnvironment"]] for entry in order]
    usable = [environment for environment in attached if environment.usable]
    if not usable:
        # No page says which reason counts for an environment that is both disabled and too small. We take the one that
        # a time limit can act on: users have to prepare for it.
        if all(_over_max(environment, job) for environment in attached):
            return _OVER_MAX
        disabled = all(environment.document["state"] == "DISABLED" for environment in attached)
        return _NO_ENVIRONMENT.format("disabled" if disabled else "invalid")
    reasons: list[str] = []
    for environment in usable:
        found = _within(batch, queue, job, environment)
        if not isinstance(found, str):
            return environment, found
        reasons.append(found)
        # job_stuck_in_runnable_capacity.html: a multi-node job does not go on to the next environment.
        if job.nodes and found.startswith(_STOCKOUT[:8]):
            break
    return min(reasons, key=lambda reason: next(at for at, start in enumerate(_NEAREST) if _is(reason, start)))


def _is(reason: str, start: str) -> bool:
    return reason.startswith(start) if start else not reason


def _within(batch: Batch, queue: Queue, job: Job, environment: Environment) -> list[Instance] | str:
    """Return instances of one environment, launched where none has room; or the reason why there are none."""
    resources = environment.document["computeResources"]
    # Not supported, yet accepted: https://github.com/aws/aws-parallelcluster/issues/2098
    if job.nodes and resources["type"] == "SPOT":
        return _UNDETERMINED
    choices = _choices(resources, job)
    if not all(choices):
        return _TOO_BIG
    if _over_max(environment, job):
        return _OVER_MAX
    room = policies.limit(batch, queue, resources["maxvCpus"]) - environment.vcpus
    register(batch, environment)
    there = list(environment.instances.values())
    if not job.nodes and (fitting := [each for each in there if each.arn and each.has_room(job.needs)]):
        return fitting[:1]
    if not all(each.arn for each in there):
        return _WAIT
    if lacks_policies(batch, environment):
        return _UNPERMITTED
    short_of, full = _WAIT, False
    for at in range(max(map(len, choices))):
        kinds = [found[min(at, len(found) - 1)] for found in choices]
        vcpus = sum(kind.vcpus for kind in kinds)
        if vcpus > resources["maxvCpus"]:
            continue
        if vcpus > room:
            full = True
        elif text := refusal(batch, environment, kinds):
            short = next((kind.name for kind in kinds if kind.name in text), "")
            short_of = short_of or (_STOCKOUT.format(short) if short else _UNDETERMINED)
        else:
            made = [launch(batch, environment, kind) for kind in kinds]
            return made if all(instance.arn for instance in made) else _WAIT
    return _WAIT if full else short_of


def _choices(resources: Document, job: Job) -> list[list[Kind]]:
    kinds = instance_kinds(resources)
    return [[kind for kind in kinds if kind.holds(one.needs) and _allowed(kind, one)] for one in job.nodes or [job]]


def _over_max(environment: Environment, job: Job) -> bool:
    resources = environment.document["computeResources"]
    choices = _choices(resources, job)
    return all(choices) and sum(kinds[0].vcpus for kinds in choices) > resources["maxvCpus"]


def _allowed(kind: Kind, job: Job) -> bool:
    return not job.types or any(kind.name == name or kind.name.startswith(f"{name}.") for name in job.types)

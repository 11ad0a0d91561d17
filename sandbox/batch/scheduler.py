"""The one thread that settles resources, places jobs on instances and looks after what runs."""

import json
import logging
import threading

from .environments import instance_kinds
from .instances import Instance
from .lifecycle import finish, move, settle
from .run import Run
from .state import Batch, Environment, Job, Queue, World

# The machine under the sandbox is small: more processes than this only wait for each other.
LOCAL_JOBS = 8
POLL_S = 0.1
IDLE_S = 1.0

# https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable.html
TOO_BIG = (
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT - The job resource requirement (vCPU/memory/GPU) is higher "
    "than that can be met by the CE(s) attached to the job queue."
)
OVER_MAX = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE - CE(s) associated with the job queue cannot meet the "
    "CPU requirement of the job."
)
STOCKOUT = (
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for instance type [{}]"
)
NO_ENVIRONMENT = "ACTION_REQUIRED - CE(s) associated with the job queue are {}."


class Scheduler:
    """Runs `step` whenever something happened, and every POLL_S while jobs run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="batch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and every process of every job."""
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
                    due = IDLE_S
                busy = any(batch.running for batch in self._world.batches)
                self._world.lock.wait(max(0.0, min(due, POLL_S if busy else IDLE_S)))

    def step(self) -> float:
        """Do what is to be done now; seconds until there is something due."""
        due = self._world.run_due()
        for batch in self._world.batches:
            for job in list(batch.running.values()):
                _look_after(batch, job)
            settle(batch)
            for queue in sorted(batch.queues.values(), key=lambda queue: -queue.document["priority"]):
                _serve(batch, queue)
            settle(batch)
        return IDLE_S if due is None else due


def _look_after(batch: Batch, job: Job) -> None:
    assert job.run
    job.run.poll()
    if job.run.started_at and job.status == "STARTING":
        move(batch, job, "RUNNING")
    if job.run.outcome:
        finish(batch, job)


def _serve(batch: Batch, queue: Queue) -> None:
    """Place the jobs of a queue in their order; the first that can't be placed blocks the rest."""
    while queue.runnable and sum(len(other.running) for other in batch.world.batches) < LOCAL_JOBS:
        job = next(iter(queue.runnable.values()))
        if fault := _task_fault(job):
            move(batch, job, "FAILED", fault)
            continue
        environment, placed = _place(batch, queue, job)
        if environment is None:
            _block(batch, queue, job, str(placed or ""))
            if not job.ended:
                return
        elif isinstance(placed, Instance):
            move(batch, job, "STARTING")
            batch.running[job.id] = job
            job.run = Run(batch, job, environment, placed, placed.take(job.id, job.needs))
            environment.instances[placed.id] = placed


def _task_fault(job: Job) -> str | None:
    """What ECS refuses when Batch hands it the task: the job fails without an attempt."""
    if len(json.dumps(job.overrides)) > 8192:
        return "Container Overrides length must be at most 8192"
    if job.container["secrets"] and "executionRoleArn" not in job.container:
        return (
            "ClientException: When you are specifying container secrets, you must also specify a value for "
            "'executionRoleArn'."
        )
    return None


def _place(batch: Batch, queue: Queue, job: Job) -> tuple[Environment, Instance] | tuple[None, str | None]:
    """An instance with room for the job, running or new; else why there is none (None: wait for a turn)."""
    order = sorted(queue.document["computeEnvironmentOrder"], key=lambda entry: entry["order"])
    named = {row.document["computeEnvironmentArn"]: row for row in batch.environments.values()}
    attached = [named[entry["computeEnvironment"]] for entry in order]
    usable = [environment for environment in attached if environment.usable]
    fits = below_max = full = False
    short_of: list[str] = []
    for environment in usable:
        resources = environment.document["computeResources"]
        kinds = [kind for kind in instance_kinds(resources) if kind.holds(job.needs)]
        fits = fits or bool(kinds)
        kinds = [kind for kind in kinds if kind.vcpus <= resources["maxvCpus"]]
        below_max = below_max or bool(kinds)
        for instance in environment.instances.values():
            if instance.has_room(job.needs):
                return environment, instance
        for kind in kinds:
            if kind.name in batch.world.stockouts:
                short_of.append(kind.name)
            elif environment.vcpus + kind.vcpus <= resources["maxvCpus"]:
                return environment, Instance(kind)
            else:
                full = True
    if not usable:
        disabled = all(environment.document["state"] == "DISABLED" for environment in attached)
        return None, NO_ENVIRONMENT.format("disabled" if disabled else "invalid")
    if not fits:
        return None, TOO_BIG
    if not below_max:
        return None, OVER_MAX
    return None, STOCKOUT.format(short_of[0]) if short_of and not full else None


def _block(batch: Batch, queue: Queue, job: Job, reason: str) -> None:
    """Note why the head of the queue can't be placed, and act once its time limit is over."""
    now = batch.world.now()
    if job.document.get("statusReason", "") != reason or job.blocked_since is None:
        job.blocked_since = now
        job.document.pop("statusReason", None)
        if reason:
            job.document["statusReason"] = reason
    code = reason.partition(" ")[0]
    for action in queue.document["jobStateTimeLimitActions"]:
        if action["reason"] == code and now - job.blocked_since >= action["maxTimeSeconds"]:
            job.document["isCancelled"] = True
            move(batch, job, "FAILED", f"Canceled by JobStateTimeLimit action due to reason: {code}")
            return

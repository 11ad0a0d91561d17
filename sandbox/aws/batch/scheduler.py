"""The one thread that settles resources, places jobs on instances and looks after what runs."""

import json
import logging
import threading

from .. import events
from . import policies
from .capacity import scale_in
from .health import look_again
from .instances import Instance
from .lifecycle import finish, move, settle
from .placement import place
from .run import Run
from .state import Batch, Environment, Job, Queue, World

# The machine under the sandbox is small: more processes than this only wait for each other.
LOCAL_JOBS = 8
POLL_S = 0.1
IDLE_S = 1.0


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
            look_again(batch)
            for queue in sorted(batch.queues.values(), key=lambda queue: -queue.document["priority"]):
                _serve(batch, queue)
            scale_in(batch)
            settle(batch)
        return IDLE_S if due is None else due


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
    """Place the jobs of a queue in their order; the first that can't be placed blocks the rest."""
    while queue.runnable and sum(len(other.running) for other in batch.world.batches) < LOCAL_JOBS:
        job = policies.ordered(batch, queue)[0]
        if fault := next(filter(None, map(_task_fault, job.nodes or [job])), None):
            move(batch, job, "FAILED", fault)
            continue
        placed = place(batch, queue, job)
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
    """What ECS refuses when Batch hands it the task: the job fails without an attempt."""
    if len(json.dumps(job.overrides)) > 8192:
        return "Container Overrides length must be at most 8192"
    if job.container["secrets"] and "executionRoleArn" not in job.container:
        return (
            "ClientException: When you are specifying container secrets, you must also specify a value for "
            "'executionRoleArn'."
        )
    return None


def _block(batch: Batch, queue: Queue, job: Job, reason: str) -> None:
    """Note why the head of the queue can't be placed, and act once its time limit is over."""
    now = batch.world.now()
    if job.document.get("statusReason", "") != reason or job.blocked_since is None:
        job.blocked_since = now
        job.document.pop("statusReason", None)
        if reason:
            job.document["statusReason"] = reason
            events.job_changed(batch.account_id, batch.region_name, job.document, "Batch Job Queue Blocked")
    code = reason.partition(" ")[0]
    for action in queue.document["jobStateTimeLimitActions"]:
        if action["reason"] == code and now - job.blocked_since >= action["maxTimeSeconds"]:
            job.document["isCancelled"] = True
            move(batch, job, "FAILED", f"Canceled by JobStateTimeLimit action due to reason: {code}")
            return

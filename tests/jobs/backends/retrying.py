"""Platforms that try an attempt again or not, by nothing but the request that a backend rendered, as their documents
say that they do; and what each of them then tells of the job, for the backend to read back.

A platform knows an attempt by its end alone. Times are seconds from the submission.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

from accel.rules.batch.jobs import OUT_OF_TIME
from jobs.backends.aws_batch import AwsBatchBackend
from jobs.backends.aws_batch.status import status_of as aws_batch_status
from jobs.backends.base import JobRef, Request, Status
from jobs.backends.gke import status as observe
from jobs.backends.gke.labels import CONTAINER
from jobs.backends.gke.lookup import GkeJob
from jobs.backends.google_batch import status as states
from jobs.backends.vm import state_machine
from jobs.backends.vm.record import Record, Result
from jobs.backends.vm.state_machine import ABSENT, RUNNING, TAKEN, MachineState, Write
from jobs.backends.vm.status import status_of as vm_status
from tests.jobs.backends import gce_target, gke_target, google_batch_jobs, google_batch_target, tpu_target
from tests.jobs.backends.aws_batch_target import make_target as aws_batch_target
from tests.jobs.backends.aws_batch_target import request_of
from tests.jobs.backends.test_aws_batch_policy import ends
from tests.jobs.backends.vm_records import make_record

How = Literal["done", "failed", "lost", "stopped", "late"]
START = datetime(2026, 11, 22, tzinfo=UTC)
REF = JobRef("k", "s", "digits")
PREEMPTED = 50001
TERMINATED = 143


@dataclass(frozen=True)
class End:
    """Of an attempt. `code`: the command's own; of a lost one, that of SIGTERM. stopped: it ended by itself, before its
    machine was gone. late: it ran out of its time."""

    how: How
    code: int
    start: float
    stop: float


class Platform(Protocol):
    """What runs one job."""

    gpus: int

    def again(self, so_far: Sequence[End]) -> bool:
        """Whether another attempt follows these, of which the last has not succeeded."""
        ...

    def status(self, so_far: Sequence[End]) -> Status:
        """What the backend reads of the job once it has ended."""
        ...


def milliseconds(seconds: float) -> int:
    return int((START + timedelta(seconds=seconds)).timestamp() * 1000)


def stamp(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


@dataclass
class AwsBatch:
    """https://docs.aws.amazon.com/batch/latest/userguide/job_retries.html"""

    strategy: dict[str, Any]
    resources: list[dict[str, str]]
    gpus: int = 1

    @classmethod
    def of(cls, **fields: Any) -> "AwsBatch":
        request = request_of(
            AwsBatchBackend("gpu", aws_batch_target()), "x", own=True, accelerator={"count": 1}, **fields
        )
        submit, own = request.body["submit"], request.body["register"]
        return cls(
            submit.get("retryStrategy") or own["retryStrategy"], own["containerProperties"]["resourceRequirements"]
        )

    def again(self, so_far: Sequence[End]) -> bool:
        last = so_far[-1]
        if len(so_far) >= self.strategy["attempts"] or last.how == "late":
            return False
        code = {"code": str(last.code)} if last.how in ("failed", "stopped") else {}
        return not ends(self.strategy, status=self._told(last), **code)

    def status(self, so_far: Sequence[End]) -> Status:
        attempts: list[dict[str, Any]] = [
            {
                "container": {"exitCode": one.code, "logStreamName": str(number)} if one.how != "lost" else {},
                "startedAt": milliseconds(one.start),
                "stoppedAt": milliseconds(one.stop),
                "statusReason": self._told(one),
            }
            for number, one in enumerate(so_far)
        ]
        last = so_far[-1]
        job = {
            "jobId": "1",
            "jobName": "digits",
            "jobQueue": "gpu",
            "status": "SUCCEEDED" if last.how == "done" else "FAILED",
            "statusReason": self._told(last),
            "attempts": attempts,
            "container": {**attempts[-1]["container"], "resourceRequirements": self.resources},
        }
        return aws_batch_status(REF, job, None)

    @staticmethod
    def _told(one: End) -> str:
        return "Host EC2 (instance i-0) terminated." if one.how == "lost" else "Essential container in task exited"


@dataclass
class GoogleBatch:
    """https://docs.cloud.google.com/batch/docs/automate-task-retries"""

    spec: dict[str, Any]
    gpus: int = 1

    @classmethod
    def of(cls, **fields: Any) -> "GoogleBatch":
        request = google_batch_target.make_request(accelerator={"type": "l4"}, **fields)
        return cls(request.body["job"]["taskGroups"][0]["taskSpec"])

    def again(self, so_far: Sequence[End]) -> bool:
        if len(so_far) > self.spec["maxRetryCount"]:
            return False
        for policy in self.spec.get("lifecyclePolicies", []):
            named = self._code(so_far[-1]) in policy["actionCondition"]["exitCodes"]
            return named == (policy["action"] == "RETRY_TASK")
        return True

    def status(self, so_far: Sequence[End]) -> Status:
        state = "SUCCEEDED" if so_far[-1].how == "done" else "FAILED"
        told: list[dict[str, Any]] = []
        for one in so_far:
            told.append(google_batch_jobs.ran(one.start / 60))
            if one.how != "done":
                told.append(google_batch_jobs.ended(one.stop / 60, self._code(one)))
        job = google_batch_jobs.job(state, counts={state: 1})
        return states.status_of(REF, job, [google_batch_jobs.task(state, *told)])

    @staticmethod
    def _code(one: End) -> int:
        return {"lost": PREEMPTED, "late": OUT_OF_TIME}.get(one.how, one.code)


@dataclass
class Gke:
    """A Job, of one task or as one of an array's. A pod that was taken away has an exit code too.
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy"""

    body: dict[str, Any]
    gpus: int = 1

    @classmethod
    def of(cls, **fields: Any) -> "Gke":
        target = gke_target.make_target(queue=None)
        return cls(gke_target.make_request(target, accelerator={"type": "a100"}, **fields).body["objects"][-1])

    @classmethod
    def of_array(cls, **fields: Any) -> "Gke":
        return cls.of(tasks=2, **fields)

    def again(self, so_far: Sequence[End]) -> bool:
        spec = self.body["spec"]
        limit = spec["backoffLimitPerIndex"] if "backoffLimitPerIndex" in spec else spec["backoffLimit"]
        actions = [self._action(one) for one in so_far]
        return actions[-1] not in ("FailJob", "FailIndex") and actions.count("Count") <= limit

    def _action(self, one: End) -> str:
        for rule in self.body["spec"]["podFailurePolicy"]["rules"]:
            if "onPodConditions" in rule:
                assert [each["type"] for each in rule["onPodConditions"]] == ["DisruptionTarget"]
                matches = one.how == "lost"
            else:
                asked = rule["onExitCodes"]
                assert asked["containerName"] == CONTAINER
                matches = (one.code in asked["values"]) == (asked["operator"] == "In")
            if matches:
                return rule["action"]
        return "Count"

    def status(self, so_far: Sequence[End]) -> Status:
        pods = [self._pod(one) for one in so_far]
        failed = sum(one.how != "done" and self._action(one) != "Ignore" for one in so_far)
        done = so_far[-1].how == "done"
        condition = {"type": "Complete"} if done else {"type": "Failed", "reason": "BackoffLimitExceeded"}
        told = {"conditions": [{**condition, "status": "True"}], "succeeded": int(done), "failed": failed}
        return observe.status_of(REF, GkeJob({**deepcopy(self.body), "status": told}, pods))

    @staticmethod
    def _pod(one: End) -> dict[str, Any]:
        ended = {"terminated": {"exitCode": one.code, "finishedAt": stamp(one.stop)}}
        lost = [{"type": "DisruptionTarget", "status": "True"}] if one.how == "lost" else []
        return {
            "metadata": {"creationTimestamp": stamp(one.start)},
            "status": {
                "phase": "Succeeded" if one.how == "done" else "Failed",
                "startTime": stamp(one.start),
                "conditions": lost,
                "containerStatuses": [{"name": CONTAINER, "state": ended}],
            },
        }


@dataclass
class JobSet:
    """Nodes that start again together, of which one ended so. https://jobset.sigs.k8s.io/docs/tasks/failure_policy/"""

    body: dict[str, Any]
    gpus: int = 2

    @classmethod
    def of(cls, **fields: Any) -> "JobSet":
        request = gke_target.make_request(accelerator={"type": "a100"}, nodes=2, **fields)
        return cls(request.body["objects"][-1])

    def again(self, so_far: Sequence[End]) -> bool:
        (job,) = self.body["spec"]["replicatedJobs"]
        spec = job["template"]["spec"]
        assert spec["backoffLimit"] == 0
        assert {rule["action"] for rule in spec["podFailurePolicy"]["rules"]} == {"FailJob"}
        actions = [self._action(one) for one in so_far]
        most = self.body["spec"]["failurePolicy"]["maxRestarts"]
        return actions[-1] != "FailJobSet" and actions.count("RestartJobSet") <= most

    def _action(self, one: End) -> str:
        spec = self.body["spec"]["replicatedJobs"][0]["template"]["spec"]
        named = [rule["onExitCodes"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
        lost = one.how == "lost" or any(one.code in each["values"] for each in named)
        reason = "PodFailurePolicy" if lost else "BackoffLimitExceeded"
        rules = self.body["spec"]["failurePolicy"]["rules"]
        return next((each["action"] for each in rules if reason in each["onJobFailureReasons"]), "RestartJobSet")

    def status(self, so_far: Sequence[End]) -> Status:
        """Only the pods of the last start are still there."""
        done = so_far[-1].how == "done"
        condition = {"type": "Completed" if done else "Failed", "status": "True"}
        told = {"conditions": [condition], "restarts": len(so_far) - 1, "terminalState": condition["type"]}
        return observe.status_of(REF, GkeJob({**deepcopy(self.body), "status": told}))


@dataclass
class Machines:
    """Machines of the job's own: the state machine itself says what comes next, and keeps every attempt."""

    request: Request
    record: Record = field(init=False)
    gpus: int = 1

    def __post_init__(self) -> None:
        self.gpus = int(self.request.body.get("gpus") or 0)

    @classmethod
    def of_gce(cls, **fields: Any) -> "Machines":
        return cls(gce_target.make_request(**fields))

    @classmethod
    def of_tpus(cls, **fields: Any) -> "Machines":
        return cls(tpu_target.make_request(**fields))

    def again(self, so_far: Sequence[End]) -> bool:
        last = so_far[-1]
        if len(so_far) == 1:
            self.record = make_record(self.request)
        self._step(MachineState(RUNNING, ""), last.start)  # they were asked for
        self._step(MachineState(RUNNING, ""), last.start)  # they run
        if last.how == "lost":
            self._step(MachineState(TAKEN, ""), last.stop)
        else:
            hosts = range(self.record.hosts if last.how == "done" else 1)
            told = {each: Result(each, last.code, "exited", stamp(last.start), stamp(last.stop)) for each in hosts}
            self._step(MachineState(RUNNING, ""), last.stop, told)
        self._step(MachineState(ABSENT, ""), last.stop)  # they are gone
        return self.record.ended is None

    def _step(self, seen: MachineState, now: float, results: dict[int, Result] | None = None) -> None:
        step = state_machine.decide(self.record, seen, results or {}, START + timedelta(seconds=now))
        assert isinstance(step, Write)
        self.record = step.record

    def status(self, so_far: Sequence[End]) -> Status:
        if so_far[-1].how == "done":
            self.again(so_far)
        now = START + timedelta(seconds=so_far[-1].stop)
        return vm_status(self.record, MachineState(ABSENT, ""), {}, now)

"""What an AWS section can stop: queues, compute environments, running jobs. Carried by the function of the budgets."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from accel.budget.levers import FOREIGN, Change, LeverFailed

DESCRIBED_AT_ONCE = 100
BUSY = "resource is being modified"
TRIES, PAUSE_S = 10, 1.0


@dataclass(frozen=True)
class Queues:
    """Job queues: a disabled one takes no new jobs, and finishes those it has.

    Source: https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateJobQueue.html
    """

    batch: Any
    arns: Sequence[str]
    stage: str = "queues"
    kind: str = "aws-queue"

    def plan(self) -> list[Change]:
        return [
            Change(self.stage, self.kind, arn, state, "DISABLED", f"queue {_short(arn)}: {state} to DISABLED")
            for arn, state in self._states(self.arns).items()
            if state != "DISABLED"
        ]

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after)

    def restore(self, change: Change) -> str | None:
        if change.name not in self.arns:
            return f"queue {_short(change.name)} {FOREIGN}"
        state = self._states([change.name]).get(change.name)
        if state == change.after:
            self._set(change.name, change.before)
        return None if state in (change.before, change.after) else f"queue {_short(change.name)} is {state or 'gone'}"

    def _set(self, arn: str, state: str) -> None:
        call_patiently(lambda: self.batch.update_job_queue(jobQueue=arn, state=state))

    def _states(self, arns: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(arns), DESCRIBED_AT_ONCE):
            part = list(arns[start : start + DESCRIBED_AT_ONCE])
            answer = call_patiently(lambda part=part: self.batch.describe_job_queues(jobQueues=part))
            found |= {each["jobQueueArn"]: each["state"] for each in answer["jobQueues"]}
        return found


@dataclass(frozen=True)
class Environments:
    """Compute environments: disabled, minimum 0. The maximum stays.

    A disabled one starts no more jobs and goes down to its minimum. A maximum that a job does not fit in is
    MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE, for which the time limit of a queue cancels what waits. Sources:
    https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdateComputeEnvironment.html,
    https://docs.aws.amazon.com/batch/latest/userguide/job_stuck_in_runnable_misconfiguration.html
    """

    batch: Any
    arns: Sequence[str]
    stage: str = "maximums"
    kind: str = "aws-environment"

    def plan(self) -> list[Change]:
        planned: list[Change] = []
        for arn, now in self._sizes(self.arns).items():
            after = {"state": "DISABLED", "min": 0, "max": now["max"]}
            if now != after:
                text = f"environment {_short(arn)}: {_size(now)} to {_size(after)}"
                planned.append(Change(self.stage, self.kind, arn, now, after, text))
        return planned

    def pull(self, change: Change) -> None:
        self._set(change.name, change.after["state"], {"minvCpus": change.after["min"]})

    def restore(self, change: Change) -> str | None:
        if change.name not in self.arns:
            return f"environment {_short(change.name)} {FOREIGN}"
        now = self._sizes([change.name]).get(change.name)
        if now is None:
            return f"environment {_short(change.name)} is gone"
        before, after = change.before, change.after
        if now == before:
            return None
        # Versions up to 0.1.0 took the maximum down too, in steps and to 0: it may be anywhere on that way.
        if (now["state"], now["min"]) != ("DISABLED", 0) or not after["max"] <= now["max"] <= before["max"]:
            return f"environment {_short(change.name)} is {_size(now)}"
        self._set(change.name, before["state"], {"minvCpus": before["min"], "maxvCpus": before["max"]})
        return None

    def _set(self, arn: str, state: str, resources: dict[str, int]) -> None:
        call = self.batch.update_compute_environment
        call_patiently(lambda: call(computeEnvironment=arn, state=state, computeResources=resources))

    def _sizes(self, arns: Sequence[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(arns), DESCRIBED_AT_ONCE):
            part = list(arns[start : start + DESCRIBED_AT_ONCE])
            answer = call_patiently(
                lambda part=part: self.batch.describe_compute_environments(computeEnvironments=part)
            )
            for each in answer["computeEnvironments"]:
                of = each["computeResources"]
                size = {"state": each["state"], "min": of["minvCpus"], "max": of["maxvCpus"]}
                found[each["computeEnvironmentArn"]] = size
        return found


@dataclass(frozen=True)
class Jobs:
    """Running jobs: terminated, which is SIGTERM, and SIGKILL after 30 seconds. AWS does not retry them.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/job_timeouts.html
    """

    batch: Any
    queues: Sequence[str]
    """ARNs."""
    most: int | None
    """Of them at once; None: all."""
    stage: str = "running"
    kind: str = "aws-job"

    def plan(self) -> list[Change]:
        found = [job for queue in self.queues for job in self._running(queue)]
        part = found[: self.most]
        return [
            Change(
                self.stage,
                self.kind,
                job["jobId"],
                None,
                "terminated",
                f"job {job.get('jobName', '')} ({job['jobId']}): SIGTERM, and SIGKILL after 30 seconds",
                later=len(part) < len(found),
            )
            for job in part
        ]

    def pull(self, change: Change) -> None:
        reason = "the stack's budget is crossed"
        call_patiently(lambda: self.batch.terminate_job(jobId=change.name, reason=reason))

    def restore(self, change: Change) -> str | None:
        return f"job {change.name} has ended; submit it again"

    def _running(self, queue: str) -> Iterator[dict[str, Any]]:
        yield from self._listed(("STARTING", "RUNNING"), jobQueue=queue)
        # An array stays PENDING while its tasks run.
        for job in self._listed(("PENDING",), jobQueue=queue):
            if job.get("arrayProperties"):
                yield from self._listed(("STARTING", "RUNNING"), arrayJobId=job["jobId"])

    def _listed(self, statuses: Sequence[str], **of: str) -> list[dict[str, Any]]:
        pages = self.batch.get_paginator("list_jobs").paginate
        return [
            job
            for status in statuses
            for page in call_patiently(lambda status=status: list(pages(**of, jobStatus=status)))
            for job in page["jobSummaryList"]
        ]


def call_patiently(call: Callable[[], Any]) -> Any:
    """The call's answer, tried again while AWS is still at work on the change before. Raises LeverFailed."""
    errors: Any = import_module("botocore.exceptions")
    for left in reversed(range(TRIES)):
        try:
            return call()
        except (errors.BotoCoreError, errors.ClientError) as error:
            if BUSY not in str(error) or not left:
                raise LeverFailed(str(error)) from error
        time.sleep(PAUSE_S)
    raise AssertionError


def _size(size: dict[str, Any]) -> str:
    return f"{size['state']}, {size['min']} to {size['max']} vCPUs"


def _short(arn: str) -> str:
    return arn.rpartition("/")[2]

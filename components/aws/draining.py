"""The draining of a compute environment from queues and jobs: AWS deletes it only if it is DISABLED and no queue names
it, and its jobs end with its instances. Source:
https://docs.aws.amazon.com/batch/latest/APIReference/API_DeleteComputeEnvironment.html"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from accel.clouds.aws.clients import Client, client
from accel.clouds.pauses import Pauses
from accel.diagnostics.messages import first_of

from ..base import Spec

QUEUES_MIN = 10
"""Minutes to wait for queues that are being changed; a queue that still names the environment then is not."""
POLL_S = (0.5, 10.0)
"""Shortest and longest pause between polls, in seconds."""
MOVING = ("CREATING", "UPDATING", "DELETING")
GOING = ("DELETING", "DELETED")
SHOWN = 5
DESCRIBED_AT_ONCE = 100
LOOKS = ("batch:DescribeComputeEnvironments", "batch:DescribeJobQueues", "batch:DescribeJobs", "batch:ListJobs")
"""Permissions that draining needs; IAM has no resource level for these."""
ENDS = ("batch:TerminateJob",)
"""Further permissions on jobs, needed where draining terminates them."""


class DrainSpec(Spec):
    """Handling of the running jobs of an environment that is replaced or removed."""

    jobs: Literal["wait", "terminate"] = Field(
        default="wait", description="wait: let running jobs end; terminate: terminate them"
    )
    timeout_min: int = Field(
        default=360,
        ge=0,
        le=20_160,
        description="Maximum wait in minutes; then the deployment ends with an error, and the next one continues "
        "to wait",
    )


def batch_of(region: str) -> Client:
    """Return a client that retries throttled calls."""
    return client("batch", region, connect_s=5, read_s=20, attempts=8)


class DrainError(Exception):
    """The reason why the environment cannot be deleted now, and what would help."""


@dataclass(frozen=True)
class Draining:
    """One environment to drain. `batch` is a boto3 client of its region, `say` shows a line to the user."""

    batch: Any
    name: str
    spec: DrainSpec
    say: Callable[[str], None]

    def run(self) -> None:
        """Wait until no queue names the environment, disable it, and wait for its jobs. Raise DrainError."""
        if self._settled() is None:
            return
        self._wait(self._naming, "queues that name it", QUEUES_MIN, "take it out of their environments")
        found = self._settled()
        if found is None:
            return
        if found["state"] == "ENABLED":
            self.batch.update_compute_environment(computeEnvironment=self.name, state="DISABLED")
            self._settled()
        if self.spec.jobs == "terminate":
            for job in self._jobs(found):
                self.batch.terminate_job(jobId=job, reason=f"compute environment {self.name} is removed")
        self._wait(
            lambda: self._jobs(found),
            "jobs that run on it",
            self.spec.timeout_min,
            "deploy again to go on waiting; terminate them, or set drain.jobs: terminate, to lose them",
        )

    def _wait(self, left: Callable[[], list[str]], what: str, minutes: float, hint: str) -> None:
        pauses, said = Pauses(60 * minutes, first_s=POLL_S[0]), 0
        while found := left():
            pause_s, shown = pauses.next_s(POLL_S[1]), f"{what}: {first_of(found, SHOWN)}"
            if pause_s is None:
                raise DrainError(f"{self.name}: after {minutes:g} min there are {shown}; {hint}")
            if len(found) != said:
                said = len(found)
                self.say(f"{self.name}: waiting for {shown}")
            time.sleep(pause_s)

    def _settled(self) -> dict[str, Any] | None:
        """Wait until AWS is not changing the environment, and return it; None where it is gone."""
        pauses = Pauses(first_s=POLL_S[0])
        while True:
            answer = self.batch.describe_compute_environments(computeEnvironments=[self.name])
            found = next(iter(answer["computeEnvironments"]), None)
            if found is None or found["status"] == "DELETED":
                return None
            if found["status"] not in MOVING:
                return found
            time.sleep(pauses.next_s(POLL_S[1]) or 0)

    def _queues(self) -> Iterator[dict[str, Any]]:
        for page in self.batch.get_paginator("describe_job_queues").paginate():
            yield from page["jobQueues"]

    def _naming(self) -> list[str]:
        return [
            queue["jobQueueName"]
            for queue in self._queues()
            if any(_name(one["computeEnvironment"]) == self.name for one in queue.get("computeEnvironmentOrder", []))
        ]

    def _jobs(self, environment: Mapping[str, Any]) -> list[str]:
        return running_on(self.batch, environment, [queue["jobQueueArn"] for queue in self._queues()])


def running_on(batch: Any, environment: Mapping[str, Any], queues: Iterable[str]) -> list[str]:
    """Return the ids of jobs, tasks and nodes on its instances, whatever their queue: the ARN of a container instance
    contains the name of its cluster. Source:
    https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-account-settings.html"""
    cluster = str(environment.get("ecsClusterArn") or "").rpartition("/")[2]
    active = [job for queue in queues for job in _active_or_gone(batch, queue)] if cluster else []
    found: list[str] = []
    for start in range(0, len(active), DESCRIBED_AT_ONCE):
        for job in batch.describe_jobs(jobs=active[start : start + DESCRIBED_AT_ONCE])["jobs"]:
            container: dict[str, Any] = job.get("container") or {}
            if f"/{cluster}/" in container.get("containerInstanceArn", ""):
                found.append(job["jobId"])
    return found


def _active_or_gone(batch: Any, queue: str) -> list[str]:
    """Return none for a queue that was deleted since it was listed: a deployment deletes others at the same time."""
    from botocore.exceptions import ClientError

    try:
        return [*_active(batch, queue)]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ClientException":
            raise
        if any(one["status"] not in GOING for one in batch.describe_job_queues(jobQueues=[queue])["jobQueues"]):
            raise
        return []


def _active(batch: Any, queue: str) -> Iterator[str]:
    for job in _listed(batch, ("STARTING", "RUNNING"), jobQueue=queue):
        yield job["jobId"]
        if job.get("nodeProperties"):
            yield from _ids(batch, multiNodeJobId=job["jobId"])
    # An array stays PENDING while its tasks run.
    for job in _listed(batch, ("PENDING",), jobQueue=queue):
        if job.get("arrayProperties"):
            yield from _ids(batch, arrayJobId=job["jobId"])


def _ids(batch: Any, **parent: str) -> Iterator[str]:
    return (job["jobId"] for job in _listed(batch, ("STARTING", "RUNNING"), **parent))


def _listed(batch: Any, statuses: Iterable[str], **asked: str) -> Iterator[dict[str, Any]]:
    for status in statuses:
        for page in batch.get_paginator("list_jobs").paginate(**asked, jobStatus=status):
            yield from page["jobSummaryList"]


def _name(arn: str) -> str:
    return arn.rpartition("/")[2]

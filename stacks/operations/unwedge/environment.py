"""What holds a compute environment: its state, its roles, the queues that name it and the jobs that run on it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accel.clouds.aws.batch_jobs import pages
from accel.clouds.aws.clients import client
from accel.clouds.aws.errors import asking
from components.aws.draining import running_on

from .roles import EnvironmentRole, environment_roles


@dataclass(frozen=True)
class Region:
    """AWS's APIs in one region."""

    name: str

    @cached_property
    def batch(self) -> Any:
        return self._client("batch")

    @cached_property
    def iam(self) -> Any:
        return self._client("iam")

    def _client(self, service: str) -> Any:
        with asking(f"{service} in {self.name}"):
            return client(service, self.name, connect_s=5, read_s=20, attempts=6)

    def environments(self) -> Iterator[dict[str, Any]]:
        """Every compute environment."""
        with asking(f"DescribeComputeEnvironments in {self.name}"):
            for page in self.batch.get_paginator("describe_compute_environments").paginate():
                yield from page["computeEnvironments"]

    def environment(self, name: str) -> dict[str, Any] | None:
        """One of them as it is now; None once it is gone."""
        with asking(f"DescribeComputeEnvironments {name}"):
            answer = self.batch.describe_compute_environments(computeEnvironments=[name])
        found = next(iter(answer["computeEnvironments"]), None)
        return None if found is None or found["status"] == "DELETED" else found

    def queues(self) -> list[dict[str, Any]]:
        """Every job queue."""
        with asking(f"DescribeJobQueues in {self.name}"):
            listed = self.batch.get_paginator("describe_job_queues").paginate()
            return [queue for page in listed for queue in page["jobQueues"]]


@dataclass(frozen=True)
class Queue:
    """A queue that names the environment. `others`: ARNs of the rest, in order; `waiting`: jobs that have not begun."""

    name: str
    others: tuple[str, ...]
    waiting: int

    @property
    def rest(self) -> str:
        return ", ".join(arn.rpartition("/")[2] for arn in self.others)


@dataclass(frozen=True)
class Diagnosis:
    """One environment. `running`: ids of the jobs on its instances."""

    environment: dict[str, Any]
    roles: tuple[EnvironmentRole, ...]
    queues: tuple[Queue, ...]
    running: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.environment["computeEnvironmentName"]

    def lines(self) -> Iterator[str]:
        """What was found, a line each."""
        one = self.environment
        yield f"{self.name}: {one['status']}, {one['state']}: {one.get('statusReason') or 'no reason given'}"
        for role in self.roles:
            yield f"{role.kind} {role.name}: {role.state}{f': {role.why}' if role.why else ''}"
        for queue in self.queues:
            waits = f"; {queue.waiting} jobs wait in it" if queue.waiting else ""
            yield f"queue {queue.name} names it, {f'and {queue.rest}' if queue.others else 'and no other'}{waits}"
        if not self.queues:
            yield "no queue names it"
        yield f"jobs on it: {', '.join(self.running[:5]) or 'none'}{' and more' if len(self.running) > 5 else ''}"


def diagnose(region: Region, environment: dict[str, Any]) -> Diagnosis:
    """Looks at all that can hold the environment. Raises as accel.clouds.aws.errors does."""
    arn = environment["computeEnvironmentArn"]
    all_queues = region.queues()
    naming: list[Queue] = []
    for queue in all_queues:
        order = sorted(queue["computeEnvironmentOrder"], key=lambda one: one["order"])
        arns = [one["computeEnvironment"] for one in order]
        if arn in arns:
            waiting = sum(
                len(page)
                for status in ("SUBMITTED", "PENDING", "RUNNABLE")
                for page in pages(region.batch, jobQueue=queue["jobQueueArn"], jobStatus=status)
            )
            naming.append(Queue(queue["jobQueueName"], tuple(one for one in arns if one != arn), waiting))
    with asking(f"jobs on {environment['computeEnvironmentName']}"):
        running = running_on(region.batch, environment, [queue["jobQueueArn"] for queue in all_queues])
    return Diagnosis(environment, tuple(environment_roles(region.iam, environment)), tuple(naming), tuple(running))

"""Everything that blocks the deletion of a compute environment: its state, its roles, its queues and its jobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from accel.clouds.aws.batch_jobs import pages
from accel.clouds.aws.errors import asking
from components.aws.draining import running_on

from ..inventory.aws import Region
from .roles import EnvironmentRole, environment_roles


@dataclass(frozen=True)
class Queue:
    """A queue that names the environment. `others`: ARNs of its other ones, in order; `waiting`: jobs not begun."""

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
    """Raise as accel.clouds.aws.errors does."""
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
